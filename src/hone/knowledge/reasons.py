"""Find a reason to look back in the owner's words.

Reasons are a wish to remember, a correction, a complaint, a change of mind, or a statement of a lasting fact
or preference. The patterns are data, one line for a kind and a language. Each sentence is searched
separately. The owner did not say what is quoted or pasted, and a question states nothing.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from hone.core.regex import regex

LABELS = {
    "remember": "a wish to remember",
    "correction": "a correction",
    "complaint": "a complaint",
    "change": "a change of mind",
    "statement": "a statement about the user",
}
"""What a person sees as the reason for a review, the clearest first."""
LONGEST = 1_500
"""The characters at either end of a message to search: anything between was pasted."""
STEM = 3
"""How many letters of a word decide whether it can match a language's patterns."""
PATTERNS = Path(__file__).with_name("reasons.tsv")

_FENCED = regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_PASTED = regex(r"^(?:[ \t]*>| {4}|\t).*$", re.MULTILINE)
_QUOTED = regex(
    r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》"
)
_SENTENCE = regex(r"[^.!?。！？…\n]+[.!?。！？…]*")
_ASKS = regex(
    r"(?:and |so |but |ok,? |hi,? |hey,? )*(?:what|which|who|whose|where|why|how|does|did|is|are|was|can|"
    r"could|should|would|will|may|has|(?:do|have) (?:you|i|we|they|these|those|the))\b|"
    r"(?:was|wer|wie|wo|warum|wann|welche\w*|kann|kannst|gibt|ist|qu(?:el\w*|oi|i|e|é|ién|em|al|ais|and\w*|ant\w*)|comment|"
    r"pourquoi|combien|peux-tu|est-ce|¿|come|perché|quanto|puoi|como|porque|hoe|kun|jak|czy|как|почему|сколько|кто|miten|voitko|hur|"
    r"kan du)\b"
)
_POLITE = regex(
    r"(?:can|could|will|would) you (?:please |maybe |just )*(?:remember|note|keep in mind|stop|be |avoid|"
    r"always|never)|(?:kannst|könntest) du .*\bimmer\b|(?:¿|hola, ¿)?podrías .*\bsiempre\b|"
    r"(?:peux|pourrais)-tu .*\btoujours\b|(?:puoi|potresti) .*\bsempre\b"
)
_WORD = regex(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SYNTAX = regex(r"\\.|[\[\]()|]", re.DOTALL)
_SCRIPTS = {
    "ja": regex(r"[\u3040-\u30ff]"),
    "zh": regex(r"[\u4e00-\u9fff]"),
    "ko": regex(r"[\uac00-\ud7a3]"),
    "ru": regex(r"[\u0400-\u04ff]"),
}
_OWNER = regex(
    r"\b(?:i|we|my|our)\b(?! (?:need|think|guess|tried|try|get|got|see|have to|want to|was thinking)\b)|"
    r"\b(?:ich|wir|mein\w*|unser\w*|je|j'\w+|nous|mon|ma|mes|notre|nos|yo|mi|mis|nuestr\w+|io|mi[oa]|miei|mie|"
    r"nostr\w+|eu|meus?|minhas?|noss[oa]s?|ik|mijn|wij|onze|ja|mój|moja|moje|mam|nasz\w*|ben|benim|bizim|"
    r"minä|minun|minulla|meillä|jag|min|mitt|mina|vår\w*|я|мне|меня|мо[йяеи]|мы|нас|наш\w*)\b|[我私僕俺]|저는|나는|우리"
)
"""Words that people use for themselves."""
_SUPPOSED = regex(
    r"(?:if|suppose|imagine|assume|let's say|what if|say|in case|wenn|falls|angenommen|si|supon\w*|se|caso)\b"
)


def find_cue(text: str) -> str:
    """Return the reason in a few words of ours; empty if there is none."""
    own = own_words(text)
    patterns = [_patterns(language) for language in _languages(own)]
    found = {
        kind
        for sentence, asked in _sentences(own)
        for by_kind in patterns
        for kind, pattern in by_kind.items()
        if _counts(kind, sentence, asked=asked) and pattern.search(sentence)
    }
    return next((label for kind, label in LABELS.items() if kind in found), "")


def count_turns(text: str) -> int:
    """Return how many turns the owner's words count for: three if the owner talks about themselves, else
    one."""
    return 3 if tells_of_owner(text) else 1


def tells_of_owner(text: str) -> bool:
    """Tell whether the owner talks about themselves, and not only in a question."""
    return any(not asked and _OWNER.search(sentence) for sentence, asked in _sentences(own_words(text)))


def _counts(kind: str, sentence: str, *, asked: bool) -> bool:
    """Tell whether a sentence can be of this kind: a question can at most complain, and a supposition states
    nothing."""
    if asked:
        return kind == "complaint"
    return kind not in ("statement", "change") or _SUPPOSED.match(sentence) is None


def own_words(text: str) -> str:
    """Return what the owner said, in lower case, without quoted or pasted text. It is never long."""
    own = _FENCED.sub(" ", text[:LONGEST])
    if tail := text[max(LONGEST, len(text) - LONGEST) :]:
        inside = text[: len(text) - len(tail)].count("```") % 2
        own = f"{own}\n{_FENCED.sub(' ', tail.partition('```')[2] if inside else tail)}"
    for drop in (_PASTED, _QUOTED):
        own = drop.sub(" ", own)
    plain = unicodedata.normalize("NFKC", own).replace("’", "'").replace("‘", "'")
    return plain.lower().replace("i\u0307", "i")


def _sentences(own: str) -> Iterator[tuple[str, bool]]:
    """Yield each sentence, and whether it is a question."""
    for found in _SENTENCE.finditer(own):
        sentence = found[0].strip()
        asked = sentence.endswith(("?", "？")) or _ASKS.match(sentence) is not None
        yield sentence, asked and _POLITE.match(sentence) is None


def _languages(own: str) -> Sequence[str]:
    """Return the languages that the words can be in, by their letters and by each language's small words."""
    found = [name for name, letters in _SCRIPTS.items() if letters.search(own)]
    tokens = _WORD.findall(own)
    scores = {name: sum(map(words.__contains__, tokens)) for name, words in _table().hints.items()}
    most = max(scores.values())
    if most:
        return [*found, *(name for name, score in scores.items() if 2 * score > most)]
    stems = [token[:STEM] for token in tokens if len(token) >= STEM]
    named = (name for name in scores if any(stem in _table().whole[name] for stem in stems))
    return [*found, *named] or ["en"]


class _Table(Struct, frozen=True):
    """`sources` by language and kind, and as a `whole`; `hints` by language."""

    sources: Mapping[str, Mapping[str, str]]
    whole: Mapping[str, str]
    hints: Mapping[str, frozenset[str]]


@cache
def _table() -> _Table:
    lines = PATTERNS.read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    sources: dict[str, dict[str, list[str]]] = {}
    hints = {language: frozenset(words.split()) for kind, language, words in rows if kind == "hint"}
    for kind, language, pattern in rows:
        if kind != "hint":
            sources.setdefault(language, {}).setdefault(kind, []).append(pattern)
    joined = {name: {kind: "|".join(each) for kind, each in kinds.items()} for name, kinds in sources.items()}
    return _Table(joined, {name: " ".join(kinds.values()) for name, kinds in joined.items()}, hints)


@cache
def _patterns(language: str) -> Mapping[str, re.Pattern[str]]:
    return {kind: re.compile(group_by_start(source)) for kind, source in _table().sources[language].items()}


def group_by_start(source: str) -> str:
    """Return an equivalent pattern that is several times faster: alternatives that begin at the same kind of
    place are tried only there."""
    groups: dict[str, list[str]] = {"^": [], r"\b": [], "": []}
    for alternative in _alternatives(source):
        start = next(each for each in groups if alternative.startswith(each))
        groups[start].append(alternative.removeprefix(start))
    return "|".join(f"{start}(?:{'|'.join(each)})" for start, each in groups.items() if each)


def _alternatives(source: str) -> Iterator[str]:
    """Split a pattern at each `|` outside of groups and sets."""
    begun = depth = 0
    is_set = False
    for sign in _SYNTAX.finditer(source):
        if is_set:
            is_set = sign[0] != "]"
        elif sign[0] == "|" and not depth:
            yield source[begun : sign.start()]
            begun = sign.end()
        else:
            is_set = sign[0] == "["
            depth += (sign[0] == "(") - (sign[0] == ")")
    yield source[begun:]
