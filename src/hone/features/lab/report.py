"""Show the results of the lab as a table, and as data for programs."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import msgspec

from hone.features.lab.figures import (
    CALLS,
    CORRECTIONS,
    EXAM,
    POISON,
    SHARE,
    SUCCESS,
    TOKENS,
    WRONG,
    ArmFigures,
    Point,
)

PARTS = 4
"""How many parts of a curve the table shows."""
ROWS = (
    (EXAM, "success afterwards"),
    (CORRECTIONS, "corrections"),
    (CALLS, "model calls"),
    (TOKENS, "tokens"),
    (SHARE, "learning's share of the cost"),
    (POISON, "poison learned"),
    (WRONG, "wrong lessons in the last prompt"),
)


def table(title: str, arms: Sequence[ArmFigures]) -> Iterator[str]:
    """Yield aligned lines: one column for each arm, without the title in its name."""
    rows = [[title, *(arm.arm.removeprefix(f"{title}, ") for arm in arms)]]
    for first, last in parts(len(arms[0].curve(SUCCESS).points)):
        shown = [_share(_mean_of(arm, first, last)) for arm in arms]
        rows.append([f"success, sessions {first + 1} to {last}", *shown])
    for name, shown_as in ROWS:
        rows.append([shown_as, *(describe(name, arm.figure(name)) for arm in arms)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, *cells in rows:
        aligned = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join((name.ljust(widths[0]), *aligned)).rstrip()


def parts(sessions: int) -> list[tuple[int, int]]:
    """Return where each part of the sessions begins and ends."""
    count = min(PARTS, sessions)
    ends = [round(sessions * part / count) for part in range(count + 1)]
    return list(pairwise(ends))


def _mean_of(arm: ArmFigures, first: int, last: int) -> float:
    points = [each.mean for each in arm.curve(SUCCESS).points[first:last] if each]
    return fmean(points) if points else 0.0


def describe(name: str, point: Point) -> str:
    """Return a figure with its interval."""
    show = {EXAM: _share, SHARE: _share, TOKENS: _thousands}.get(name, _amount)
    if point.low == point.high:
        return show(point.mean)
    return f"{show(point.mean)} ({show(point.low)} to {show(point.high)})"


def _share(value: float) -> str:
    return f"{100 * value:.0f}%"


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f}k"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def to_data(arms: Sequence[ArmFigures], sessions: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Return every figure and every point, for programs."""
    return {"sessions": sessions, "seeds": list(seeds), "arms": msgspec.to_builtins(arms)}
