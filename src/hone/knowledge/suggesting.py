"""Decide when a user's turn carries a note with skills that may fit, and what the note says.

The first turn has one, and a later turn that changes the subject. The note is separate from the user's words
and stored with them, so every later request sends the same bytes.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from hone.core.errors import HoneError
from hone.core.messages import Message, Role
from hone.core.skill import ListedSkill
from hone.knowledge.skills.similar import content_stems
from hone.prompt.compose import find_listed
from hone.prompt.matches import describe_matches, find_named

Match = Callable[[str], Awaitable[Sequence[ListedSkill]]]
"""Returns the skills that are close to a user's words, best first."""

READ = 4_000
"""The most characters of a turn to check."""
TURNS = 20
"""How many earlier turns a new one is compared with."""
SAME = 0.25
"""A turn that shares at least this part of its content words is about the same as those before it."""


async def suggest(match: Match, words: str, messages: Iterable[Message], system: str) -> str:
    """Return the note for these words, or nothing. A failed search must not hold up a turn."""
    words = words[:READ]
    named, since = _read_back(messages)
    if not is_new_subject(words, since):
        return ""
    try:
        found = await match(words)
    except HoneError:
        return ""
    return describe_matches(choose(found, named, find_listed(system)))


def choose(
    found: Sequence[ListedSkill], named: frozenset[str], listed: frozenset[str]
) -> Sequence[ListedSkill]:
    """Return what to name: nothing if the best skill was named before, or if the prompt lists all of them."""
    if not found or found[0].name in named or all(each.name in listed for each in found):
        return ()
    return [each for each in found if each.name not in named]


def is_new_subject(words: str, since: Sequence[str]) -> bool:
    """Tell whether these words share little with the turns since the last note."""
    content = content_stems(words)
    before = content_stems("\n".join(turn[:READ] for turn in since[-TURNS:]))
    return bool(content) and (not before or len(content & before) < SAME * len(content))


def _read_back(messages: Iterable[Message]) -> tuple[frozenset[str], Sequence[str]]:
    """Return the skills named so far, and the user's turns since the last note."""
    named: set[str] = set()
    since: list[str] = []
    for message in messages:
        if message.role is not Role.USER or message.template:
            continue
        if names := find_named(message):
            named.update(names)
            since = []
        since.append(message.text)
    return frozenset(named), since
