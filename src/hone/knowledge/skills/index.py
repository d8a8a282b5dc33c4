"""The skills in the prompt: one line each, as many as fit, the same bytes for the same skills."""

from collections.abc import Sequence

from hone.core.skill import ListedSkill
from hone.core.visible import one_line

BUDGET = 8_000
"""Bytes."""
WIDTH = 120

_HEAD = "# Skills\n\nEach is a way to do a class of task; `skill_view` gives its text.\n"
_MORE = "\nMore are not shown here; `skills_list` with a query finds them."
_ALL = "\nThese are all; `skills_list` with a query finds the one that fits."


def index(ranked: Sequence[ListedSkill], total: int, budget: int = BUDGET) -> str:
    """Return the first in rank that fit into the budget, sorted by name; empty if there are none or no
    room. How many there are besides is not said: each new one would change the bytes of every prompt."""
    room = budget - len(_HEAD.encode()) - len(max(_MORE, _ALL, key=len).encode()) - 1
    lines: dict[str, str] = {}
    for listed in ranked:
        line = _line(listed)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines[listed.name] = line
    if not lines:
        return ""
    ending = _MORE if max(total, len(ranked)) > len(lines) else _ALL
    return "\n".join([_HEAD, *(lines[name] for name in sorted(lines)), ending])


def _line(listed: ListedSkill) -> str:
    return f"- {one_line(listed.name, WIDTH)}: {_short(listed.description)}"


def _short(description: str) -> str:
    """One line, cut at a word. No description can begin another line, nor hide anything in its own."""
    line = one_line(description, WIDTH)
    if len(line) < WIDTH or not line.endswith("…"):
        return line
    cut, space, _ = line.rpartition(" ")
    return f"{cut.rstrip(' ,;:.')}…" if space and len(cut) > WIDTH // 2 else line
