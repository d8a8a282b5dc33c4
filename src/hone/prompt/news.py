"""Write a short note about what became known since a conversation began: facts, not instructions."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from hone.core.knowledge import News
from hone.core.messages import Message, Role, SystemNote
from hone.core.regex import regex
from hone.core.value import replace
from hone.core.visible import one_line
from hone.prompt.compose import TITLES, item, to_plain

LIMIT = 2_000
"""The most characters of a note."""
_DESCRIPTION = 200
_ENDING = 160
"""Room for the line that counts the omitted items."""
_HEADING = regex(r"# \d+ changes? to the journal and skills")
_ENTRY = regex(r"([A-Z][a-z ]+), (new|no longer true): ")
_SKILL = regex(r"Skill ([^\n]*?)(: removed$|, new or changed: ([^\n]*)$)")
_LEFT = regex(r"([\d,]+) more\. `memory` \(action list\)")


def describe_news(news: News) -> SystemNote | None:
    """Describe news, withdrawn things first: not knowing of them does the most harm."""
    items = ["\n".join(item(sentence)) for sentence in (*_journal(news), *_skills(news))]
    if not items:
        return None
    heading = _heading(len(items))
    return SystemNote("\n".join((heading, *_fitting(items, LIMIT - len(heading)))), news.upto)


class ToldNews(Struct, frozen=True):
    """What a note said about changes, word for word. `left` is how many it counted without naming them."""

    added: tuple[tuple[str, str], ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    skills: tuple[tuple[str, str], ...] = ()
    gone: tuple[str, ...] = ()
    left: int = 0


def read_news(note: SystemNote) -> ToldNews:
    """Read a note again: entries by the name of their part, skills with what was said about them."""
    names = {title: name for name, title in TITLES.items()}
    told: dict[str, list[tuple[str, str]]] = {"new": [], "no longer true": [], "skill": [], ": removed": []}
    left = 0
    for text in map(to_plain, _split(note.text)[1]):
        if more := _LEFT.match(text):
            left = int(more[1].replace(",", ""))
        elif skill := _SKILL.match(text):
            told[skill[2] if skill[3] is None else "skill"].append((skill[1], skill[3] or ""))
        elif (entry := _ENTRY.match(text)) and entry[1] in names:
            told[entry[2]].append((names[entry[1]], text[entry.end() :]))
    added, removed, skills, gone = map(tuple, told.values())
    return ToldNews(added, removed, skills, tuple(name for name, _ in gone), left)


def leave_out_news(note: SystemNote, part: str = "", entry: str = "", skill: str = "") -> SystemNote:
    """Return the same note without its news of an entry or of a skill."""
    before, items, behind = _split(note.text)
    sentence = f"{TITLES.get(part, part)}, new: {entry}"
    unwanted = [f"Skill {one_line(skill, 100)}, new or changed: ", f"Skill {one_line(skill, 100)}: removed"]
    kept = [
        each
        for each in items
        if (to_plain(each) != sentence if entry else not to_plain(each).startswith(tuple(unwanted)))
    ]
    if len(kept) == len(items):
        return note
    told = (_heading(len(kept)), *kept) if kept else ()
    return replace(note, text="\n".join((*before, *told, *behind)))


def _split(text: str) -> tuple[list[str], list[str], list[str]]:
    """Return the lines before the news in a note, the news as items, and the lines after them."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if _HEADING.fullmatch(line)), len(lines))
    items: list[str] = []
    end = start + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(("- ", "  "))):
        if lines[end].startswith("- "):
            items.append(lines[end])
        elif items:
            items[-1] += f"\n{lines[end]}"
        end += 1
    return lines[:start], items, lines[end:]


def find_known(messages: Iterable[Message]) -> int | None:
    """Return the last change that a conversation was told without a gap: a note cut from its middle
    invalidates the later ones. Return None if it was never told any."""
    upto = None
    for note in (message.note for message in messages if message.role is Role.USER and not message.template):
        if note and (upto is None or note.since <= upto <= note.upto):
            upto = note.upto
    return upto


def _heading(count: int) -> str:
    return f"# {count} change{'s' if count > 1 else ''} to the journal and skills"


def headline(note: SystemNote) -> str:
    """Return the subject of a note, for people."""
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
    """Yield whole items, as long as there is room for them and for the line that counts the others."""
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
