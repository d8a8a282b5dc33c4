"""A call that has ended, as lines: what it was, how long it took, and the beginning of what it brought."""

from collections.abc import Iterator, Sequence

from rich.style import Style
from rich.text import Text

from hone.cli.render import describe
from hone.cli.terminal.markdown import DIM
from hone.core.messages import ToolCall
from hone.core.tool import Outcome
from hone.core.visible import visible

RED, GREEN = Style(color="red"), Style(color="green")
SHORT = 60
"""A result of one line and no more letters stands beside its call."""
FIRST, SPARE = 5, 2
"""Lines that are shown of a longer result, and how many more it may have without being cut."""


def result(call: ToolCall, outcome: Outcome, seconds: float, width: int, *, whole: bool) -> Iterator[Text]:
    mark = ("✗ ", RED) if outcome.failed else ("✓ ", GREEN)
    said = visible(outcome.text).strip()
    short = "\n" not in said and len(said) <= SHORT
    beside = f" · {said.removesuffix('.')}" if said and short else ""
    yield Text.assemble(mark, describe(call), (f"{beside} · {elapsed(seconds)}", DIM))
    if not short:
        lines = visible(outcome.text).strip("\n").split("\n")
        yield from _whole(lines) if whole else _folded(lines, width)


def _whole(lines: Sequence[str]) -> Iterator[Text]:
    is_diff = any(line.startswith("@@ ") for line in lines)
    for line in lines:
        colour = {"+": GREEN, "-": RED}.get(line[:1], DIM) if is_diff else DIM
        yield Text(f"  {line}", colour)


def _folded(lines: Sequence[str], width: int) -> Iterator[Text]:
    """Without empty lines, and none longer than a row."""
    told = [line for line in _whole(lines) if line.plain.strip()]
    kept = len(told) if len(told) <= FIRST + SPARE else FIRST
    yield from (fit(line, width) for line in told[:kept])
    if kept < len(told):
        yield Text(f"  … {len(told) - kept:,} more lines", DIM)


def fit(line: Text, width: int) -> Text:
    """Cut to less than a row, so that the cursor stays on it."""
    cut = line.copy()
    cut.expand_tabs(8)
    cut.truncate(width - 1, overflow="ellipsis")
    return cut


def elapsed(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
