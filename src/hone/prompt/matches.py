"""Write and read a short note that names skills which may fit the user's words."""

from collections.abc import Sequence
from itertools import takewhile

from hone.core.messages import Message, Role, SystemNote, told
from hone.core.skill import ListedSkill
from hone.core.value import replace
from hone.prompt.compose import WIDTH, skill_line

LIMIT = 600
"""The most bytes of a note, as sent."""
NARROWEST = 40
"""The fewest characters of a description; without room for them, a skill is left out."""
HEADING = "# Skills that may fit"


def describe_matches(skills: Sequence[ListedSkill]) -> str:
    """Return the note: names and descriptions, best first. Descriptions are shortened to make room; if that
    is not enough, the last skills are left out."""
    for count in range(len(skills), 0, -1):
        for width in range(WIDTH, NARROWEST - 1, -10):
            note = "\n".join((HEADING, *(skill_line(each, width) for each in skills[:count])))
            if len(told(SystemNote(note)).encode()) <= LIMIT:
                return note
    return ""


def find_named(message: Message) -> Sequence[str]:
    """Return the skills that a note to this message names."""
    note = message.note if message.role is Role.USER and not message.template else None
    lines = note.text.split("\n") if note else []
    named = lines[lines.index(HEADING) + 1 :] if HEADING in lines else []
    return [line[2:].partition(":")[0] for line in takewhile(lambda line: line.startswith("- "), named)]


def leave_out_match(note: SystemNote, name: str) -> SystemNote:
    """Return the same note without naming a skill as one that may fit."""
    lines = note.text.split("\n")
    if HEADING not in lines:
        return note
    start = lines.index(HEADING) + 1
    named = [*takewhile(lambda line: line.startswith("- "), lines[start:])]
    kept = [line for line in named if line[2:].partition(":")[0] != name]
    if len(kept) == len(named):
        return note
    rest = lines[start + len(named) :]
    return replace(note, text="\n".join((*lines[: start if kept else start - 1], *kept, *rest)))
