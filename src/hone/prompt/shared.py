"""Write what the team shares into a prompt, and later changes into a note. Both can be read again.

Each line says who shared it. It is never the user's word: no quote of the user covers it.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hone.core.knowledge import SharedKnowledge, SharedLesson, SharedSkill
from hone.core.messages import Message, Role
from hone.core.regex import regex
from hone.core.visible import one_line
from hone.prompt.compose import WIDTH, item, to_plain

HEADING = "# Shared by your team"
PREFIX = "team/"
"""Precedes the name of a skill that the team shares. No skill of the user's has a slash in its name."""
SKILL_BUDGET = 2_000
"""The most bytes of the list of skills. `skills_list` finds those without room."""
LIMIT = 2_000
"""The most characters of a note. A later note tells the rest."""
_ABOUT = (
    "Colleagues of the user wrote this, and a second person approved it. The user did not say it: the user's "
    "words and the journal come first."
)
_SKILLS = "Skills of the team. Read one with `skill_view`, search them with `skills_list`."
_NEWS = regex(r"# \d+ changes? to what your team shares")
_NEW, _GONE = "New, ", "No longer shared, "


class Told(Struct, frozen=True):
    """What a conversation was told, each line as written: `NAME: entry`, `team/NAME: about`."""

    lines: tuple[str, ...] = ()


def shared_section(known: SharedKnowledge) -> str:
    """Return the section of a prompt; empty if the team shares nothing."""
    entries, skills = _entry_lines(known.entries), _skill_lines(known.skills)
    parts = ["\n".join(line for each in lines for line in item(each)) for lines in (entries, skills) if lines]
    if skills:
        parts[-1] = f"{_SKILLS}\n\n{parts[-1]}"
    return "\n\n".join((HEADING, _ABOUT, *parts)) if parts else ""


def describe_shared_news(told: Told, known: SharedKnowledge) -> str:
    """Return a note about the difference; empty if there is none. Removed items come first."""
    now = [*_entry_lines(known.entries), *_skill_lines(known.skills)]
    gone = [f"{_GONE}{each}" for each in told.lines if each not in now]
    items = [*gone, *(f"{_NEW}{each}" for each in now if each not in told.lines)]
    chosen = list(_fitting(["\n".join(item(each)) for each in items]))
    if not chosen:
        return ""
    count = f"{len(chosen)} change{'s' if len(chosen) > 1 else ''}"
    return "\n".join((f"# {count} to what your team shares", *chosen))


def read_told(system: str, messages: Iterable[Message]) -> Told:
    """Return what a prompt and later notes said about the team's knowledge."""
    lines = dict.fromkeys(find_shared(system))
    for message in messages:
        if message.role is Role.USER and not message.template and message.note:
            for text in _read_news(message.note.text):
                if text.startswith(_GONE):
                    lines.pop(text.removeprefix(_GONE), None)
                elif text.startswith(_NEW):
                    lines[text.removeprefix(_NEW)] = None
    return Told(tuple(lines))


def find_shared(system: str) -> list[str]:
    """Return the lines about the team's knowledge in a prompt."""
    before, found, rest = system.partition(f"{HEADING}\n\n{_ABOUT}\n\n")
    if not found or (before and not before.endswith("\n\n")):
        return []
    return [to_plain(each) for each in _items(rest.replace(f"{_SKILLS}\n\n", "", 1).split("\n"))]


def find_shared_in(note: str) -> list[str]:
    """Return the lines that a note told as new."""
    return [text.removeprefix(_NEW) for text in _read_news(note) if text.startswith(_NEW)]


def _read_news(note: str) -> list[str]:
    lines = note.split("\n")
    start = next((at for at, line in enumerate(lines) if _NEWS.fullmatch(line)), len(lines))
    return [to_plain(each) for each in _items(lines[start + 1 :])]


def _items(lines: Iterable[str]) -> list[str]:
    """Return the items at the start of these lines, each as `item` wrote it."""
    found: list[str] = []
    blank = 0
    for line in lines:
        if line.startswith("- "):
            found.append(line)
        elif line.startswith("  ") and found:
            found[-1] += "\n" * (blank + 1) + line
        elif line:
            break
        blank = 0 if line else blank + 1
    return found


def _entry_lines(entries: Iterable[SharedLesson]) -> list[str]:
    return [f"{one_line(each.sharer, 64)}: {each.text.strip()}" for each in entries]


def _skill_lines(skills: Iterable[SharedSkill]) -> list[str]:
    lines, room = [], SKILL_BUDGET
    for each in sorted(skills, key=lambda each: each.name):
        line = skill_line(each)
        room -= len(line.encode()) + 3
        if room < 0:
            break
        lines.append(line)
    return lines


def skill_line(skill: SharedSkill) -> str:
    """Return a skill of the team on one line, with who shared it."""
    about = one_line(skill.description, WIDTH)
    return f"{PREFIX}{one_line(skill.name, WIDTH)}: {about} (from {one_line(skill.sharer, 64)})"


def _fitting(items: Iterable[str]) -> Iterator[str]:
    room = LIMIT
    for at, each in enumerate(items):
        room -= len(each) + 1
        if room < 0 and at:
            return
        yield each
