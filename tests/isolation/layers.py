"""The two walls between owners, and how each is taken away to see whether the other one holds."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from hone.stores.postgres.database import Rows

FILTER = re.compile(r"\b(?:\w+\.)?owner = %\(owner\)s")
TABLES = """
SELECT relname::text FROM pg_class
WHERE relnamespace = 'hone'::regnamespace AND relkind = 'r' AND relrowsecurity
"""


@contextmanager
def without_row_security(url: str) -> Iterator[None]:
    """Let the database show every row to a query that asks for it."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        assert len(tables) > 30
        for table in tables:
            connection.execute(f"ALTER TABLE hone.{table} DISABLE ROW LEVEL SECURITY")
        try:
            yield
        finally:
            for table in tables:
                connection.execute(f"ALTER TABLE hone.{table} ENABLE ROW LEVEL SECURITY")


@contextmanager
def without_filters() -> Iterator[None]:
    """Take the owner out of every query of ours that reads."""
    patch = pytest.MonkeyPatch()
    execute, stream = Rows.execute, Rows.stream

    def unfilter(query: str) -> str:
        reads = query.lstrip().startswith(("SELECT", "WITH")) and not re.search(
            r"\b(INSERT|UPDATE|DELETE)\b", query
        )
        return FILTER.sub("true", query) if reads else query

    def unfiltered_execute(self: Rows, query: str, **values: Any) -> Any:
        return execute(self, unfilter(query), **values)

    def unfiltered_stream(self: Rows, query: str, types: Any, **values: Any) -> Any:
        return stream(self, unfilter(query), types, **values)

    patch.setattr(Rows, "execute", unfiltered_execute)
    patch.setattr(Rows, "stream", unfiltered_stream)
    try:
        yield
    finally:
        patch.undo()
