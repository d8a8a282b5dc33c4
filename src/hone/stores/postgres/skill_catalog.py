"""The skill catalog in PostgreSQL. It lists, ranks and searches skills, from a row and a summary for each."""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from heapq import nsmallest
from itertools import pairwise
from math import log

from msgspec.structs import astuple

from hone.core.ids import SessionId
from hone.core.ledger import SKILL, Actor
from hone.core.messages import sound
from hone.core.regex import regex
from hone.core.skill import (
    CHECKS,
    ListedSkill,
    SkillEvent,
    SkillMatches,
    SkillResult,
    SkillSummary,
    SkillWords,
    UsageCounts,
    to_stem,
)
from hone.stores import words as wording
from hone.stores.postgres.database import PostgresStore, Rows, reads, writes
from hone.stores.postgres.record import LOCK
from hone.stores.skill_catalog import (
    COUNTED,
    COUNTED_UP_TO,
    COUNTS,
    FOREGROUND,
    FRONT,
    GONE_THROUGH,
    make_counts,
    make_listed,
    read_days,
)

WORD = regex(r"[^\W_]+")
LINE = "s.name, cards.description, s.document, s.birth, s.pinned, s.archived, s.project"
JOINED = """
FROM skills AS s JOIN cards ON cards.owner = s.owner AND cards.digest = s.document
    LEFT JOIN tallies AS t ON t.owner = s.owner AND t.skill = s.name
WHERE s.owner = %(owner)s AND
"""
LISTED = f"SELECT {LINE}, {COUNTS} {JOINED} (NOT s.archived OR %(archived)s) ORDER BY s.name"
NAMED = f"SELECT {LINE}, {COUNTS} {JOINED} s.name = ANY (%(names)s) ORDER BY s.name"
FOUND = f"SELECT digest, stems, {LINE}, {COUNTS} {JOINED} NOT s.archived AND digest = ANY (%(digests)s)"
UNCARDED = """
SELECT DISTINCT document FROM skills AS s WHERE s.owner = %(owner)s
    AND NOT EXISTS (SELECT 1 FROM cards AS c WHERE c.owner = s.owner AND c.digest = s.document)
"""
# A tally covers the days before. If the skill was used today, its uses are counted instead.
RANKS = """
WITH first AS MATERIALIZED (
    SELECT s.name, s.pinned, s.project = %(folder)s AND %(folder)s <> '' AS near,
        CASE WHEN last_use >= %(today)s THEN (
            SELECT max(day) FROM uses AS u WHERE u.owner = s.owner AND u.skill = s.name AND day < %(today)s
        ) ELSE last_use END AS last,
        CASE WHEN last_use >= %(today)s THEN (
            SELECT count(DISTINCT session) FROM uses AS u
            WHERE u.owner = s.owner AND u.skill = s.name AND day < %(today)s
        ) ELSE coalesce(t.uses, 0) END AS often
    FROM skills AS s LEFT JOIN tallies AS t ON t.owner = s.owner AND t.skill = s.name
        LEFT JOIN cards AS c ON c.owner = s.owner AND c.digest = s.document
    WHERE s.owner = %(owner)s AND (c.digest IS NOT NULL OR %(all)s) AND NOT s.archived
    ORDER BY s.pinned DESC, near DESC, last DESC NULLS LAST, often DESC, s.name LIMIT %(limit)s
)
"""
RANKED = f"""{RANKS}
SELECT {LINE} FROM first JOIN skills AS s ON s.owner = %(owner)s AND s.name = first.name
    JOIN cards ON cards.owner = s.owner AND cards.digest = s.document
ORDER BY first.pinned DESC, near DESC, last DESC NULLS LAST, often DESC, first.name
"""
FIRST_UNCARDED = f"{RANKS} {UNCARDED} AND s.name IN (SELECT name FROM first)"
IDLE = """
SELECT count(*) FROM skills AS s WHERE s.owner = %(owner)s
    AND s.name < %(before)s AND NOT archived AND NOT pinned AND (project <> %(folder)s OR %(folder)s = '')
    AND NOT EXISTS (
        SELECT 1 FROM uses AS u WHERE u.owner = s.owner AND u.skill = s.name AND day < %(today)s
    )
"""
COUNT_TERM = """
SELECT count(*) FROM (
    SELECT 1 FROM cards WHERE owner = %(owner)s AND words @> %(words)s::text[] LIMIT %(limit)s
) AS found
"""
FIND_TERM = """
SELECT digest, front @> %(words)s::text[] FROM cards AS c
WHERE owner = %(owner)s AND words @> %(words)s::text[]
    AND EXISTS (SELECT 1 FROM skills AS s WHERE s.owner = c.owner AND s.document = c.digest AND NOT archived)
"""
CARDED = "SELECT count(*) FROM cards WHERE owner = %(owner)s"
HELD = "SELECT 1 FROM skills WHERE owner = %(owner)s AND document = %(digest)s LIMIT 1"
PUT_CARD = """
INSERT INTO cards (owner, digest, description, stems, front, words)
VALUES (%(owner)s, %(digest)s, %(description)s, %(stems)s, %(front)s, %(words)s)
ON CONFLICT (owner, digest) DO UPDATE SET description = excluded.description, stems = excluded.stems,
    front = excluded.front, words = excluded.words
"""
ORPHANS = """
DELETE FROM cards AS c WHERE owner = %(owner)s
    AND NOT EXISTS (SELECT 1 FROM skills AS s WHERE s.owner = c.owner AND s.document = c.digest)
"""
COUNT = f"""
INSERT INTO tallies AS t (owner, skill, {COUNTED})
VALUES (%(owner)s, %(skill)s, %(views)s, %(uses)s, %(patches)s, %(background_views)s, %(background_patches)s,
    %(last_use)s)
ON CONFLICT (owner, skill) DO UPDATE SET
    views = t.views + excluded.views, uses = t.uses + excluded.uses, patches = t.patches + excluded.patches,
    background_views = t.background_views + excluded.background_views,
    background_patches = t.background_patches + excluded.background_patches,
    last_use = greatest(t.last_use, excluded.last_use)
"""
KNOWN = "SELECT 1 FROM uses WHERE owner = %(owner)s AND session = %(session)s AND skill = %(skill)s"
PUT_USE = """
INSERT INTO uses (owner, skill, day, session) VALUES (%(owner)s, %(skill)s, %(day)s, %(session)s)
ON CONFLICT DO NOTHING
"""
USED = "SELECT DISTINCT skill FROM uses WHERE owner = %(owner)s AND session = %(session)s ORDER BY skill"
RESULT = """
UPDATE uses SET result = %(result)s
WHERE owner = %(owner)s AND session = %(session)s AND skill = %(skill)s
"""
RATE = """
UPDATE tallies SET succeeded = found.succeeded, corrected = found.corrected FROM (
    SELECT count(DISTINCT session) FILTER (WHERE result = 'succeeded') AS succeeded,
        count(DISTINCT session) FILTER (WHERE result = 'corrected') AS corrected
    FROM uses WHERE owner = %(owner)s AND skill = %(skill)s
) AS found WHERE owner = %(owner)s AND skill = %(skill)s
"""
NAMES = "SELECT name, archived FROM skills WHERE owner = %(owner)s"
WITH_CHECKS = f"""
SELECT s.name FROM skills AS s WHERE s.owner = %(owner)s AND EXISTS (
    SELECT 1 FROM holdings AS h
    WHERE h.owner = s.owner AND h.target = '{SKILL}' || s.name AND h.path ^@ '{CHECKS}'
) ORDER BY s.name COLLATE "C"
"""
DAYS = "SELECT DISTINCT skill, day FROM uses WHERE owner = %(owner)s"
TALLIES = f"SELECT skill, {COUNTS} FROM tallies WHERE owner = %(owner)s"


def split(text: str) -> set[str]:
    """Return the words of a text as indexed: stems without accents; in a script without spaces, each letter
    and each pair of letters."""
    found: set[str] = set()
    for run in wording.RUN.findall(sound(text)):
        if wording.LETTER.match(run):
            found.update(run, (f"{one} {two}" for one, two in pairwise(run)))
        else:
            found.update(_stems(run))
    return found


def find_words(term: str) -> list[str]:
    """Return what a card must hold to match a term."""
    return [term] if wording.LETTER.match(term) else sorted(set(_stems(term)))


def _stems(text: str) -> Iterator[str]:
    letters = unicodedata.normalize("NFKD", text.lower())
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return map(to_stem, WORD.findall(bare))


def _uncarded(rows: Rows) -> tuple[str, ...]:
    return tuple(document for (document,) in rows.execute(UNCARDED))


def _first_uncarded(rows: Rows, folder: str, today: date, limit: int) -> tuple[str, ...]:
    values = {"folder": sound(folder), "today": today.isoformat(), "limit": limit, "all": True}
    return tuple(document for (document,) in rows.execute(FIRST_UNCARDED, **values))


def _card(rows: Rows, summaries: Mapping[str, SkillSummary]) -> None:
    """Add the cards of documents in use, and remove the others."""
    rows.execute(LOCK)
    for name, card in sorted(summaries.items()):
        if rows.one(HELD, digest=sound(name)):
            front = split(card.name) | split(card.description)
            rows.execute(
                PUT_CARD,
                digest=name,
                description=sound(card.description),
                stems=sound("\n".join(astuple(SkillWords.of(card)))),
                front=sorted(front),
                words=sorted(front | split(card.body)),
            )
    rows.execute(ORPHANS)


def _list(rows: Rows, *, archived: bool = False) -> tuple[ListedSkill, ...]:
    return tuple(make_listed(row) for row in rows.execute(LISTED, archived=archived))


def _named(rows: Rows, names: Sequence[str]) -> tuple[ListedSkill, ...]:
    return tuple(make_listed(row) for row in rows.execute(NAMED, names=[sound(name) for name in names]))


def _rank(rows: Rows, folder: str, today: date, limit: int) -> tuple[ListedSkill, ...]:
    values = {"folder": sound(folder), "today": today.isoformat(), "limit": limit, "all": False}
    return tuple(make_listed(row) for row in rows.execute(RANKED, **values))


def _idle(rows: Rows, before: str, folder: str, today: date) -> int:
    values = {"before": sound(before), "folder": sound(folder), "today": today.isoformat()}
    return int(rows.value(IDLE, **values))


def _search(rows: Rows, words: Collection[str], limit: int) -> SkillMatches:
    sought = {term: find_words(term) for term in wording.terms(words)}
    counts = {
        term: rows.value(COUNT_TERM, words=held, limit=COUNTED_UP_TO) if held else 0
        for term, held in sought.items()
    }
    total: int = rows.value(CARDED)
    chosen = wording.rarest([(count, term) for term, count in counts.items()], GONE_THROUGH)
    scores: dict[str, float] = {}
    for term in chosen:
        weight = log(1 + total / (1 + counts[term]))
        for name, in_front in rows.execute(FIND_TERM, words=sought[term]):
            scores[name] = scores.get(name, 0.0) + (1 + FRONT * in_front) * weight
    best = nsmallest(limit, scores, key=lambda name: (-scores[name], name))
    found = [
        (make_listed(row), SkillWords(*stems.split("\n")), scores[name])
        for name, stems, *row in rows.execute(FOUND, digests=best)
    ]
    found.sort(key=lambda each: (-each[2], each[0].name))
    return SkillMatches(tuple(found[:limit]), counts, total)


def _count(rows: Rows, skill: str, event: SkillEvent, actor: Actor, session: SessionId, today: date) -> None:
    name, place, day = sound(skill), sound(session), today.isoformat()
    before = "" if actor in FOREGROUND else "background_"
    counts = dict.fromkeys(COUNTED.split(", "), 0)
    if event is SkillEvent.USE:
        if before:
            return
        fresh = rows.one(KNOWN, session=place, skill=name) is None
        rows.execute(PUT_USE, skill=name, day=day, session=place)
        rows.execute(COUNT, **{**counts, "skill": name, "uses": int(fresh), "last_use": day})
    else:
        seen = f"{before}{'views' if event is SkillEvent.VIEW else 'patches'}"
        rows.execute(COUNT, **{**counts, "skill": name, seen: 1, "last_use": None})


def _used(rows: Rows, session: SessionId) -> tuple[str, ...]:
    return tuple(skill for (skill,) in rows.execute(USED, session=sound(session)))


def _rate(rows: Rows, skill: str, session: SessionId, result: SkillResult) -> None:
    rows.execute(RESULT, result=result, session=sound(session), skill=sound(skill))
    rows.execute(RATE, skill=sound(skill))


def _names(rows: Rows) -> Mapping[str, bool]:
    return dict(rows.pairs(NAMES))


def _with_checks(rows: Rows) -> Sequence[str]:
    return tuple(name for (name,) in rows.execute(WITH_CHECKS).fetchall())


def _days(rows: Rows) -> Mapping[str, frozenset[date]]:
    return read_days(rows.execute(DAYS).fetchall())


def _tallies(rows: Rows) -> Mapping[str, UsageCounts]:
    return {skill: make_counts(skill, row) for skill, *row in rows.execute(TALLIES)}


class PostgresSkillCatalog(PostgresStore):
    """Skills in PostgreSQL. The ledger next to it updates the rows. Ranked skills come without a tally, since
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
