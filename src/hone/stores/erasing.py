"""Erase words, conversations and lessons from a home's database, in one transaction.

A record of each erasure stays, by numbers and names only, so that it can be applied to an older backup: see
`hone.stores.carrying`.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apsw
from msgspec import Struct

from hone.core.erasure import Erasure, Scrubber, is_blank
from hone.core.ids import SessionId
from hone.core.ledger import (
    COPY,
    ITEM,
    MEMORY,
    PROJECT,
    SECTION,
    SKILL,
    Actor,
    Author,
    Change,
    ChangeKind,
    Target,
)
from hone.core.messages import canonical, digest, encode, user
from hone.core.prefix import Prefix
from hone.stores import passages
from hone.stores.record import record
from hone.stores.redacting import (
    HOLDERS,
    Rewrite,
    fetch,
    readable,
    rehash,
    replace_contents,
    replace_knowledge,
    replace_prefixes,
    scan,
    scrub_message,
)
from hone.stores.sqlite import delete_session
from hone.stores.tree import moment

TEXTS: Mapping[str, tuple[str, ...]] = {
    "sessions": ("title", "folder"),
    "changes": ("cause", "sources", "tool", "call", "reason", "quotes"),
    "jobs": ("why", "error"),
    "looks": ("folder", "cue"),
    "rounds": ("why", "library", "error", "report"),
    "outbox": ("error",),
}
"""Columns that hold words of people and models, besides the contents."""
NAMES: Mapping[str, tuple[str, ...]] = {
    "changes": ("target",),
    "deltas": ("path",),
    "holdings": ("target", "path"),
    "prints": ("target", "path"),
    "skills": ("name",),
    "tallies": ("skill",),
    "uses": ("skill",),
}
"""Columns that name what is known. A name that contains the words becomes a random one."""
KEYS = {
    "sessions": "id",
    "changes": "id",
    "jobs": "id",
    "looks": "session",
    "rounds": "id",
    "outbox": "change",
}
WHOLE = ("contents", "prefixes", "knowledge")
TARGETS = "SELECT DISTINCT target FROM changes"
EVIDENCE = "SELECT change, position FROM evidence WHERE session = ?"
RESTING = (
    "SELECT id FROM changes WHERE session = ?1 OR id IN (SELECT change FROM evidence WHERE session = ?1)"
)
FAMILY = "SELECT id FROM sessions WHERE parent = ? AND origin <> 'user'"
PUT = "INSERT INTO erasures (name, at, what, finished) VALUES (?, ?, ?, 0)"
DELTAS = "SELECT change, position, before, after FROM deltas"
PATHS = "SELECT min(change), position, path FROM deltas GROUP BY path"
SPARE = 1 << 62
"""A number that no content has."""
SPELLED = """
CREATE VIRTUAL TABLE temp.spelled USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2')
"""
RECORDS = "SELECT name, at, what FROM erasures ORDER BY id"
NOTED = Change(MEMORY, ChangeKind.ERASE, (), Author(Actor.OWNER), confirmed=True)
"""What the ledger says about an erasure."""
CONVERSATION = "conversation"
"""Stands for the messages of a session that is deleted as a whole."""


class Erased(Struct):
    """What an erasure touched, by numbers and names that reveal nothing about the text."""

    sessions: list[str] = []
    nodes: list[int] = []
    roots: list[int] = []
    deltas: list[tuple[int, int]] = []
    rows: list[tuple[str, str, str]] = []
    evidence: list[tuple[int, int]] = []
    renamed: list[tuple[int, str]] = []
    """A change of each renamed target, and the new name."""
    paths: list[tuple[int, int, str]] = []
    holdings: list[str] = []
    """Holdings outside the database that had it."""


class Found(Struct, frozen=True):
    """Where the words are: the table, and the number of its rows with them."""

    table: str
    count: int


def find(connection: apsw.Connection, what: Erasure) -> list[Found]:
    """Return which tables hold what is to be erased."""
    scrub = Scrubber(what.words)
    found = [Found(table, count) for table in WHOLE if (count := _count(connection, table, what, scrub))]
    for table, columns in (*TEXTS.items(), *NAMES.items()):
        rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table}")
        if count := sum(any(scrub.count(str(each)) for each in row) for row in rows):
            found.append(Found(table, count))
    for id in family(connection, what.sessions):
        length = connection.execute("SELECT messages FROM sessions WHERE id = ?", (id,)).get
        found.append(Found(CONVERSATION, int(length)))
        found.append(Found("evidence", len(fetch(connection, EVIDENCE, id))))
    return [each for each in found if each.count]


def texts(connection: apsw.Connection, words: tuple[str, ...]) -> list[str]:
    """Return the texts of messages that hold the words."""
    scrub = Scrubber(words)
    rows = [(None, body) for (body,) in scan(connection, "SELECT body FROM contents") if scrub.finds(body)]
    parts = (part for _, message in readable(rows) for part in message.parts)
    return [text for part in parts if scrub.count(text := str(getattr(part, "text", "")))]


def family(connection: apsw.Connection, sessions: Iterable[SessionId]) -> list[SessionId]:
    """Return those of these sessions that exist, with the forks that Hone made of them."""
    found: dict[SessionId, None] = {}
    waiting = list(sessions)
    while waiting:
        id = waiting.pop()
        if id not in found and connection.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).get:
            found[id] = None
            waiting += (SessionId(each) for (each,) in fetch(connection, FAMILY, id))
    return list(found)


def _count(connection: apsw.Connection, table: str, what: Erasure, scrub: Scrubber) -> int:
    rows = scan(connection, f"SELECT digest, body FROM {table}")
    return sum(scrub.finds(body) or (table == "knowledge" and name in what.contents) for name, body in rows)


def erase(connection: apsw.Connection, what: Erasure, rewrite: Rewrite, at: int) -> Erased:
    """Erase from every table and record that, all or nothing. Return what changed."""
    erased, scrub = Erased(), Scrubber(what.words)
    chains = _erase_messages(connection, scrub, erased)
    for id in family(connection, what.sessions):
        forget_session(connection, id, erased)
    rehash(connection, chains)
    _erase_guesses(connection, what.words)
    _erase_reasons(connection, what.changes, erased)
    _erase_texts(connection, scrub, erased)
    _erase_knowledge(connection, what, scrub, rewrite, erased)
    _rename(connection, what, scrub, erased)
    _rename_paths(connection, scrub, erased)
    _clear_separators(connection, what.words)
    # Vectors of messages are gone with them. Nobody knows which short text the others were made from.
    connection.execute("DELETE FROM meanings")
    # A digest of what was said would confirm a guess of the words.
    connection.execute("DELETE FROM histories")
    erased.sessions += what.sessions
    note(connection, erased, at)
    return erased


def finish(connection: apsw.Connection) -> None:
    """Record that the files are done, too."""
    connection.execute("UPDATE erasures SET finished = 1 WHERE finished = 0")


def unfinished(connection: apsw.Connection) -> list[Erased]:
    """Return the erasures whose files a killed process may have left behind."""
    rows = fetch(connection, "SELECT what FROM erasures WHERE finished = 0")
    return [decode_record(what) for (what,) in rows]


def decode_record(what: str) -> Erased:
    return Erased(**json.loads(what))


def encode_record(erased: Erased) -> str:
    return canonical({each: getattr(erased, each) for each in Erased.__struct_fields__})


def _erase_messages(connection: apsw.Connection, scrub: Scrubber, erased: Erased) -> set[int]:
    """Erase words from messages. Return the chains to rehash."""
    rows = [row for row in scan(connection, "SELECT id, body FROM contents") if scrub.finds(row[1])]
    made = {id: scrub_message(message, scrub) for id, message in readable(rows)}
    nodes, chains = replace_contents(connection, made)
    erased.nodes += nodes
    begun = [row for row in scan(connection, "SELECT id, body FROM prefixes") if scrub.finds(row[1])]
    roots = replace_prefixes(connection, {id: scrub_prefix(Prefix.decode(body), scrub) for id, body in begun})
    for chain in roots:
        erased.roots += (
            id for (id,) in connection.execute("SELECT min(id) FROM nodes WHERE chain = ?", (chain,))
        )
    return chains | roots


def scrub_prefix(prefix: Prefix, scrub: Scrubber) -> Prefix:
    tools = tuple(map(scrub.json_text, prefix.tools))
    return Prefix(prefix.model, scrub.text(prefix.system), tools, scrub.json_text(prefix.sampling))


def forget_session(connection: apsw.Connection, session: SessionId, erased: Erased) -> None:
    """Delete a session. What was learned from it stays, without its quotes, and with random digests."""
    evidence = fetch(connection, EVIDENCE, session)
    for change, position in evidence:
        connection.execute(
            "UPDATE evidence SET digest = ? WHERE change = ? AND position = ?",
            (secrets.token_hex(32), change, position),
        )
    erased.evidence += [(change, position) for change, position in evidence]
    changes = [id for (id,) in fetch(connection, RESTING, session)]
    _erase_reasons(connection, changes, erased)
    if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).get:
        delete_session(connection, session)


def _erase_reasons(connection: apsw.Connection, changes: Iterable[int], erased: Erased) -> None:
    for id in changes:
        connection.execute("UPDATE changes SET reason = '', quotes = '[]' WHERE id = ?", (id,))
        erased.rows += (("changes", str(id), column) for column in ("reason", "quotes"))


def _erase_guesses(connection: apsw.Connection, words: Iterable[str]) -> None:
    """Replace digests of erased messages that consisted of just these words: they could be guessed."""
    for each in words:
        guess = digest(encode(user(each)))
        if not connection.execute("SELECT 1 FROM contents WHERE digest = ?", (guess,)).get:
            row = (secrets.token_hex(32), guess)
            connection.execute("UPDATE evidence SET digest = ? WHERE digest = ?", row)


def _erase_texts(connection: apsw.Connection, scrub: Scrubber, erased: Erased) -> None:
    for table, columns in TEXTS.items():
        key = KEYS[table]
        for id, *texts in fetch(connection, f"SELECT {key}, {', '.join(columns)} FROM {table}"):
            for column, text in zip(columns, texts, strict=True):
                if scrub.count(text):
                    made = without_blanks(scrub.json_text(text))
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (made, id))
                    erased.rows.append((table, str(id), column))


def without_blanks(text: str) -> str:
    """Remove list items that are now empty, such as a quote."""
    if text.startswith("["):
        left = [each for each in json.loads(text) if not (isinstance(each, str) and is_blank(each))]
        return canonical(left)
    return text


def _erase_knowledge(
    connection: apsw.Connection, what: Erasure, scrub: Scrubber, rewrite: Rewrite, erased: Erased
) -> None:
    made: dict[str, bytes] = {}
    for name, body in scan(connection, "SELECT digest, body FROM knowledge"):
        if name in what.contents or scrub.finds(body):
            target, path = [*fetch(connection, HOLDERS, name), (MEMORY, "")][0]
            made[name] = rewrite(target, path, body, name in what.contents)
    erased.deltas += _deltas(connection, made)
    replace_knowledge(connection, made)


def _deltas(connection: apsw.Connection, names: Iterable[str]) -> Iterator[tuple[int, int]]:
    wanted = set(names)
    for change, position, before, after in fetch(connection, DELTAS):
        if before in wanted or after in wanted:
            yield change, position


def _rename(connection: apsw.Connection, what: Erasure, scrub: Scrubber, erased: Erased) -> None:
    """Give targets whose names hold the words random ones; publishing moves their files."""
    for change, target in fetch(connection, "SELECT min(id), target FROM changes GROUP BY target"):
        is_key = target.startswith(ITEM) and target.partition("/")[2] in what.keys
        if is_key or scrub.count(target):
            erased.renamed.append((change, new_name(target)))
            rename_target(connection, target, erased.renamed[-1][1])


def rename_target(connection: apsw.Connection, target: str, new: str) -> None:
    """Call a target by another name everywhere."""
    for table in ("changes", "holdings", "prints"):
        connection.execute(f"UPDATE {table} SET target = ? WHERE target = ?", (new, target))
    if target.startswith(SKILL):
        names = new.removeprefix(SKILL), target.removeprefix(SKILL)
        connection.execute("UPDATE skills SET name = ? WHERE name = ?", names)
        connection.execute("UPDATE tallies SET skill = ? WHERE skill = ?", names)
        connection.execute("UPDATE uses SET skill = ? WHERE skill = ?", names)


def _rename_paths(connection: apsw.Connection, scrub: Scrubber, erased: Erased) -> None:
    """Give files of skills whose names hold the words random ones; publishing moves them."""
    for change, position, path in fetch(connection, PATHS):
        if scrub.count(path):
            erased.paths.append((change, position, f"erased-{secrets.token_hex(4)}"))
            rename_path(connection, path, erased.paths[-1][2])


def rename_path(connection: apsw.Connection, path: str, new: str) -> None:
    """Call a file of a skill by another name everywhere."""
    connection.execute("UPDATE deltas SET path = ? WHERE path = ?", (new, path))
    connection.execute("UPDATE holdings SET path = ? WHERE path = ?", (new, path))


def new_name(target: str) -> str:
    name = f"erased-{secrets.token_hex(4)}"
    if target.startswith(ITEM):
        return f"{target.partition('/')[0]}/{name}"
    kinds = (PROJECT, COPY, SECTION)
    return f"{next((each for each in kinds if target.startswith(each)), SKILL)}{name}"


def _clear_separators(connection: apsw.Connection, words: Sequence[str]) -> None:
    """Rebuild the index of messages if its inner pages still begin like an erased word."""
    gone = [term for term in _terms(connection, words) if not _is_indexed(connection, term)]
    leads = [bytes(lead)[1:] for (lead,) in fetch(connection, "SELECT term FROM passage_words_idx") if lead]
    if any(len(lead) > 3 and term.startswith(lead) for lead in leads for term in gone):
        index_anew(connection)


def index_anew(connection: apsw.Connection) -> None:
    """Rewrite the index of messages. FTS5 does that only with more than one segment, so a word is added and
    removed again."""
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM contents)").get:
        return
    connection.execute("INSERT INTO passage_words (rowid, text) VALUES (?, 'a')", (SPARE,))
    connection.execute("INSERT INTO passage_words (passage_words) VALUES ('optimize')")
    connection.execute(passages.DROP, (SPARE, "a"))


def _terms(connection: apsw.Connection, words: Sequence[str]) -> list[bytes]:
    """Return words as spelled in the index."""
    connection.execute(SPELLED)
    connection.execute("CREATE VIRTUAL TABLE temp.spellings USING fts5vocab (temp, spelled, row)")
    try:
        rows = [(passages.indexed(each),) for each in words]
        connection.executemany("INSERT INTO temp.spelled (text) VALUES (?)", rows)
        return [str(term).encode() for (term,) in fetch(connection, "SELECT term FROM temp.spellings")]
    finally:
        connection.execute("DROP TABLE temp.spellings")
        connection.execute("DROP TABLE temp.spelled")


def _is_indexed(connection: apsw.Connection, term: bytes) -> bool:
    asked = '"' + term.decode().replace('"', '""') + '"'
    found = "SELECT 1 FROM passage_words WHERE passage_words MATCH ? LIMIT 1"
    return connection.execute(found, (asked,)).get is not None


def note(connection: apsw.Connection, erased: Erased, at: int, name: str = "") -> None:
    """Record the erasure. The change makes every process reload what is known."""
    record(connection, [NOTED], {}, moment(at))
    _put(connection, erased, at, name)


def begin(connection: apsw.Connection, holdings: Sequence[str], at: int) -> None:
    """Record which holdings outside the database are affected, before any of them changes."""
    _put(connection, Erased(holdings=[*holdings]), at)


def _put(connection: apsw.Connection, erased: Erased, at: int, name: str = "") -> None:
    connection.execute(PUT, (name or secrets.token_hex(8), at, encode_record(erased)))


def target_names(connection: apsw.Connection) -> list[Target]:
    """Return every target that a change was ever about."""
    return [Target(target) for (target,) in fetch(connection, TARGETS)]
