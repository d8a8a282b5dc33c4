"""Parse a search question into terms, phrases, a time and a speaker."""

import re
import unicodedata
from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path

from msgspec import Struct

from hone.core.messages import Role, sound
from hone.core.recall import stem
from hone.core.regex import regex
from hone.stores.passages import pairs
from hone.stores.times import Span, times
from hone.stores.words import BREAK, LETTER, RUN

LONG = 10
"""From this many terms on, a question says enough without synonyms."""
NAME = 60
"""The letters of a message that may contain its speaker's name at the start."""
MOST = 60
"""The most terms of one question; a whole page is answered by its beginning."""

LASTING, ENDING, FORMS = 5, 2, 6
"""Letters of a word that may have other forms, letters that a form may have changed, and how many words to
search by their forms."""

QUOTED = regex(r'["“”„«»]([^"“”„«»]+)["“”„«»]')
APOSTROPHE = regex(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)
_EMPTY = """
a about above after again all also always am an and any anybody anyone anything are around as asked at back
be because been before being both but by came can come could d did didn do does doesn doing don done down
during each else end ended ever every exactly few for from get gets getting go goes going gone got had has
have having he her here hers him his how i if in into is isn it its itself just know last ll m made make
many may me mention mentioned might mine more most much must my myself no nor not now of off on once one
only or other our ours out over own please quite re really recall remember remind said same say saying says
she should so some somebody someone something still such suppose supposed t talk talked talking tell than
that the their theirs them then there these they thing things this those though through to told too under
until up us use used using ve very want wanted was wasn we went were weren what whatever when where which
while who whole whom whose why will with without won would yet you your yours conversation conversations
session sessions discuss discussed
"""
EMPTY = frozenset(_EMPTY.split())
"""Words of every sentence, and of asking what was said."""
OWN = regex(
    r"\b(?:did|had|have|do|was|were|am|would|could) i\b"
    r"|\bi (?:said|told|asked|mentioned|wrote|suggested|decided|promised|described|explained|complained)\b"
)
THEIRS = regex(
    r"\b(?:did|had|have|do|were|would|could) you\b"
    r"|\byou (?:said|told|suggest|recommend|propose|advise|gave|explain)"
    r"|\byour (?:advice|suggestion|recommendation|tip|idea|answer)"
    r"|\b(?:did|had|would|could) (?:hone|the assistant|the agent)\b"
)
NAMED = regex(r"\b(?:did|does|has|had|is|was|would|could|will) ([^\W\d_]{2,})\b")
"""The names in a question. With several speakers, each message may begin with a name and a colon."""

UNPARTED = 8
"""The most pieces of a run of letters to search as it is. A longer one is a sentence, which is hardly ever
repeated."""

Kin = tuple[str, tuple[str, ...]]


class ParsedQuestion(Struct, frozen=True):
    """`terms` are expressions for FTS5, any of which may match; `phrases` must all match. `spans` are the
    times it mentions, if any; `speaker` is the person who is meant to have said it. `beginnings` are prefixes
    of words, if nothing else is asked for. `kin` are terms with others that often stand for them and count
    less. `run` is the question as a phrase, if it is a single word of a script without spaces."""

    terms: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    speaker: Role | None = None
    beginnings: tuple[str, ...] = ()
    kin: tuple[Kin, ...] = ()
    named: tuple[str, ...] = ()
    run: str = ""

    def is_meant(self, role: Role, text: str) -> bool:
        """Tell whether a message is from the speaker that is meant, by role or by the name at its start."""
        if self.speaker is role:
            return True
        return bool(self.named) and text[:NAME].lower().startswith(self.named)

    def fits(self, text: str) -> bool:
        """Tell whether a text has one of the beginnings, if they are all that is asked for."""
        if not self.beginnings:
            return True
        return any(bare(word).startswith(self.beginnings) for word in words(text))


def parse(text: str, today: date | None = None) -> ParsedQuestion:
    plain = sound(text)
    phrases = tuple(dict.fromkeys(filter(None, (_phrase(each) for each in QUOTED.findall(plain)))))
    rest = QUOTED.sub(" ", plain)
    low = APOSTROPHE.sub("", rest).lower()
    spans = times(low, today)
    found = _terms(low)
    language, empty = _language(found)
    told = [term for term in found if bare(term) not in empty and not _small(term)]
    kept = told or ([] if phrases or spans else found)
    dropped = tuple(term for term in found if term not in kept)
    starred = tuple(bare(term[:-1]) for term in kept if term.endswith("*") and not LETTER.match(term))
    only = starred if len(starred) == len(kept) and not phrases else ()
    related = (_forms(kept) if language else _kin(kept)) if 0 < len(told) <= LONG else ()
    terms = tuple(map(_quoted, kept[:MOST]))
    named = tuple(f"{name}:" for name in NAMED.findall(low) if name not in EMPTY)
    run = "" if phrases or spans else _run(low.split())
    return ParsedQuestion(terms, phrases[:MOST], dropped, spans, _speaker(low), only, related, named, run)


def _language(terms: Sequence[str]) -> tuple[str, frozenset[str]]:
    """Return the stop words in the language of most of them; in doubt English, which has no name."""
    words = {bare(term) for term in terms}
    most = max(stops(), key=lambda each: len(words & stops()[each]))
    return (most, stops()[most]) if len(words & stops()[most]) > len(words & EMPTY) else ("", EMPTY)


@cache
def stops() -> dict[str, frozenset[str]]:
    """Return the stop words by language, without accents."""
    lines = Path(__file__).with_name("stops.txt").read_text(encoding="utf-8").splitlines()
    return {name: frozenset(words) for name, *words in (line.split() for line in lines)}


def _forms(terms: Sequence[str]) -> tuple[Kin, ...]:
    """Return prefixes of words: the index only knows English endings."""
    long = [term for term in terms if len(term) > LASTING and term.isalpha() and not LETTER.match(term)]
    long = sorted(long, key=len, reverse=True)[:FORMS]
    return tuple((f'"{term}"', (f'"{bare(term)[: max(LASTING, len(term) - ENDING)]}"*',)) for term in long)


def _kin(terms: Sequence[str]) -> tuple[Kin, ...]:
    """Return words that often stand for those asked for, as terms."""
    known = {stem(term) for term in terms}
    found = ((term, kinship().get(stem(term), ())) for term in terms[:MOST])
    pairs = (
        (f'"{term}"', tuple(f'"{word}"' for word in words if stem(word) not in known))
        for term, words in found
    )
    return tuple((term, words) for term, words in pairs if words)


@cache
def kinship() -> dict[str, tuple[str, ...]]:
    """Map the stem of the first word of a line to the others. Everyday English, for a second search."""
    lines = Path(__file__).with_name("kin.txt").read_text(encoding="utf-8").splitlines()
    return {stem(first): tuple(rest) for first, *rest in (line.split() for line in lines)}


def plain(term: str) -> str:
    """Return an expression as a person would write it."""
    return term.replace('"', "")


def words(text: str) -> list[str]:
    """Return the words of a text as an index would split them."""
    return re.findall(r"[^\W_]+", sound(text).lower())


def bare(word: str) -> str:
    """Return a text without accents."""
    if word.isascii():
        return word
    return "".join(each for each in unicodedata.normalize("NFKD", word) if not unicodedata.combining(each))


def _speaker(low: str) -> Role | None:
    own, theirs = OWN.search(low), THEIRS.search(low)
    if bool(own) == bool(theirs):
        return None
    return Role.USER if own else Role.ASSISTANT


def _small(term: str) -> bool:
    return len(term) == 1 and term.isascii() and not term.isdigit()


def _terms(text: str) -> list[str]:
    """Return each term once: words, joined words as a phrase, pairs of letters, prefixes with a star."""
    found: dict[str, None] = {}
    for word in text.split():
        star = "*" if len(word) > 2 and word.rstrip("?!.,;:)").endswith("*") else ""
        pieces = _pieces(word)
        for place, piece in enumerate(pieces):
            found[piece + (star if place == len(pieces) - 1 else "")] = None
        if len(pieces) > 1 and not LETTER.search(word):
            found[" ".join(pieces)] = None
    return list(found)


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    for piece in BREAK.split(text.lower()):
        for run in RUN.findall(piece):
            if not LETTER.match(run):
                pieces += words(run)
            else:
                pieces += pairs(run) or [f"{run}*"]
    return pieces


def _run(words: Sequence[str]) -> str:
    """Return a single word of such letters, with at least three of them or some among others, that is no
    sentence."""
    pieces = _pieces(words[0]) if len(words) == 1 and LETTER.search(words[0]) else []
    whole = 2 <= len(pieces) <= UNPARTED and not any(piece.endswith("*") for piece in pieces)
    return f'"{" ".join(pieces)}"' if whole else ""


def _quoted(term: str) -> str:
    return f'"{bare(term[:-1])}"*' if term.endswith("*") else f'"{term}"'


def _phrase(text: str) -> str:
    """Return words in a row as a phrase. A single letter of a script without spaces is the beginning of a
    pair."""
    pieces = _pieces(text)
    star = pieces and (pieces[-1].endswith("*") or text.rstrip().endswith("*"))
    words = " ".join(piece.rstrip("*") for piece in pieces)
    return f'"{words}"{"*" if star else ""}' if words.strip() else ""
