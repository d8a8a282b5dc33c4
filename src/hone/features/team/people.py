"""Find names of people in a text: by a list of first names, by how names are written, and by known names."""

import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from hone.core import secrets
from hone.core.regex import regex

Span = tuple[int, int]

_WORD = regex(r"(?<![\w@/.\\-])[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ANY = regex(r"(?<![\w@/.\\])[^\W\d_]{3,}(?![\w/\\]|\.\w|\()")
_PREFIX = regex(r"^(?:Mc|Mac|De|Di|La|Le|Du|Van|Fitz)(?=[^\W\d_a-z])")
_BEGINS = regex(r"(?:^|[.!?…]['\")\]]*\s|\n|[:;]\s|[-*•>#]\s|\d[.)]\s|['\"“„«(\[])\s*$")
_LABEL = regex(
    r"\b(?:owner|reviewer|contact|author|lead|manager|assignee|cc|approver|maintainer|on[- ]call|from|by|"
    r"name|ask|ansprechpartner\w*|verantwortlich\w*|responsable)s?:\s*$",
    re.IGNORECASE,
)
_TITLE = regex(
    r"\b(?:Mr|Mrs|Ms|Mx|Dr|Prof|Sir|Herr|Frau|Monsieur|Madame|Mme|Señora?|Sra?|Signora?|Pan|Pani)\.?\s+"
)
_HONORIFIC = regex(
    r"[\u3040-\u30ff\u4e00-\u9fff]{1,4}(?:さん|さま|様|氏|くん|先生|老师|经理|总监|女士|小姐)|[\uac00-\ud7a3]{2,4}\s?(?:씨|님)"
)
_CUE = regex(
    r"\b(?:ask|asks|asked|tell|told|ping|call|email|e-mail|mail|message|contact|cc|thank|with|from|by|to|for|and|than|"
    r"frag|fragt|fragen|bei|von|mit|für|an|und|chez|avec|par|à|con|por|para|de|pergunte|dopytaj)\s+$",
    re.IGNORECASE,
)
_VERB = regex(
    r"\s+(?:is|was|has|will|wants?|said|asked|told|does|owns|[a-z]{2,}[^s\W]s|[a-z]{2,}(?:ies|sses|ches|shes))\b|['’]s\b"
)
_GERMAN = regex(
    r"\b(?:der|die|das|und|ist|nicht|ein|eine|einen|mit|für|auf|immer|bei|wird|werden|vor|nach|den|dem)\b"
)
_CODE = regex(r"`[^`\n]+`|```.*?(?:```|\Z)", re.DOTALL)
_BETWEEN = regex(r"\.? (?:(?:de|van|von|der|den|da|di|del|dos|du|la|le|bin|al|el|y) ){0,3}")
_WORDS = Path(__file__).with_name("ordinary.txt")
_NAMES = Path(__file__).with_name("names.txt")
_BEFORE = 60
"""The characters before a word that tell what it is."""
SHORTEST = 3
"""The fewest letters of a known name to find in any case."""


def find_people(text: str, known: Collection[str] = ()) -> list[Span]:
    """Return the places of names. `known` ones are found in any case and language."""
    found = [
        *_titled(text),
        *_known(text, known),
        *((each.start(), each.end()) for each in _HONORIFIC.finditer(text)),
    ]
    code = [each.span() for each in _CODE.finditer(text)]
    is_german = len(_GERMAN.findall(text)) >= 2  # every noun is capitalized there
    previous = (-1, False)
    for word in _WORD.finditer(text):
        if not word[0][0].isupper():
            continue
        start, end = word.start(), word.start() + len(_plain(word[0]))
        in_code = any(first <= start < last for first, last in code)
        follows = previous[0] >= 0 and text[previous[0] : start] == " "
        is_name = _is_first_name(word[0]) or (
            not in_code
            and _is_strange(word[0])
            and (_stands_out(text, start, end, is_german=is_german) or (follows and previous[1]))
        )
        if is_name:
            found.append((start, end))
        previous = end, is_name
    found += [each.span() for each in _ANY.finditer(text) if each[0].islower() and _is_plain_name(text, each)]
    return _join(text, sorted(set(found)))


def _titled(text: str) -> Iterator[Span]:
    for title in _TITLE.finditer(text):
        name = _WORD.match(text, title.end())
        if name and name[0][0].isupper():
            yield title.start(), name.end()


def _known(text: str, known: Collection[str]) -> Iterator[Span]:
    for name in known:
        if len(name) >= SHORTEST:
            pattern = rf"(?<![^\W_]){re.escape(name)}(?![^\W_])"
            yield from (each.span() for each in re.finditer(pattern, text, re.IGNORECASE))


def _is_first_name(word: str) -> bool:
    first = re.split("[-'’]", word)[0].lower()
    return first in _first_names() and first not in _ordinary() and not (word.isupper() and len(word) < 4)


def _is_plain_name(text: str, word: re.Match[str]) -> bool:
    """Tell whether a lowercase word is a first name by which somebody is addressed."""
    is_name = word[0] in _first_names() and word[0] not in _ordinary() and len(word[0]) > SHORTEST
    return is_name and (
        _CUE.search(text[max(0, word.start() - _BEFORE) : word.start()]) is not None
        or _VERB.match(text, word.end()) is not None
    )


def _is_strange(word: str) -> bool:
    """Tell whether a word is written like a name and is not an ordinary word or product."""
    plain = _plain(word)
    lowered = plain.lower()
    parts = lowered.split("-")
    singular = lowered.removesuffix("s")
    ordinary = _common()
    return _is_namelike(plain) and not (
        lowered in ordinary or singular in ordinary or all(part in ordinary for part in parts)
    )


def _plain(word: str) -> str:
    return re.sub(r"['’]s$", "", word)


def _is_namelike(word: str) -> bool:
    """Tell whether a word has one capital and then lowercase letters, as names have. Others are products and
    code."""
    parts = re.split("['’]", _PREFIX.sub("", word.partition("-")[0]))
    return len(word) > 1 and all(
        each[:1].isupper() and (each[1:].islower() or not each[1:]) for each in parts
    )


def _stands_out(text: str, start: int, end: int, *, is_german: bool) -> bool:
    """Tell whether the place of an unknown word makes it a name: within a sentence, after a label, or as a
    person who does something."""
    before = text[max(0, start - _BEFORE) : start]
    if _LABEL.search(before):
        return True
    if not before.strip() or _BEGINS.search(before):
        return _acts(text, end) and not text[start:end].endswith("s")
    return _CUE.search(before) is not None if is_german else True


def _acts(text: str, end: int) -> bool:
    """Tell whether a word is followed by a person's action, or by a last name."""
    following = _WORD.match(text, end + 1) if text[end : end + 1] == " " else None
    if following and following[0][0].isupper() and _is_strange(following[0]):
        return True
    return _VERB.match(text, end) is not None


def _join(text: str, spans: list[Span]) -> list[Span]:
    """Join adjacent names."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and (start <= joined[-1][1] or _BETWEEN.fullmatch(text, joined[-1][1], start)):
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


@cache
def _first_names() -> frozenset[str]:
    return frozenset(_NAMES.read_text(encoding="utf-8").split())


@cache
def _ordinary() -> frozenset[str]:
    return frozenset(_WORDS.read_text(encoding="utf-8").split())


@cache
def _common() -> frozenset[str]:
    """Add common words of English: the list that seed phrases are made of."""
    seeds = Path(secrets.__file__).with_name("bip39.txt").read_text(encoding="utf-8")
    return _ordinary().union(seeds.split())
