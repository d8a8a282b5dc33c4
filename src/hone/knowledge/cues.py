"""Recognize what the owner does with a sentence: ask a question, take something back, ask to keep a
procedure.

Also recognize claims that a tool does not work: they go out of date, and an agent that believes them does not
try again.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from hone.core.regex import regex
from hone.knowledge.lexicon import detect
from hone.knowledge.reading import Sentence, read
from hone.knowledge.resemblance import gist, reduce, subjects
from hone.knowledge.sentences import sentences

_WORD = regex(r"\w+(?:[-']\w+)*")
_NEXT = regex(
    r"(?:^|[.,;:!?]\s*|\b(?:and|ok|okay|so|but|well|then),? )"
    r"(?:now|jetzt|nun|maintenant|ahora|ora|agora|nu)\b"
    r"(?! (?:we|i|it|my|our|they|on|wir|ich|es|on|nous|je|la|las|el|los|lo|è|o|a|is|het)\b)"
)
_ORDER = regex(
    r"(?:^|[.,;:!?(–—]\s*|\b(?:please|and|but|or|so|then|also|just|i|we|you) )(?:do not|don't) \w+"
)
"""What is forbidden, or what people do not do. It is no claim about a tool."""
_WIDE = regex("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LONGEST = 20_000
"""The most characters of a message to check."""


def only_asks(owner: Sequence[str]) -> bool:
    """Tell whether the owner's words are only questions, which state nothing."""
    read_all = [sentence for text in owner for sentence in _read(text)]
    return bool(read_all) and not any(sentence.tells for sentence in read_all)


def takes_back(entry: str, owner: Sequence[str]) -> bool:
    """Tell whether a sentence of the owner's takes back this very entry: it has its words plus a denial or a
    word such as "forget", and no others."""
    wanted = gist(entry)
    return wanted.size > 0 and any(_takes_back(entry, each) for each in _statements(owner))


def _takes_back(entry: str, sentence: str) -> bool:
    wanted, said = gist(entry), gist(sentence)
    cues = (_words(sentence) & _taking_back()) - _words(entry)
    free = {reduce(word) for word in cues | _meta()}
    if not cues and (wanted.negated or not said.negated):
        return False
    return said.words - free == wanted.words - free and said.values == wanted.values


def is_negative_claim(text: str) -> bool:
    """Tell whether a lesson says that something does not work. Statements about the user do not count."""
    return split_claim(text) is not None


@lru_cache(maxsize=256)  # asked several times for an entry
def split_claim(text: str) -> tuple[str, str] | None:
    """Return the text before and after the words that something does not work; None if there are none."""
    plain = _ORDER.sub(" ", text.casefold().replace("’", "'"))
    found = next(filter(None, (pattern.search(plain) for pattern in _claims())), None)
    if found is None or {word.partition("'")[0] for word in _words(text)} & detect(text).users:
        return None
    return plain[: found.start()], plain[found.end() :]


def speaks_of_change(owner: Sequence[str]) -> bool:
    """Tell whether the owner may have changed their mind. "And now read this" is only the next task."""
    said = [_NEXT.sub(" ", text.casefold()) for text in owner]
    return any(_words(text) & _changing() or _changing_phrase().search(text) for text in said)


def asks_to_keep(owner: Sequence[str]) -> bool:
    """Tell whether the owner asks for a procedure to be kept."""
    found = (_words(each) for each in _statements(owner))
    return any(words & _procedures() and words & _saving() for words in found)


def asks_to_change(name: str, owner: Sequence[str]) -> bool:
    """Tell whether the owner asks to change the skill of this name. If the name could be ordinary words, the
    sentence must say that it means a skill."""
    spoken = re.compile(rf"\b{'[- ]'.join(map(re.escape, name.split('-')))}\b")
    for sentence in _statements(owner):
        plain, words = " ".join(sentence.casefold().split()), _words(sentence)
        meant = words & _procedures() or ("-" in name and name in words)
        if words & _saving() and meant and spoken.search(plain):
            return True
    return False


def _statements(owner: Sequence[str]) -> Iterator[str]:
    for text in owner:
        for start, end in sentences(text[:_LONGEST]):
            if any(sentence.tells for sentence in _read(text[start:end])):
                yield text[start:end]


@lru_cache(maxsize=64)  # asked again and again for the same words
def _read(text: str) -> tuple[Sentence, ...]:
    return tuple(read(text[:_LONGEST], detect(text[:_LONGEST]), entry=False))


def _words(text: str) -> frozenset[str]:
    """Return the words, with "no longer" and the like as one word, as the languages list them."""
    plain = text.casefold().replace("’", "'")
    found = set(_WORD.findall(plain))
    return frozenset(found | set(gist(text).order))


@cache
def _claims() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, subjects().cues.claims))


@cache
def _taking_back() -> frozenset[str]:
    return frozenset(subjects().cues.taking_back.split())


@cache
def _changing() -> frozenset[str]:
    return frozenset(subjects().cues.changing.split())


@cache
def _changing_phrase() -> re.Pattern[str]:
    """Return a pattern for phrases: several words, or a word of a language without spaces."""
    found = [word for word in _changing() if "_" in word or _WIDE.search(word)]
    return re.compile("|".join(re.escape(word.replace("_", " ")) for word in found))


@cache
def _meta() -> frozenset[str]:
    return frozenset(subjects().cues.meta.split())


@cache
def _saving() -> frozenset[str]:
    return frozenset(subjects().cues.saving.split())


@cache
def _procedures() -> frozenset[str]:
    return frozenset(subjects().cues.procedures.split())
