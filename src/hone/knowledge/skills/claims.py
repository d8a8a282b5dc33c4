"""Find claims in a skill that something does not work.

Such a claim goes out of date and keeps an agent from trying again. A skill may still say what to do when
something fails, so a claim counts only if its paragraph names no condition before it and no workaround.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from hone.core.regex import regex
from hone.knowledge.cues import split_claim
from hone.knowledge.resemblance import subjects
from hone.knowledge.sentences import sentences

_FENCES = ("```", "~~~")
_START = regex(r"\s*(?:[-*+]\s|\d+[.)]\s|>|description:)")
"""The start of a new paragraph without an empty line before it."""
_ASIDE = regex(r"\s*(?:#|\||---)|.*:[\s*_]*$")
"""Headings, tables and introductions, which name a case."""
_QUOTED = regex(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
_DENIED = regex(
    r"\b(?:so )?(?:(?:please|you|it|we) )?(?:(?:must|should|need|can|do|does|will) )?"
    r"(?:not|never|cannot|\w+n't|avoid|nicht|nie|kein\w*|ne|pas|no|non|não|niet) (?:be )?\w+"
)
"""A workaround that is ruled out: "so do not use it"."""
_WORD = regex(r"\w+(?:-\w+)*")


def find_claims(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """Return the sentences by which a change adds such a claim to a skill's Markdown."""
    found: list[str] = []
    for path, data in after.items():
        if path.endswith(".md"):
            known = set(_paragraphs(before.get(path, b"")))
            found += [claim for each in _paragraphs(data) if each not in known for claim in _claims(each)]
    return found


def _paragraphs(data: bytes) -> Iterator[str]:
    """Yield paragraphs and list items, each on one line."""
    rows: list[str] = []
    is_code = False
    for row in data.decode("utf-8", "replace").split("\n"):
        is_fence = row.strip().startswith(_FENCES)
        is_code ^= is_fence
        is_aside = is_code or is_fence or not row.strip() or bool(_ASIDE.match(row))
        if rows and (is_aside or _START.match(row)):
            yield " ".join(rows)
            rows = []
        if not is_aside:
            rows.append(_START.sub("", row, count=1).strip())
    if rows:
        yield " ".join(rows)


def _claims(paragraph: str) -> Iterator[str]:
    plain = _QUOTED.sub("it", paragraph.replace("’", "'"))
    if _words(_DENIED.sub(" ", plain.casefold())) & _remedies():
        return
    for start, end in sentences(plain):
        sentence = plain[start:end].strip()
        parts = None if sentence.endswith("?") else split_claim(sentence)
        if parts and not _words(parts[0]) & _conditions():
            yield sentence


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


@cache
def _conditions() -> frozenset[str]:
    return frozenset(subjects().cues.conditions.split())


@cache
def _remedies() -> frozenset[str]:
    return frozenset(subjects().cues.remedies.split())
