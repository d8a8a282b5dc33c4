"""The table of the kernel's own holdings: where text is stored in a home, and for how long.

A feature or a plugin adds its own with `Part.holdings`. A test fails for a table or a file of the home that
no holding names.
"""

from collections.abc import Iterable

from hone.core.holding import Backup, Holding
from hone.core.part import Part

HOLDINGS = (
    Holding(
        "conversations",
        "every message, the prompts they were sent with, titles, costs",
        tables=(
            "contents",
            "nodes",
            "chains",
            "prefixes",
            "sessions",
            "spending",
            "backlog",
            "passage_words",
        ),
        places=("hone.db", "hone.db-wal", "hone.db-shm"),
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
    ),
    Holding(
        "reviews",
        "what is due for a review, and what became of it",
        tables=("jobs", "looks", "counts"),
    ),
    Holding(
        "journal and skills",
        "what is known, as files that you can read and edit",
        places=("MEMORY.md", "USER.md", "projects/", "skills/"),
    ),
    Holding("spill", "tool results that were too long for the conversation", places=("spill/",)),
    Holding("history", "what you typed at the prompt", places=("history",)),
    Holding(
        "provenance",
        "digests of foreign lines and files, to recognize them later",
        places=("provenance.db*", "provenance/"),
    ),
    Holding("quarantine", "files that a command tried to plant", places=("quarantine/",)),
    Holding(
        "settings",
        "hone.toml and your own prompt texts",
        "until you change them",
        places=("hone.toml", "prompts/"),
    ),
    Holding(
        "rules",
        "which folders, files and instructions you trust, and what is allowed and denied",
        "until you change them",
        places=("trusted.json", "untrusted.json", "instructions.json", "approved.json", "permissions.json"),
        backup=Backup.ASKED,
    ),
    Holding(
        "keys",
        "keys of model providers and of this server",
        "until you remove them",
        places=("keys.json", "serve.key", "serve-keys.json", "serve-keys-used.json"),
        backup=Backup.LEFT_OUT,
    ),
    Holding(
        "locks and caches",
        "locks, and caches of tools that can be filled again",
        "caches: 30 days after their last use",
        places=("*.lock", "locks/", "caches/"),
        backup=Backup.LEFT_OUT,
    ),
)


def all_holdings(parts: Iterable[Part]) -> tuple[Holding, ...]:
    """Return the kernel's holdings and those of these parts: `all_holdings(hone.parts("holdings"))`."""
    return (*HOLDINGS, *(each for part in parts for each in part.holdings()))
