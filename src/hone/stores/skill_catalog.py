"""The skill catalog in SQLite. It lists, ranks and searches skills, from a row and a summary for each."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from heapq import nsmallest
from math import log
from typing import Any

import apsw
from msgspec.structs import astuple

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.ledger import SKILL, Actor
from hone.core.messages import canonical, digest, sound
from hone.core.skill import (
    CHECKS,
    ListedSkill,
    SkillEvent,
    SkillMatches,
    SkillOrigin,
    SkillResult,
    SkillSummary,
    SkillWords,
    UsageCounts,
)
from hone.stores import words as wording
from hone.stores.database import Store, reads, writes
from hone.stores.tree import intact

FRONT = 0.5
"""The bonus for a word in a name or a description."""
COUNTED_UP_TO, GONE_THROUGH = 2_000, 3_000
"""The most skills to count for one term, and the most skills with rare terms to read."""
FOREGROUND = (Actor.OWNER, Actor.AGENT, Actor.CLIENT)

LINE = "s.name, cards.description, s.document, s.birth, s.pinned, s.archived, s.project"
COUNTED = "views, uses, patches, background_views, background_patches, last_use"
COUNTS = f"{COUNTED}, succeeded, corrected"
LISTED = f"""
SELECT {LINE}, {COUNTS} FROM skills AS s JOIN cards ON cards.id = card LEFT JOIN tallies ON skill = s.name
WHERE NOT s.archived OR ? ORDER BY s.name
"""
NAMED = f"""
SELECT {LINE}, {COUNTS} FROM skills AS s JOIN cards ON cards.id = card LEFT JOIN tallies ON skill = s.name
WHERE s.name IN (SELECT value FROM json_each(?)) ORDER BY s.name
"""
# A tally covers the days before. If the skill was used today, its uses are counted instead. Only the
# first rows are read completely.
RANKS = """
WITH first AS MATERIALIZED (
    SELECT s.name, s.pinned, s.project = ?1 AND ?1 <> '' AS near,
        CASE WHEN last_use >= ?2 THEN (SELECT max(day) FROM uses AS u WHERE u.skill = s.name AND day < ?2)
            ELSE last_use END AS last,
        CASE WHEN last_use >= ?2
            THEN (SELECT count(DISTINCT session) FROM uses AS u WHERE u.skill = s.name AND day < ?2)
            ELSE coalesce(t.uses, 0) END AS often
    FROM skills AS s LEFT JOIN tallies AS t ON t.skill = s.name
    WHERE (card IS NOT NULL OR ?4) AND NOT archived
    ORDER BY s.pinned DESC, near DESC, last DESC, often DESC, s.name LIMIT ?3
)
"""
RANKED = f"""
{RANKS} SELECT {LINE} FROM first JOIN skills AS s ON s.name = first.name JOIN cards ON cards.id = card
ORDER BY first.pinned DESC, near DESC, last DESC, often DESC, first.name
"""
FIRST_UNCARDED = f"""
{RANKS} SELECT DISTINCT document FROM first JOIN skills AS s ON s.name = first.name WHERE card IS NULL
"""
IDLE = """
SELECT count(*) FROM skills AS s
WHERE s.name < ?1 AND NOT archived AND NOT pinned AND (project <> ?2 OR ?2 = '')
    AND NOT EXISTS (SELECT 1 FROM uses AS u WHERE u.skill = s.name AND day < ?3)
"""
COUNT_TERM = "SELECT count(*) FROM (SELECT 1 FROM card_words WHERE card_words MATCH ? LIMIT ?)"
FIND_TERM = "SELECT rowid FROM card_words WHERE card_words MATCH ?"
ARCHIVED = (
    "SELECT card FROM skills WHERE archived AND card NOT IN (SELECT card FROM skills WHERE NOT archived)"
)
CARDED = "SELECT count(*) FROM cards"
FOUND = f"""
SELECT value, stems, {LINE}, {COUNTS} FROM json_each(?) CROSS JOIN cards ON cards.id = value
JOIN skills AS s ON s.document = digest LEFT JOIN tallies ON skill = s.name WHERE NOT s.archived
"""
WITH_CHECKS = f"""
SELECT s.name FROM skills AS s WHERE EXISTS (
    SELECT 1 FROM holdings WHERE target = '{SKILL}' || s.name AND path > '{CHECKS}' AND path < 'checks0'
) ORDER BY s.name
"""
ORPHANS = "SELECT id FROM cards WHERE id NOT IN (SELECT card FROM skills WHERE card IS NOT NULL)"
HELD = "SELECT EXISTS (SELECT 1 FROM skills WHERE document = ?)"
PUT_CARD = "INSERT INTO cards (digest, description, stems, words) VALUES (?, ?, ?, ?) RETURNING id"
PUT_WORDS = "INSERT INTO card_words (rowid, name, description, body) VALUES (?, ?, ?, ?)"
COUNT = f"""
INSERT INTO tallies (skill, {COUNTED}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    views = views + excluded.views, uses = uses + excluded.uses, patches = patches + excluded.patches,
    background_views = background_views + excluded.background_views,
    background_patches = background_patches + excluded.background_patches,
    last_use = nullif(max(coalesce(last_use, ''), coalesce(excluded.last_use, '')), '')
"""


RATE = """
UPDATE tallies SET
    succeeded = (SELECT count(DISTINCT session) FROM uses AS u WHERE u.skill = ?1 AND result = 'succeeded'),
    corrected = (SELECT count(DISTINCT session) FROM uses AS u WHERE u.skill = ?1 AND result = 'corrected')
WHERE skill = ?1
"""


def _uncarded(connection: apsw.Connection) -> tuple[str, ...]:
    rows = connection.execute("SELECT DISTINCT document FROM skills WHERE card IS NULL")
    return tuple(document for (document,) in rows)


def _first_uncarded(connection: apsw.Connection, folder: str, today: date, limit: int) -> tuple[str, ...]:
    rows = connection.execute(FIRST_UNCARDED, (sound(folder), today.isoformat(), limit, True))
    return tuple(document for (document,) in rows)


def _card(connection: apsw.Connection, summaries: Mapping[str, SkillSummary]) -> None:
    """Add the cards of documents in use, and remove the others. The words are inserted together: FTS5 flushes
    whenever another statement comes in between."""
    rows: list[tuple[int, str, str, str]] = []
    for name, card in summaries.items():
        if not connection.execute(HELD, (sound(name),)).get:
            continue
        _drop(connection, connection.execute("SELECT id FROM cards WHERE digest = ?", (name,)))
        texts = tuple(wording.spaced(text) for text in (card.name, card.description, card.body))
        stems = "\n".join(astuple(SkillWords.of(card)))
        id = connection.execute(
            PUT_CARD, (name, sound(card.description), stems, together((*texts, stems)))
        ).get
        connection.execute("UPDATE skills SET card = ? WHERE document = ?", (id, name))
        rows.append((id, *texts))
    connection.executemany(PUT_WORDS, rows)
    _drop(connection, connection.execute(ORPHANS))


def together(texts: Sequence[str]) -> str:
    """Return the digest of one card's searchable content: the texts in the index, and the stems."""
    return digest(canonical(list(texts)).encode())


def _drop(connection: apsw.Connection, cards: apsw.Cursor) -> None:
    for row in cards.fetchall():
        connection.execute("DELETE FROM card_words WHERE rowid = ?", row)
        connection.execute("DELETE FROM cards WHERE id = ?", row)


def _list(connection: apsw.Connection, *, archived: bool = False) -> tuple[ListedSkill, ...]:
    return tuple(make_listed(row) for row in connection.execute(LISTED, (archived,)))


def _named(connection: apsw.Connection, names: Sequence[str]) -> tuple[ListedSkill, ...]:
    wanted = json.dumps([sound(name) for name in names])
    return tuple(make_listed(row) for row in connection.execute(NAMED, (wanted,)))


def _rank(connection: apsw.Connection, folder: str, today: date, limit: int) -> tuple[ListedSkill, ...]:
    rows = connection.execute(RANKED, (sound(folder), today.isoformat(), limit, False))
    return tuple(make_listed(row) for row in rows)


def _idle(connection: apsw.Connection, before: str, folder: str, today: date) -> int:
    return int(connection.execute(IDLE, (sound(before), sound(folder), today.isoformat())).get)


def _search(connection: apsw.Connection, words: Collection[str], limit: int) -> SkillMatches:
    terms = wording.terms(words)
    counts = {term: connection.execute(COUNT_TERM, (f'"{term}"', COUNTED_UP_TO)).get for term in terms}
    total: int = connection.execute(CARDED).get
    chosen = wording.rarest([(count, term) for term, count in counts.items()], GONE_THROUGH)
    scores = _score(connection, {term: log(1 + total / (1 + counts[term])) for term in chosen})
    for (card,) in connection.execute(ARCHIVED):
        scores.pop(card, None)
    best = nsmallest(limit, scores, key=lambda card: (-scores[card], card))
    found = [
        (make_listed(row), SkillWords(*stems.split("\n")), scores[card])
        for card, stems, *row in connection.execute(FOUND, (json.dumps(best),))
    ]
    found.sort(key=lambda each: (-each[2], each[0].name))
    return SkillMatches(tuple(found[:limit]), counts, total)


def _score(connection: apsw.Connection, weights: Mapping[str, float]) -> dict[int, float]:
    """Return which of these terms each card holds."""
    scores: dict[int, float] = {}
    for term, weight in weights.items():
        for place, share in ((f'"{term}"', 1.0), (f'{{name description}} : "{term}"', FRONT)):
            for (card,) in connection.execute(FIND_TERM, (place,)):
                scores[card] = scores.get(card, 0.0) + share * weight
    return scores


def _count(
    connection: apsw.Connection, skill: str, event: SkillEvent, actor: Actor, session: SessionId, today: date
) -> None:
    name, place = sound(skill), sound(session)
    background = actor not in FOREGROUND
    if event is not SkillEvent.USE:
        view, patch = event is SkillEvent.VIEW, event is SkillEvent.PATCH
        seen = (0, 0, 0, view, patch) if background else (view, 0, patch, 0, 0)
        connection.execute(COUNT, (name, *map(int, seen), None))
    elif not background:
        known = "SELECT EXISTS (SELECT 1 FROM uses WHERE session = ? AND skill = ?)"
        fresh = not connection.execute(known, (place, name)).get
        row = (name, today.isoformat(), place)
        connection.execute("INSERT OR IGNORE INTO uses (skill, day, session) VALUES (?, ?, ?)", row)
        connection.execute(COUNT, (name, 0, int(fresh), 0, 0, 0, today.isoformat()))


def _used(connection: apsw.Connection, session: SessionId) -> tuple[str, ...]:
    used = "SELECT DISTINCT skill FROM uses WHERE session = ? ORDER BY skill"
    return tuple(skill for (skill,) in connection.execute(used, (sound(session),)))


def _rate(connection: apsw.Connection, skill: str, session: SessionId, result: SkillResult) -> None:
    row = (result, sound(session), sound(skill))
    connection.execute("UPDATE uses SET result = ? WHERE session = ? AND skill = ?", row)
    connection.execute(RATE, (sound(skill),))


def _names(connection: apsw.Connection) -> Mapping[str, bool]:
    rows = connection.execute("SELECT name, archived FROM skills")
    return {name: bool(archived) for name, archived in rows}


def _with_checks(connection: apsw.Connection) -> tuple[str, ...]:
    return tuple(name for (name,) in connection.execute(WITH_CHECKS))


def _days(connection: apsw.Connection) -> Mapping[str, frozenset[date]]:
    rows: list[Any] = connection.execute("SELECT DISTINCT skill, day FROM uses").fetchall()
    return read_days(rows)


def read_days(rows: Iterable[Sequence[str]]) -> Mapping[str, frozenset[date]]:
    days: dict[str, set[date]] = {}
    for skill, day in rows:
        with intact(_damaged(skill)):
            days.setdefault(skill, set()).add(date.fromisoformat(day))
    return {skill: frozenset(each) for skill, each in days.items()}


def _tallies(connection: apsw.Connection) -> Mapping[str, UsageCounts]:
    rows = connection.execute(f"SELECT skill, {COUNTS} FROM tallies")
    return {skill: make_counts(skill, row) for skill, *row in rows}


def make_listed(row: Sequence[Any]) -> ListedSkill:
    name, description, document, birth, pinned, archived, project, *counts = row
    tally = make_counts(name, counts) if counts and counts[0] is not None else UsageCounts()
    with intact(_damaged(name)):
        origin = SkillOrigin(birth)
    return ListedSkill(name, description, document, origin, bool(pinned), bool(archived), project, tally)


def make_counts(skill: str, row: Sequence[Any]) -> UsageCounts:
    views, uses, patches, background_views, background_patches, last, succeeded, corrected = row
    with intact(_damaged(skill)):
        day = date.fromisoformat(last) if last else None
    counts = (views, uses, patches, background_views, background_patches)
    return UsageCounts(*counts, day, succeeded, corrected)


def _damaged(skill: str) -> Corrupt:
    return Corrupt(f"The line of skill {skill} is damaged. Restore the database from a backup.")


class SqliteSkillCatalog(Store):
    """Skills in SQLite. The ledger next to it updates the rows. Ranked skills come without a tally, since
    that would change within the day."""

    unsummarized = reads(_uncarded)
    unsummarized_first = reads(_first_uncarded)
    save_summaries = writes(_card)
    listed = reads(_list)
    named = reads(_named)
    ranked = reads(_rank)
    idle = reads(_idle)
    search = reads(_search)
    count = writes(_count)
    used = reads(_used)
    rate = writes(_rate)
    names = reads(_names)
    with_checks = reads(_with_checks)
    days = reads(_days)
    usage_counts = reads(_tallies)
