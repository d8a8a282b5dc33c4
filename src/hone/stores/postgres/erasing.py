"""Erase words, conversations and lessons from an owner's rows in PostgreSQL, in one transaction.

It does what `hone.stores.erasing` does for SQLite, with the same record. It runs alone: nobody else writes
for this owner at the same time.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hone.core.erasure import Erasure, Scrubber
from hone.core.ids import SessionId
from hone.core.ledger import ITEM, MEMORY, SKILL, Target
from hone.core.messages import digest, encode, user
from hone.core.prefix import Prefix
from hone.stores.erasing import (
    CONVERSATION,
    KEYS,
    NAMES,
    NOTED,
    TEXTS,
    WHOLE,
    Erased,
    Found,
    decode_record,
    encode_record,
    new_name,
    scrub_prefix,
    without_blanks,
)
from hone.stores.postgres.database import Rows
from hone.stores.postgres.record import LOCK, record
from hone.stores.postgres.redacting import (
    HOLDERS,
    rehash,
    replace_contents,
    replace_knowledge,
    replace_prefixes,
)
from hone.stores.postgres.sessions import delete_session
from hone.stores.redacting import Rewrite, readable, scrub_message
from hone.stores.tree import moment

BATCH = 1_000
"""How many rows to read at a time: contents may exceed memory."""
PUBLISHED = {"prints": "published"}
"""Tables with another name than in SQLite."""
ONE = "SELECT 1 FROM sessions WHERE owner = %(owner)s AND id = %(session)s"
FAMILY = "SELECT id FROM sessions WHERE owner = %(owner)s AND parent = %(session)s AND origin <> 'user'"
LENGTH = "SELECT messages FROM sessions WHERE owner = %(owner)s AND id = %(session)s"
EVIDENCE = "SELECT change, position FROM evidence WHERE owner = %(owner)s AND session = %(session)s"
RESTING = """
SELECT id FROM changes WHERE owner = %(owner)s AND (session = %(session)s OR id IN (
    SELECT change FROM evidence WHERE owner = %(owner)s AND session = %(session)s
))
"""
FORGET_EVIDENCE = """
UPDATE evidence SET digest = %(digest)s
WHERE owner = %(owner)s AND change = %(change)s AND position = %(position)s
"""
FORGET_REASON = "UPDATE changes SET reason = '', quotes = '[]' WHERE owner = %(owner)s AND id = %(id)s"
HELD = "SELECT 1 FROM contents WHERE owner = %(owner)s AND digest = %(digest)s"
GUESSED = "UPDATE evidence SET digest = %(new)s WHERE owner = %(owner)s AND digest = %(digest)s"
FIRST = (
    "SELECT min(id) FROM nodes WHERE owner = %(owner)s AND chain = ANY (%(chains)s::bigint[]) GROUP BY chain"
)
DELTAS = """
SELECT change, position FROM deltas WHERE owner = %(owner)s
    AND (before = ANY (%(names)s::text[]) OR after = ANY (%(names)s::text[])) ORDER BY 1, 2
"""
TARGETS = "SELECT min(id), target FROM changes WHERE owner = %(owner)s GROUP BY target"
PATHS = """
SELECT DISTINCT ON (path) change, position, path FROM deltas WHERE owner = %(owner)s ORDER BY path, change
"""
PUT = """
INSERT INTO erasures (owner, id, name, at, what, finished)
SELECT %(owner)s, coalesce(max(id), 0) + 1, %(name)s, %(at)s, %(what)s, false
FROM erasures WHERE owner = %(owner)s
"""
FINISH = "UPDATE erasures SET finished = true WHERE owner = %(owner)s AND NOT finished"
UNFINISHED = "SELECT what FROM erasures WHERE owner = %(owner)s AND NOT finished"
FORGOTTEN = (
    # Vectors of messages are gone with them. Nobody knows which short text the others were made from.
    "DELETE FROM meanings WHERE owner = %(owner)s",
    # A digest of what was said would confirm a guess of the words.
    "DELETE FROM histories WHERE owner = %(owner)s",
    # Events on their way between servers; their listeners reload the conversation.
    "DELETE FROM posts WHERE owner = %(owner)s",
)


def scan(rows: Rows, table: str) -> Iterator[tuple[str, bytes]]:
    """Yield digest and body of all rows of a table, in batches."""
    query = f"""
    SELECT digest, body FROM {table} WHERE owner = %(owner)s AND digest > %(after)s
    ORDER BY digest LIMIT {BATCH}
    """
    after = ""
    while found := rows.execute(query, after=after).fetchall():
        yield from ((name, body) for name, body in found)
        after = found[-1][0]


def find(rows: Rows, what: Erasure) -> list[Found]:
    """Return which tables hold what is to be erased."""
    scrub = Scrubber(what.words)
    found = [
        Found(
            table,
            sum(
                scrub.finds(body) or (table == "knowledge" and name in what.contents)
                for name, body in scan(rows, table)
            ),
        )
        for table in WHOLE
    ]
    for table, columns in (*TEXTS.items(), *NAMES.items()):
        query = f"SELECT {', '.join(columns)} FROM {PUBLISHED.get(table, table)} WHERE owner = %(owner)s"
        count = sum(any(scrub.count(str(each)) for each in row) for row in rows.execute(query))
        found.append(Found(table, count))
    for id in family(rows, what.sessions):
        found.append(Found(CONVERSATION, int(rows.value(LENGTH, session=id))))
        found.append(Found("evidence", len(rows.execute(EVIDENCE, session=id).fetchall())))
    return [each for each in found if each.count]


def texts(rows: Rows, words: tuple[str, ...]) -> list[str]:
    """Return the texts of messages that hold the words."""
    scrub = Scrubber(words)
    held = ((name, body) for name, body in scan(rows, "contents") if scrub.finds(body))
    parts = (part for _, message in readable(held) for part in message.parts)
    return [text for part in parts if scrub.count(text := str(getattr(part, "text", "")))]


def family(rows: Rows, sessions: Iterable[SessionId]) -> list[SessionId]:
    """Return those of these sessions that exist, with the forks that Hone made of them."""
    found: dict[SessionId, None] = {}
    waiting = list(sessions)
    while waiting:
        id = waiting.pop()
        if id not in found and rows.one(ONE, session=id):
            found[id] = None
            waiting += (SessionId(each) for (each,) in rows.execute(FAMILY, session=id).fetchall())
    return list(found)


def erase(rows: Rows, what: Erasure, rewrite: Rewrite, at: int) -> Erased:
    """Erase from every table and record that, all or nothing. Return what changed."""
    erased, scrub = Erased(), Scrubber(what.words)
    rows.execute(LOCK)
    chains = _erase_messages(rows, scrub, erased)
    for id in family(rows, what.sessions):
        _forget_session(rows, id, erased)
    rehash(rows, chains)
    _erase_guesses(rows, what.words)
    _erase_reasons(rows, what.changes, erased)
    _erase_texts(rows, scrub, erased)
    _erase_knowledge(rows, what, scrub, rewrite, erased)
    _rename(rows, what, scrub, erased)
    _rename_paths(rows, scrub, erased)
    for statement in FORGOTTEN:
        rows.execute(statement)
    erased.sessions += what.sessions
    record(rows, [NOTED], {}, moment(at))
    _put(rows, erased, at)
    return erased


def begin(rows: Rows, holdings: Sequence[str], at: int) -> None:
    """Record which holdings outside the database are affected, before any of them changes."""
    rows.execute(LOCK)
    _put(rows, Erased(holdings=[*holdings]), at)


def finish(rows: Rows) -> None:
    """Record that the files are done, too."""
    rows.execute(FINISH)


def unfinished(rows: Rows) -> list[Erased]:
    """Return the erasures whose files a killed process may have left behind."""
    return [decode_record(what) for (what,) in rows.execute(UNFINISHED)]


def target_names(rows: Rows) -> list[Target]:
    """Return every target that a change was ever about."""
    return [Target(target) for _, target in rows.pairs(TARGETS)]


def _put(rows: Rows, erased: Erased, at: int) -> None:
    rows.execute(PUT, name=secrets.token_hex(8), at=at, what=encode_record(erased))


def _erase_messages(rows: Rows, scrub: Scrubber, erased: Erased) -> set[int]:
    """Erase words from messages. Return the chains to rehash."""
    held = [row for row in scan(rows, "contents") if scrub.finds(row[1])]
    nodes, chains = replace_contents(
        rows, {name: scrub_message(message, scrub) for name, message in readable(held)}
    )
    erased.nodes += nodes
    begun = [row for row in scan(rows, "prefixes") if scrub.finds(row[1])]
    roots = replace_prefixes(rows, {name: scrub_prefix(Prefix.decode(body), scrub) for name, body in begun})
    erased.roots += (id for (id,) in rows.execute(FIRST, chains=list(roots)))
    return chains | roots


def _forget_session(rows: Rows, session: SessionId, erased: Erased) -> None:
    """Delete a session. What was learned from it stays, without its quotes, and with random digests."""
    evidence = list(rows.pairs(EVIDENCE, session=session))
    for change, position in evidence:
        rows.execute(FORGET_EVIDENCE, digest=secrets.token_hex(32), change=change, position=position)
    erased.evidence += evidence
    _erase_reasons(rows, [id for (id,) in rows.execute(RESTING, session=session).fetchall()], erased)
    if rows.one(ONE, session=session):
        delete_session(rows, session)


def _erase_reasons(rows: Rows, changes: Iterable[int], erased: Erased) -> None:
    for id in changes:
        rows.execute(FORGET_REASON, id=id)
        erased.rows += (("changes", str(id), column) for column in ("reason", "quotes"))


def _erase_guesses(rows: Rows, words: Iterable[str]) -> None:
    """Replace digests of erased messages that consisted of just these words: they could be guessed."""
    for each in words:
        guess = digest(encode(user(each)))
        if not rows.one(HELD, digest=guess):
            rows.execute(GUESSED, new=secrets.token_hex(32), digest=guess)


def _erase_texts(rows: Rows, scrub: Scrubber, erased: Erased) -> None:
    for table, columns in TEXTS.items():
        key = KEYS[table]
        query = f"SELECT {key}, {', '.join(columns)} FROM {table} WHERE owner = %(owner)s"
        for id, *found in rows.execute(query).fetchall():
            for column, text in zip(columns, found, strict=True):
                if scrub.count(text):
                    change = (
                        f"UPDATE {table} SET {column} = %(made)s WHERE owner = %(owner)s AND {key} = %(id)s"
                    )
                    rows.execute(change, made=without_blanks(scrub.json_text(text)), id=id)
                    erased.rows.append((table, str(id), column))


def _erase_knowledge(rows: Rows, what: Erasure, scrub: Scrubber, rewrite: Rewrite, erased: Erased) -> None:
    made: dict[str, bytes] = {}
    for name, body in list(scan(rows, "knowledge")):
        if name in what.contents or scrub.finds(body):
            target, path = next(rows.pairs(HOLDERS, digest=name), (MEMORY, ""))
            made[name] = rewrite(target, path, body, name in what.contents)
    erased.deltas += rows.pairs(DELTAS, names=list(made))
    replace_knowledge(rows, made)


def _rename(rows: Rows, what: Erasure, scrub: Scrubber, erased: Erased) -> None:
    """Give targets whose names hold the words random ones; publishing moves their files."""
    for change, target in list(rows.pairs(TARGETS)):
        is_key = target.startswith(ITEM) and target.partition("/")[2] in what.keys
        if is_key or scrub.count(target):
            erased.renamed.append((change, new_name(target)))
            _rename_target(rows, target, erased.renamed[-1][1])


def _rename_target(rows: Rows, target: str, new: str) -> None:
    for table in ("changes", "holdings", "published"):
        _update(rows, table, "target", target, new)
    if target.startswith(SKILL):
        old, name = target.removeprefix(SKILL), new.removeprefix(SKILL)
        for table, column in (("skills", "name"), ("tallies", "skill"), ("uses", "skill")):
            _update(rows, table, column, old, name)


def _rename_paths(rows: Rows, scrub: Scrubber, erased: Erased) -> None:
    """Give files of skills whose names hold the words random ones; publishing moves them."""
    for change, position, path in rows.execute(PATHS).fetchall():
        if scrub.count(path):
            erased.paths.append((change, position, f"erased-{secrets.token_hex(4)}"))
            for table in ("deltas", "holdings"):
                _update(rows, table, "path", path, erased.paths[-1][2])


def _update(rows: Rows, table: str, column: str, old: Any, new: Any) -> None:
    change = f"UPDATE {table} SET {column} = %(new)s WHERE owner = %(owner)s AND {column} = %(old)s"
    rows.execute(change, old=old, new=new)
