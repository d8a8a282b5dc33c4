"""Ask the word index in SQLite: how many messages hold a term, which ones, and which words begin alike.

Each question is one statement, however many terms it is about.
"""

import json
from collections.abc import Iterable, Sequence
from math import log
from operator import itemgetter
from typing import Any

import apsw

from hone.stores.window import Window

COMMON = 5_000
"""Messages after which a term is no longer counted; alone it is looked for in the latest ones only."""
EXTRA = 2_000
"""The same for words that count for less."""
LATEST, OFTEN = 100, 1_000
"""Messages that are taken from the latest on. A phrase in so many is looked for from the latest on."""
LOOKED, ALIKE, EACH = 200, 50, 2_000
"""Words with one beginning: so many are looked at, the shortest are taken, with so many messages in all."""
SHORTEST, ENDING = 3, 2
"""Letters of a beginning that are looked for at least, and letters that a stem may have lost or changed."""

SUFFIXES = (
    *("s", "e", "y", "ations", "ing", "ed", "ers", "ity", "ically", "ments", "ness"),
    *("able", "ible", "atively", "ously", "fully", "isms", "ists", "izes"),
)
"""Ends of English words. Of "conversation" the index holds "convers", of "relativity" it holds "rel"."""
ENDS = tuple(dict.fromkeys(each[at:] for each in SUFFIXES for at in range(len(each) + 1)))
"""What may follow a beginning, which may stop in the middle of a suffix; nothing, too."""

SIZE = "SELECT coalesce(max(id), 0) FROM contents"
COUNT = """
SELECT value, (SELECT count(*) FROM (
    SELECT 1 FROM passage_words WHERE passage_words MATCH value LIMIT {}
)) FROM json_each(?)
"""
COUNTS = f"{COUNT.format(COMMON)} UNION ALL {COUNT.format(EXTRA)}"
HELD = f"""
SELECT value, (SELECT json_group_array(rowid) FROM (
    SELECT rowid FROM passage_words WHERE passage_words MATCH value LIMIT {COMMON}
)) FROM json_each(?)
"""
BOUNDED = "SELECT rowid FROM passage_words WHERE passage_words MATCH ?{} ORDER BY rowid {} LIMIT ?"
NEWEST = """
SELECT value, (SELECT json_group_array(rowid) FROM (
    SELECT rowid FROM passage_words WHERE passage_words MATCH value{} ORDER BY rowid DESC LIMIT ?
)) FROM json_each(?)
"""
VOCABULARY = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab (main, passage_words, instance)"
)
# From word to word, without a look at the messages of each. No word comes before the same with a zero.
ALIKE_WORDS = """
WITH RECURSIVE alike (word, number) AS (
    SELECT (SELECT term FROM temp.vocabulary WHERE term >= ?1 AND term < ?2 LIMIT 1), 1
    UNION ALL
    SELECT (SELECT term FROM temp.vocabulary WHERE term >= word || char(0) AND term < ?2 LIMIT 1), number + 1
    FROM alike WHERE word IS NOT NULL AND number < ?3
)
SELECT word FROM alike WHERE word IS NOT NULL
"""
HOLDING_WORDS = """
SELECT value, (SELECT json_group_array(doc) FROM (
    SELECT doc FROM temp.vocabulary WHERE term = value LIMIT ?
)) FROM json_each(?)
"""


class WordIndex:
    """What can be asked of the words, within the bounds of a query."""

    def __init__(self, connection: apsw.Connection, only: Window) -> None:
        self._connection = connection
        self.only = only
        self._size: int = connection.execute(SIZE).get

    def counts(self, terms: Iterable[str], extra: Iterable[str] = ()) -> dict[str, int]:
        """In how many messages each stands, up to a bound, the rarest first."""
        asked = json.dumps(list(terms)), json.dumps(list(extra))
        rows: list[Any] = self._connection.execute(COUNTS, asked).fetchall()
        return dict(sorted(rows, key=itemgetter(1)))

    def worth(self, count: int) -> float:
        """A word tells the more, the rarer it is."""
        return log(1 + (self._size + 0.5) / (count + 0.5))

    def held(self, expressions: Iterable[str]) -> dict[str, list[int]]:
        """The messages that each fits, whatever the bounds are: what is out of them goes later."""
        rows = self._connection.execute(HELD, (json.dumps(list(expressions)),))
        return {expression: json.loads(found) for expression, found in rows}

    def some(self, expression: str) -> list[int]:
        """All, or the latest if there are many. To go through all is done faster from the first one on."""
        condition, values = self.only.condition(self._connection)
        statement = BOUNDED.format(condition, "ASC")
        found = [id for (id,) in self._connection.execute(statement, (expression, *values, OFTEN))]
        return found if len(found) < OFTEN else self.newest([expression])[expression]

    def newest(self, expressions: Sequence[str], count: int = LATEST) -> dict[str, list[int]]:
        """The latest messages that each fits, within the bounds."""
        condition, values = self.only.condition(self._connection)
        asked = (*values, count, json.dumps(expressions))
        rows = self._connection.execute(NEWEST.format(condition), asked)
        return {expression: json.loads(found) for expression, found in rows}

    def alike(self, first: str) -> list[int]:
        """Messages with a word that begins like this. The index holds stems, which may be shorter and may end
        in another letter. FTS5 would put together all messages of all such words."""
        self._connection.execute(VOCABULARY)
        after = first[:-1] + chr(ord(first[-1]) + 1)
        rows = self._connection.execute(ALIKE_WORDS, (first, after, LOOKED))
        words = sorted((word for (word,) in rows), key=len)[:ALIKE]
        whole = filter(None, (self._stemmed(f"{first}{end}") for end in ENDS))
        words = list(dict.fromkeys([*words, *_stems(first), *whole]))
        known = {word for word in words if self._stemmed(word) == word}
        each = max(1, EACH // len(words))
        found = self.newest([f'"{word}"' for word in words if word in known], each).values()
        others = json.dumps([word for word in words if word not in known])
        rows = self._connection.execute(HOLDING_WORDS, (each, others))
        return list({id for ids in (*found, *(json.loads(ids) for _, ids in rows)) for id in ids})

    def _stemmed(self, word: str) -> str:
        """What the index makes of a word. The stem of a stem may be another one."""
        tokenizer = self._connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
        tokens: Any = tokenizer(
            word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
        )
        return str(tokens[0]) if len(tokens) == 1 else ""


def _stems(first: str) -> list[str]:
    """What may be left of a word that begins like this."""
    cut = [first[: len(first) - each] for each in range(ENDING + 1)]
    kept = [each for each in cut if len(each) >= min(SHORTEST, len(first))]
    return [*kept, *(f"{each[:-1]}i" for each in kept if each.endswith("y"))]
