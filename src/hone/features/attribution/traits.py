"""Recognize the visible form of an answer, and the entries that ask for it.

An entry such as "Answer in German" leaves none of its words in an answer. Its trace is the form. The length
of an answer proves nothing: most answers are short anyway. Only an ablation can tell.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from hone.core.regex import regex
from hone.knowledge.lexicon import detect, lexicons
from hone.knowledge.resemblance import gist

_TABLE = regex(r"^\s*\|.*\|.*\|\s*$", re.MULTILINE)
_BULLET = regex(r"^\s*[-*•] \S", re.MULTILINE)
_NUMBERED = regex(r"^\s*\d+[.)] \S", re.MULTILINE)
_CODE = regex(r"```|^ {4}\S", re.MULTILINE)
_HEADING = regex(r"^#{1,6} \S", re.MULTILINE)
_EMOJI = regex("[\U0001f300-\U0001faff☀-➿]")
_BOLD = regex(r"\*\*[^*]+\*\*")
_METRIC = regex(
    r"\d ?(?:km|m|cm|kg|g|l|°C)\b|\b(?:kilomet|kilogram|celsius|met(?:er|re)s?\b|lit(?:er|re)s?\b)",
    re.IGNORECASE,
)
_IMPERIAL = regex(
    r"\d ?(?:mi|ft|lbs?|oz|°F)\b|\b(?:miles?|feet|inch(?:es)?|pounds?|fahrenheit|gallons?)\b", re.IGNORECASE
)
_ISO = regex(r"\b\d{4}-\d\d-\d\d\b")
_LANGUAGES = {"de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese"}


def _has(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: bool(pattern.search(text))


FORMS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "a table": (r"\btables?\b|\btabellen?\b", _has(_TABLE)),
    "bullet points": (r"\bbullets?\b|\bbullet points?\b|\bstichpunkte\b", _has(_BULLET)),
    "a numbered list": (r"\bnumbered\b|\bsteps? by number\b|\bnumber the steps\b", _has(_NUMBERED)),
    "a code block": (r"\bcode blocks?\b|\bfenced\b", _has(_CODE)),
    "headings": (r"\bheadings?\b|\bheaders\b|\büberschrift", _has(_HEADING)),
    "emoji": (r"\bemojis?\b", _has(_EMOJI)),
    "bold": (r"\bbold\b", _has(_BOLD)),
}
"""What an entry says about a form, and how an answer shows it."""
WORDINGS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "metric units": (r"\bmetric\b|\bcelsius\b|\bmetrisch", _has(_METRIC)),
    "imperial units": (r"\bimperial\b|\bfahrenheit\b", _has(_IMPERIAL)),
    "dates by number": (r"\bISO\b|\bdates?\b.*\d{4}-\d\d-\d\d|\bYYYY-MM-DD\b", _has(_ISO)),
}
"""How something is written: an entry about it may be about any subject."""
_NEGATED = regex(r"\b(no|not|never|without|avoid|don't|do not|kein\w*|ohne|nie)\b", re.IGNORECASE)
_ANSWER = regex(
    r"\b(answers?|answering|repl(?:y|ies)|respon[ds]\w*|explanations?|summar\w+|prose|write|format|lists?|speak"
    r"|talk|prefers?|wants?|likes?|antwort\w*|schreib\w*)\b",
    re.IGNORECASE,
)


def match_traits(entry: str, request: str, answer: str) -> str:
    """Return the form that an entry asks for and the answer has, unless the request has it or asks for it."""
    if language := _match_language(entry, request, answer):
        return language
    for name, (asked, shows) in WORDINGS.items():
        if _compiled(asked).search(entry) and shows(answer) and not shows(request):
            return name
    if not _ANSWER.search(entry) or _NEGATED.search(entry):
        return ""
    for name, (asked, shows) in FORMS.items():
        pattern = _compiled(asked)
        if pattern.search(entry) and shows(answer) and not pattern.search(request):
            return name
    return ""


def _match_language(entry: str, request: str, answer: str) -> str:
    """Match an answer in the language that an entry names, to a request in another one."""
    spoken = _find_language(answer)
    if not spoken or spoken == _find_language(request) or len(answer.split()) < 3:
        return ""
    return spoken.capitalize() if _chosen(spoken) & gist(entry).values else ""


@lru_cache(maxsize=4)  # the same request and answer for each entry
def _find_language(text: str) -> str:
    found = detect(text)
    return next((name for code, name in _LANGUAGES.items() if lexicons().get(code) is found), "")


@cache
def _chosen(language: str) -> frozenset[tuple[int, int]]:
    """Return the value of the choice that stands for a language."""
    return gist(f"Answer in {language}.").values


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
