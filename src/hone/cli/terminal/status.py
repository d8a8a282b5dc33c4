"""The line below the prompt: which model, how full, how dear, where."""

from collections.abc import Sequence
from pathlib import Path

from hone.cli.render import price, share
from hone.core.model import Usage, total
from hone.core.value import dataclass
from hone.core.visible import one_line

LONGEST = 100
"""Letters of a model or folder that are shown, however wide the terminal."""


@dataclass(frozen=True, slots=True)
class Status:
    """`spent` has an entry for each model call of the session."""

    model: str
    folder: str
    spent: Sequence[Usage] = ()


def status_line(status: Status, width: int) -> str:
    """As much of it as fits, the folder being the first to go."""
    model = one_line(status.model, LONGEST)
    parts = [model, *_figures(status.spent)]
    folder = place(status.folder)
    for shown in ([*parts, folder], [*parts, folder.rpartition("/")[2]], parts, [model, *parts[2:]]):
        line = " · ".join(shown)
        if len(line) <= width:
            return line
    return one_line(model, max(width, 1))


def _figures(spent: Sequence[Usage]) -> list[str]:
    if not spent:
        return []
    last = spent[-1]
    return [f"{last.input:,} tokens ({share(last)} cached)", price(total(spent).cost)]


def place(folder: str) -> str:
    """As its owner would write it."""
    home = str(Path.home())
    inside = folder == home or folder.startswith(f"{home}/")
    return one_line(f"~{folder.removeprefix(home)}" if inside else folder, LONGEST)
