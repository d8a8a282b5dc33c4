"""Write a short note about what became known since a conversation began: facts, not instructions."""

from collections.abc import Iterable, Iterator, Sequence

from hone.core.knowledge import News
from hone.core.messages import Message, Role, SystemNote
from hone.core.visible import one_line
from hone.prompt.compose import TITLES, item

LIMIT = 2_000
"""Characters of a note."""
_DESCRIPTION = 200
_ENDING = 160
"""Room for the line that counts what was left out."""


def describe_news(news: News) -> SystemNote | None:
    """Withdrawn things first: not to know of them does the most harm."""
    items = ["\n".join(item(sentence)) for sentence in (*_journal(news), *_skills(news))]
    if not items:
        return None
    count = f"{len(items)} changes" if len(items) > 1 else "1 change"
    heading = f"# {count} to the journal and skills"
    return SystemNote("\n".join((heading, *_fitting(items, LIMIT - len(heading)))), news.upto)


def find_known(messages: Iterable[Message]) -> int | None:
    """The last change that a conversation was told of without a gap: a note that was cut out of its middle
    takes along what the later ones rest on. None if it was never told of any."""
    upto = None
    for note in (message.note for message in messages if message.role is Role.USER and not message.template):
        if note and (upto is None or note.since <= upto <= note.upto):
            upto = note.upto
    return upto


def headline(note: SystemNote) -> str:
    """What a note is about, for people."""
    first, _, _ = note.text.partition("\n")
    return one_line(first.removeprefix("# "), 100)


def _journal(news: News) -> Iterator[str]:
    for place, entry in news.removed:
        yield f"{TITLES.get(place, place)}, no longer true: {entry.strip()}"
    for place, entry in news.added:
        yield f"{TITLES.get(place, place)}, new: {entry.strip()}"


def _skills(news: News) -> Iterator[str]:
    for name in news.gone:
        yield f"Skill {one_line(name, 100)}: removed"
    for skill in news.skills:
        about = one_line(skill.description, _DESCRIPTION)
        yield f"Skill {one_line(skill.name, 100)}, new or changed: {about}"


def _fitting(items: Sequence[str], room: int) -> Iterator[str]:
    """Whole items, as long as there is room for them and for the line that counts the others."""
    if sum(len(each) + 1 for each in items) <= room:
        yield from items
        return
    room, left = room - _ENDING, 0
    for each in items:
        if len(each) < room:
            room -= len(each) + 1
            yield each
        else:
            left += 1
    yield f"- {left:,} more. `memory` (action list) and `skills_list` show the current state."
