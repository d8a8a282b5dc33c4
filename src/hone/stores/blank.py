"""The first pages of a new database in the place of those of a damaged one, which say where its tables begin.

Every file that one version of Hone makes has its tables at the same pages; whether this one has is looked at.
"""

import shutil
from contextlib import closing
from pathlib import Path

from hone.stores.database import PATIENCE, connect, create, migrate

PAGE = 4096
COUNT, FREE = slice(28, 32), slice(32, 40)
"""Where the first page says how many there are, and which of them are free."""
TABLE, INDEX = (5, 13), (2, 10)
PAGES = "SELECT pageno, name = 'sqlite_schema' FROM dbstat"


def patched(path: Path, copy: Path) -> Path | None:
    """A copy of the file, its schema a new one's; None if its tables are not where a new file has them."""
    fresh, made = copy.with_name(f"{copy.name}.fresh"), copy.with_name(f"{copy.name}.patched")
    create(fresh)
    with closing(connect(fresh, PATIENCE)) as connection:
        migrate(connection, fresh, PATIENCE)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages = {int(str(number)): bool(schema) for number, schema in connection.execute(PAGES)}
    new = fresh.read_bytes()
    create(made)
    shutil.copyfile(path, made)
    with made.open("r+b") as file:
        beginning = file.read(len(new))
        size = made.stat().st_size
        if size < len(new) or not _alike(
            beginning, new, [page for page, schema in pages.items() if not schema]
        ):
            return None
        for page in (page for page, schema in pages.items() if schema):
            file.seek((page - 1) * PAGE)
            file.write(_page(new, page, size))
    return made


def _alike(old: bytes, new: bytes, pages: list[int]) -> bool:
    """Whether nearly all of these pages are of a table here where they are of a table there."""
    kinds = [tuple(data[(page - 1) * PAGE] in TABLE for data in (old, new)) for page in pages]
    known = [data in (*TABLE, *INDEX) for data in (old[(page - 1) * PAGE] for page in pages)]
    alike = sum(one == other and sure for (one, other), sure in zip(kinds, known, strict=True))
    return alike * 10 >= len(pages) * 9


def _page(new: bytes, page: int, size: int) -> bytes:
    data = bytearray(new[(page - 1) * PAGE : page * PAGE])
    if page == 1:
        data[COUNT] = (size // PAGE).to_bytes(4)
        data[FREE] = bytes(8)
    return bytes(data)
