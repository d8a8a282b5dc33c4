"""The tables that move between SQLite and PostgreSQL, and the reasons for those that do not.

A test compares this list with both schemas: a new table or column is on it, or the test fails.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

Row = tuple[Any, ...]
"""Text, bytes, integers, floats and None. A truth value is 0 or 1, as in SQLite."""


class MovedTable(Struct, frozen=True):
    """One table as it moves. `name` is what PostgreSQL calls it.

    key:     what the rows are ordered by when they are compared
    sqlite:  its name in SQLite, if that is another one
    links:   columns that hold a row's number in SQLite and its digest elsewhere, with the table of that row
    content: whether the first column is the digest of the second
    used_in: for contents: the table and the column that name them, and what that table is ordered by. SQLite
             numbers contents in the order of their first use
    checkout: whether the rows are about the files of one folder
    files:   whether a home has files in their place; of those that belong to a machine, its own move
    made_again: columns of either database that are not moved, with the reason
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    sqlite: str = ""
    links: Mapping[str, str] = {}
    content: bool = False
    used_in: tuple[str, str, str] | None = None
    checkout: bool = False
    files: bool = False
    made_again: Mapping[str, str] = {}

    @property
    def in_sqlite(self) -> str:
        return self.sqlite or self.name


def _table(name: str, columns: str, key: str, **more: Any) -> MovedTable:
    return MovedTable(name, tuple(columns.split()), tuple(key.split()), **more)


def _contents(name: str, *used_in: str) -> MovedTable:
    return _table(name, "digest body", "digest", content=True, used_in=used_in)


TABLES = (
    _contents("prefixes", "chains", "prefix", "id"),
    _contents("contents", "nodes", "content", "id"),
    _table("chains", "id prefix", "id", links={"prefix": "prefixes"}),
    _table(
        "nodes",
        "id chain parent former content depth trust at hash",
        "id",
        links={"content": "contents"},
    ),
    _table(
        "sessions",
        "id title origin folder parent shared created tree model opened opening messages updated chain head "
        "hash touched",
        "id",
        made_again={
            "mode": "a mode that was chosen for the next turn on a page is chosen again",
        },
    ),
    _table("spending", "id session at model origin input cached written output cost", "id"),
    _table("histories", "session messages digest", "session messages"),
    _contents("knowledge", "deltas", "after", "change"),
    _table(
        "changes",
        "id at target deed standing confirmed cause about sources actor session parent tool call reason "
        "ground quotes batch platform",
        "id",
    ),
    _table("deltas", "change position path before after", "change position"),
    _table("evidence", "change position session message trust digest", "change position"),
    _table("holdings", "target path digest", "target path"),
    _table("published", "target path digest inode modified", "target path", sqlite="prints", checkout=True),
    _table(
        "skills",
        "name document birth pinned archived project",
        "name",
        made_again={"card": "the summary of a skill is made again when somebody asks for skills"},
    ),
    _table(
        "tallies",
        "skill views uses patches background_views background_patches last_use succeeded corrected",
        "skill",
    ),
    _table("uses", "skill day session result", "skill day session"),
    _table("rounds", "id at why session library error report changes", "id"),
    _table("outbox", "change tries refused error", "change"),
    _table(
        "jobs",
        "id session tree messages topics created why state tries review cached error ended changes others",
        "id",
        made_again={
            "due": "a review that rests is tried at once in its new place",
            "rests": "a review that rests is tried at once in its new place",
        },
    ),
    _table("counts", "tree topic count", "tree topic"),
    _table("looks", "session tree messages folder due cue turns tainted", "session"),
    _table("erasures", "id name at what finished", "id"),
    _table("documents", "kind name digest body at", "kind name", files=True),
)
"""Ordered so that each row comes after those that it refers to."""

COUNTERS = ("changes", "jobs", "rounds")
"""Tables whose ids are counted by owner. The next one has the same id on both sides."""
SEQUENCES = {"nodes": "node_ids", "chains": "chain_ids", "spending": "spending_ids", "sessions": "touches"}
"""Tables whose numbers come from a PostgreSQL sequence that all owners share. It never falls behind."""
SEQUENCE_COLUMNS = {"sessions": "touched"}

WORDS, SUMS, CARDS = "the search index", "sums of what was spent", "summaries of skills"
CHECKPOINTS = "old versions of files are kept for some weeks where they were made"
VECTORS = "vectors, by the embedder in the background"
MADE_AGAIN: Mapping[str, str] = {
    "passage_words": WORDS,
    "passages": WORDS,
    "backlog": WORDS,
    "spending_hours": SUMS,
    "cards": CARDS,
    "card_words": CARDS,
    "embedders": VECTORS,
    "vectors": VECTORS,
    "vector_codes": VECTORS,
    "meanings": VECTORS,
}
"""Tables that are derived from others, with what they hold."""
OPERATORS = "what is kept about the users of a team belongs to the operator of the database"
APART: Mapping[str, str] = {
    "owners": "the counters and the name of a home move as one row",
    "mirror": "the counters and the name of a home move as one row",
    "checkpoint_blobs": CHECKPOINTS,
    "checkpoint_rewinds": CHECKPOINTS,
    "checkpoint_changes": CHECKPOINTS,
    "moves": "a note about the last move, written by each move",
    "migrations": "which migrations this database has seen",
    "additions": "which additions this database has seen",
    "chores": "what workers have to do beside reviews follows from the other tables",
    "turns": "who answers in which conversation at this moment",
    "questions": "questions of turns that are under way at this moment",
    "listeners": "which servers listen to which turns at this moment",
    "posts": "events on their way between servers",
    "serve_values": "sign-ins at the servers of this database; at another place people sign in again",
    **dict.fromkeys(("users", "user_keys", "audit", "user_rates", "user_requests", "guesses"), OPERATORS),
}
"""Tables whose rows are not the owner's, or that move in another form."""
