"""Store any text, arrays and the words of a text in PostgreSQL.

PostgreSQL's text cannot hold a NUL. NUL becomes two characters, and so does the escape character. The escape
keeps the order of texts and of their prefixes, so that comparisons in the database stay correct.
"""

from collections.abc import Iterable

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.string import StrDumper, TextLoader

MARK = "\x01"
NUL, ITSELF = MARK + "\x01", MARK + "\x02"


def escape(text: str) -> str:
    return text.replace(MARK, ITSELF).replace("\0", NUL) if MARK in text or "\0" in text else text


def unescape(text: str) -> str:
    return text.replace(NUL, "\0").replace(ITSELF, MARK) if MARK in text else text


def array(items: Iterable[str | float | None]) -> str:
    """Write an array in the server's format. psycopg looks up the type of each element first, which takes
    longer than everything else that an append does on this side."""
    return "{" + ",".join(map(_element, items)) + "}"


def _element(item: str | float | None) -> str:
    if isinstance(item, str):
        quoted = item.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    return "NULL" if item is None else str(item)


class _Dumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escape(obj))


class _Loader(TextLoader):
    def load(self, data: Buffer) -> bytes | str:
        text = super().load(data)
        return unescape(text) if isinstance(text, str) else text


class _BinaryLoader(_Loader):
    format = Format.BINARY


class WordVector(bytes):
    """A tsvector in the server's binary format, which it reads in a third of the time."""


class _VectorDumper(Dumper):
    format = Format.BINARY
    oid = 3614  # tsvector

    def dump(self, obj: WordVector) -> Buffer | None:
        return obj


def adapt(connection: Connection[tuple[object, ...]]) -> None:
    """Make this connection escape the text that it sends and restore what it reads."""
    connection.adapters.register_dumper(str, _Dumper)
    connection.adapters.register_dumper(WordVector, _VectorDumper)
    for loader in (_Loader, _BinaryLoader):
        connection.adapters.register_loader("text", loader)
