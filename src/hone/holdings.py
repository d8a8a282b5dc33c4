"""The table of the kernel's own holdings: where text is stored in a home, and for how long.

A feature or a plugin adds its own with `Part.holdings`. A test fails for a table or a file of the home that
no holding names.
"""

from collections.abc import Iterable

from hone.core.documents import CONSENT, RULES
from hone.core.holding import FOREVER, Backup, Holding
from hone.core.part import Part

DATABASE = "hone.features.erasing.database:DatabaseEraser"
PLACES = "hone.features.erasing.places:"
LIMITED = f"{FOREVER}, or as long as [retention] says"

HOLDINGS = (
    Holding(
        "conversations",
        "every message, the prompts they were sent with, titles, costs",
        LIMITED,
        tables=(
            "contents",
            "nodes",
            "chains",
            "prefixes",
            "sessions",
            "spending",
            "spending_hours",
            "histories",
            "backlog",
            "passage_words",
        ),
        places=("hone.db", "hone.db-wal", "hone.db-shm", "moved.json"),
        eraser=DATABASE,
        elsewhere=("owners", "moves", "passages"),
    ),
    Holding(
        "vectors",
        "the meaning of messages, skills, lessons and templates, as numbers; none unless you set an embedder",
        "as long as the text they were made from",
        tables=("embedders", "vectors", "vector_codes", "meanings"),
        eraser=DATABASE,
    ),
    Holding(
        "ledger",
        "every change of what is known, with the words it rests on and what each file said before and after",
        tables=(
            "changes",
            "deltas",
            "evidence",
            "knowledge",
            "holdings",
            "prints",
            "skills",
            "cards",
            "card_words",
            "tallies",
            "uses",
            "rounds",
            "outbox",
            "mirror",
        ),
        eraser=DATABASE,
        elsewhere=("published",),
    ),
    Holding(
        "reviews",
        "what is due for a review, and what became of it",
        tables=("jobs", "looks", "counts"),
        eraser=DATABASE,
    ),
    Holding(
        "journal and skills",
        "what is known, as files that you can read and edit",
        places=("MEMORY.md", "USER.md", "projects/", "skills/"),
        eraser=DATABASE,
        stays="with a database elsewhere they are a checkout: hone pull and hone push",
    ),
    Holding(
        "skill files",
        "files of skills that commands may run, if the database is elsewhere",
        "other versions: 30 days",
        places=("served/",),
        backup=Backup.LEFT_OUT,
        eraser=f"{PLACES}skill_files",
        stays="they are laid out again when a skill is used",
    ),
    Holding(
        "spill",
        "tool results that were too long for the conversation",
        LIMITED,
        places=("spill/",),
        eraser=f"{PLACES}spill",
    ),
    Holding(
        "queued",
        "commands that wait for a worker, and the conversations that a queued import brings",
        "conversations: until a worker has stored them; commands: until 20 others have ended",
        places=("queued/",),
        eraser=f"{PLACES}queued",
    ),
    Holding(
        "history",
        "what you typed at the prompt",
        places=("history",),
        eraser=f"{PLACES}HistoryEraser",
        stays="it belongs to the prompt of this machine",
    ),
    Holding(
        "provenance",
        "digests of foreign lines and files, to recognize them later",
        places=("provenance.db*", "provenance/"),
        eraser=f"{PLACES}ProvenanceEraser",
        stays="it is about files on this machine",
    ),
    Holding(
        "quarantine",
        "files that a command tried to plant",
        LIMITED,
        places=("quarantine/",),
        eraser=f"{PLACES}quarantine",
        stays="files of this machine",
    ),
    Holding(
        "damaged copies",
        "the database as it was before a repair or a move",
        places=(
            *("hone-damaged-*", "hone.db.repairing*"),
            *("hone-moved-*", "hone-moved-files-*/", "hone.db.moving*", "hone.db.moving-files/"),
        ),
        backup=Backup.LEFT_OUT,
        eraser=f"{PLACES}CopyEraser",
        stays="copies of a file of this home",
    ),
    Holding(
        "exports",
        "the names of files that Hone wrote elsewhere",
        places=("exports.json",),
        backup=Backup.LEFT_OUT,
        eraser="hone.features.erasing.exports:ExportEraser",
        stays="it names files on this machine",
    ),
    Holding(
        "erasures",
        "numbers and names of what was erased, without text",
        "for good: a restored backup is erased by them",
        tables=("erasures",),
    ),
    Holding(
        "settings",
        "hone.toml, your own prompt texts and your named helpers",
        "until you change them",
        places=("hone.toml", "prompts/", "agents/"),
        stays="each home has its own",
    ),
    Holding(
        "rules",
        "which folders, files and instructions you trust, and what is allowed and denied",
        "until you change them",
        places=(*RULES.fixed, *CONSENT.fixed),
        backup=Backup.ASKED,
    ),
    Holding(
        "documents",
        "templates, experiments, long results and rules, where the database is elsewhere",
        "as long as in a home",
        elsewhere=("documents",),
        eraser=f"{PLACES}spill",
    ),
    Holding(
        "keys",
        "keys of model providers and of this server, and which browsers are signed in",
        "until you remove them",
        places=(
            *("keys.json", "serve.key", "serve-keys.json", "serve-keys-used.json"),
            *("serve-logins.json", "serve-tickets.json", "serve-address.json"),
        ),
        backup=Backup.LEFT_OUT,
        stays="keys never leave this machine",
        elsewhere=("serve_values",),
    ),
    Holding(
        "users",
        "who may use a team's Hone: names, digests of keys, limits, and what happened at the door; and the "
        "folders of users on a server, for what commands run. None of it is something that users said",
        "users and keys: until they are erased; the audit log: a year, or as long as [serve] says",
        places=("users/",),
        backup=Backup.LEFT_OUT,
        stays="they belong to a server",
        elsewhere=("users", "user_keys", "audit", "user_rates", "user_requests", "guesses", "additions"),
    ),
    Holding(
        "locks and caches",
        "locks, caches of tools that can be filled again, a name of the home for a database elsewhere, and "
        "what servers on one database tell each other at a moment",
        "caches: 30 days after their last use",
        places=("*.lock", "locks/", "caches/", "checkout"),
        backup=Backup.LEFT_OUT,
        stays="they belong to this machine",
        elsewhere=("turns", "questions", "listeners", "posts"),
    ),
)


def all_holdings(parts: Iterable[Part]) -> tuple[Holding, ...]:
    """Return the kernel's holdings and those of these parts: `all_holdings(hone.parts("holdings"))`."""
    return (*HOLDINGS, *(each for part in parts for each in part.holdings()))
