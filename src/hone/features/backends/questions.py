"""A small set of memories and of questions that each has its answer in one of them."""

QUESTIONS = (
    ("editor", "She writes all code in Neovim with a light theme.", "which editor is used for code?"),
    (
        "deploy/day",
        "Releases go out on Tuesday afternoon, never on Friday.",
        "on what day do releases go out?",
    ),
    (
        "deploy/host",
        "The staging host is called heron and lives in the second rack.",
        "name of the staging host",
    ),
    ("allergy", "Allergic to peanuts; sesame is fine.", "is there an allergy to peanuts?"),
    ("billing/currency", "Invoices are written in Swiss francs.", "what currency are invoices in?"),
    (
        "style/commits",
        "Commit messages start with a capital and give the reason.",
        "how do commit messages start?",
    ),
    ("database", "The ledger database runs on port 5544 with daily backups.", "port of the ledger database"),
    ("family", "Her sister Ines studies marine biology in Lisbon.", "what does the sister study?"),
    (
        "report",
        "The quarterly report needs a chart of churn by region.",
        "which chart belongs into the report?",
    ),
    ("meeting", "The planning meeting moved to Monday at nine.", "when is the planning meeting?"),
    ("office", "La oficina nueva está en la calle de Alcalá.", "en qué calle está la oficina"),
    ("train", "東京行きの列車は三番線から出る。", "東京行きの列車は何番線"),
)
"""Key, value, question."""
