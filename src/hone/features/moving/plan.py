"""Describe what a move copies, what is rebuilt, and what stays in the home."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from hone.core.holding import Holding
from hone.stores.moving.tables import MADE_AGAIN, TABLES

NAMES = {table.in_sqlite: table.name for table in TABLES}
"""Holdings name tables as SQLite does."""


def describe_rows(holdings: Iterable[Holding], counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the name and the rows of each holding whose tables move."""
    for holding in holdings:
        tables = (*holding.tables, *holding.elsewhere)
        moved = [NAMES[table] for table in tables if table in NAMES]
        if moved:
            yield holding.name, sum(counts[table] for table in moved)


def list_made_again(holdings: Iterable[Holding]) -> list[str]:
    """Return what is not copied because it is derived from the rest."""
    tables = (table for holding in holdings for table in holding.tables)
    return list(dict.fromkeys(MADE_AGAIN[table] for table in tables if table in MADE_AGAIN))


def list_staying(home: Path, holdings: Iterable[Holding]) -> Iterator[tuple[str, str]]:
    """Yield the names of holdings whose places in this home stay, with the reason."""
    names = [f"{each.name}/" if each.is_dir() else each.name for each in sorted(home.iterdir())]
    for holding in holdings:
        if holding.stays and any(fnmatchcase(name, place) for name in names for place in holding.places):
            yield holding.name, holding.stays
