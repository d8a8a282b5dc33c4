"""Classify damage in a database, so that the advice fits.

Lost text exists nowhere else. An index, a holding or a card is made from other rows and can be rebuilt.
Anything else affects nobody.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import apsw
from msgspec import Struct

from hone.core.regex import regex
from hone.stores.writer import FOREIGN


class DamageKind(StrEnum):
    TEXT = "lost text"
    INDEX = "lost index"
    COSMETIC = "cosmetic"


class Damage(Struct, frozen=True):
    """`part` is what has to be rebuilt: the name of an index, or one of the parts below. `broken` are the
    trees of that part that SQLite cannot walk."""

    kind: DamageKind
    text: str
    part: str = ""
    broken: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


ADVICE = {
    DamageKind.TEXT: "What can be read is still served. Save it to a repaired copy: hone doctor --repair",
    DamageKind.INDEX: "No text is lost. Rebuild the index in place: hone doctor --repair",
    DamageKind.COSMETIC: "Nothing is lost and nothing has to be done.",
}


def advise(found: Collection[Damage]) -> str:
    """Return what to do about the worst damage."""
    kinds = {damage.kind for damage in found}
    return next(advice for kind, advice in ADVICE.items() if kind in kinds)


class BTree(Struct, frozen=True):
    """A table or an index of the schema. `is_whole` means that it has an entry for each row; `count` is the
    number of its entries, None if it cannot be walked."""

    name: str
    table: str
    root: int
    is_index: bool
    is_whole: bool = True
    columns: frozenset[str] = frozenset()
    count: int | None = 0


WORDS, CARDS, HOLDINGS, NUMBERS, SPACE = "words", "cards", "holdings", "numbers", "space"
VECTORS, HISTORIES, HOURS = "vectors", "histories", "hours"
"""Parts of a database that are built from the rest of it."""
DERIVED = {"backlog": WORDS, "cards": CARDS, "holdings": HOLDINGS, "skills": HOLDINGS}
DERIVED |= dict.fromkeys(("embedders", "vectors", "vector_codes", "meanings"), VECTORS)
DERIVED |= {"histories": HISTORIES, "spending_hours": HOURS}
FULL_TEXT = {"passage_words": WORDS, "card_words": CARDS}
VERIFIED: Mapping[str, frozenset[str]] = {
    "contents": frozenset({"digest"}),
    "prefixes": frozenset({"digest"}),
    "knowledge": frozenset({"digest"}),
    "chains": frozenset({"prefix"}),
    "nodes": frozenset({"parent", "content"}),
    "sessions": frozenset({"head", "chain"}),
}
"""Columns with a digest or a hash: if an index disagrees with one, the index is wrong."""

TREES = """
SELECT name, tbl_name, rootpage, type = 'index', sql IS NULL OR sql NOT LIKE '% WHERE %',
    CASE WHEN type = 'index' THEN 'INDEXED BY "' || name || '"'
        WHEN sql LIKE '%WITHOUT ROWID%' THEN 'INDEXED BY "sqlite_autoindex_' || name || '_1"'
        ELSE 'NOT INDEXED' END
FROM sqlite_schema WHERE rootpage > 0
"""
OWNER = "SELECT rootpage FROM dbstat AS d JOIN sqlite_schema AS s ON s.name = d.name WHERE pageno = ? LIMIT 1"
COLUMNS = "SELECT name FROM pragma_index_xinfo(?) WHERE name IS NOT NULL"
_BROKEN = regex(r"Tree (\d+) ")
_INDEXED = regex(r"(?:missing from|entries in|entry in|differ from|of) index (\S+)")
_TABLE = regex(r"(?:FTS5 table \w+\.|table \"|value in |order for )(\w+)")
_PLACED = regex(r"(?:of|on) page (\d+)$")
_UNUSED = regex(r"Page \d+: never used")


def read_trees(connection: apsw.Connection, *, walk: bool = True) -> list[BTree]:
    """Return all tables and indexes, and walk each of them to count its entries."""
    rows: list[Any] = connection.execute(TREES).fetchall()
    trees: list[BTree] = []
    for name, table, root, index, whole, way in rows:
        columns = _columns(connection, name) if index else frozenset[str]()
        count = _count(connection, table, way) if walk and whole else 0
        trees.append(BTree(name, table, root, bool(index), bool(whole), columns, count))
    return trees


def _columns(connection: apsw.Connection, index: str) -> frozenset[str]:
    return frozenset(str(name) for (name,) in connection.execute(COLUMNS, (index,)))


def _count(connection: apsw.Connection, table: str, way: str) -> int | None:
    """Return the number of entries in a tree, None if it cannot be walked. SQLite counts rows by any index it
    likes, but uses the named one for a sum."""
    try:
        return int(connection.execute(f'SELECT coalesce(sum(1), 0) FROM "{table}" {way}').get)
    except FOREIGN:
        return None


def place(connection: apsw.Connection, line: str) -> str:
    """Prefix the tree that a page belongs to, where SQLite leaves that out."""
    found = _PLACED.search(line)
    if not found or _BROKEN.match(line) or line.startswith("Freelist: "):
        return line
    try:
        root: Any = connection.execute(OWNER, (int(found[1]),)).get
    except FOREIGN:
        return line
    return f"Tree {root} page {found[1]}: {line}" if root else line


def part_of(table: str) -> str:
    """Return the part that a table belongs to; empty for one whose content exists nowhere else."""
    for name, part in FULL_TEXT.items():
        if table == name or table.startswith(f"{name}_"):
            return part
    return DERIVED.get(table, "")


def classify(lines: Iterable[str], trees: Iterable[BTree]) -> Iterator[Damage]:
    """Turn the lines of SQLite's check into one damage for each table and index, and one for unused pages."""
    known = {tree.name: tree for tree in trees}
    about, broken = _sort(lines, known)
    unsure = known.keys() & about.keys()
    for name, said in about.items():
        sure = name in broken
        text, held = _describe(name, known.get(name), said, broken=sure), (name,) if sure else ()
        if name == SPACE:
            yield _judge_space(said, text)
        elif part := part_of(known[name].table if name in known else name):
            yield Damage(DamageKind.INDEX, text, part, held)
        elif name in known and _is_index_wrong(known[name], known, unsure, sure=sure):
            yield Damage(DamageKind.INDEX, text, name, held)
        else:
            yield Damage(DamageKind.TEXT, text)


def _sort(lines: Iterable[str], known: Mapping[str, BTree]) -> tuple[Mapping[str, list[str]], set[str]]:
    """Group the lines by subject, and return the trees that cannot be walked."""
    roots = {tree.root: tree.name for tree in known.values()}
    about: defaultdict[str, list[str]] = defaultdict(list)
    broken: set[str] = set()
    for line in lines:
        name = _subject(line, roots)
        about[name].append(line)
        if _BROKEN.match(line):
            broken.add(name)
    for tree in known.values():
        if tree.count is None and tree.name not in broken:
            broken.add(tree.name)
            about[tree.name].append("it cannot be read from end to end")
    return about, broken


def _describe(name: str, tree: BTree | None, said: Sequence[str], *, broken: bool) -> str:
    more = f", and {len(said) - 1:,} more" if len(said) > 1 else ""
    says = f"SQLite: {said[0]}{more}"
    if name == SPACE:
        return f"The list of free pages is not complete ({says})."
    if name in FULL_TEXT:
        return f"The full-text index {name} is damaged ({says})."
    if tree and tree.is_index and not broken:
        return f"The table {tree.table} and its index {name} differ ({says})."
    return f"The {'index' if tree.is_index else 'table'} {name} is damaged ({says})." if tree else f"{says}."


def _subject(line: str, roots: Mapping[int, str]) -> str:
    """Return the table or the index that a line is about; empty if unknown."""
    if found := _BROKEN.match(line):
        return roots.get(int(found[1]), "")
    if found := _TABLE.search(line):
        return str(found[1])
    if _UNUSED.match(line) or line.startswith("Freelist: "):
        return SPACE
    found = _INDEXED.search(line)
    return str(found[1]) if found else ""


def _judge_space(said: Collection[str], text: str) -> Damage:
    """Judge the list of free pages. Unused pages only waste space, but a wrong list is dangerous: it lets
    SQLite overwrite data."""
    harmless = all(_UNUSED.match(line) for line in said)
    return Damage(DamageKind.COSMETIC if harmless else DamageKind.INDEX, text, SPACE)


def _is_index_wrong(tree: BTree, known: Mapping[str, BTree], unsure: Collection[str], *, sure: bool) -> bool:
    """Tell whether the rows are right where an index differs from them: the index cannot be walked, or
    digests or other indexes confirm all of its columns. Otherwise nobody knows which is right."""
    if not tree.is_index or sure:
        return tree.is_index
    rows = known[tree.table].count
    if rows is None or (tree.is_whole and (tree.count or 0) > rows):
        return False  # the table lacks what the index has
    vouched = set(VERIFIED.get(tree.table, ()))
    for other in known.values():
        if other.is_index and other.is_whole and other.table == tree.table and other.name not in unsure:
            vouched |= other.columns
    return tree.columns <= vouched
