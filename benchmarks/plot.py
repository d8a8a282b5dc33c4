"""The figures as pictures: how far ahead of the peer, and lines over a growing number. Plain SVG."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from statistics import median

from benchmarks.figures import Row, Side, figure
from benchmarks.table import SIDES
from hone.cli.drawing import framed

WIDTH, LABELS, VALUES = 940, 430, 70
BAR, GAP, TOP = 16, 10, 40
SCALE = WIDTH - LABELS - VALUES
LEFT, RIGHT, HIGH, FOOT = 60, 90, 280, 44
"""The margins and the height of a plot of lines."""
STYLE = """<style>
.peer { fill: #a85a00; }
polyline { fill: none !important; stroke-width: 2; }
polyline.hone { stroke: #0a5fc4; } polyline.floor { stroke: #8c959f; } polyline.peer { stroke: #a85a00; }
@media (prefers-color-scheme: dark) {
  .peer { fill: #f0a04b; }
  polyline.hone { stroke: #6cb0ff; } polyline.floor { stroke: #7d8590; } polyline.peer { stroke: #f0a04b; }
}
</style>"""
MARKS: dict[Side, str] = {"hone": "Hone", "floor": "floor", "peer": "peer"}


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps powers of ten to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(ceil(self.low), floor(self.high) + 1)]


def axis(values: Sequence[float], start: float, end: float) -> Axis:
    """Return an axis between whole powers, with a tick at both ends."""
    low = floor(log10(min(values)))
    return Axis(low, max(low + 1, ceil(log10(max(values)))), start, end)


def lead(rows: Sequence[Row]) -> str | None:
    """Draw a bar for each row in which Hone should beat the peer, and the target mark."""
    shown = [row for row in rows if row.ahead and row.lead]
    if not shown:
        return None
    ahead = [row.ahead.middle for row in shown if row.ahead]
    scale = axis([1.0, *ahead, *(row.lead for row in shown if row.lead)], LABELS, LABELS + SCALE)
    bottom = TOP + len(shown) * (BAR + GAP)
    drawn = [*_ruled(scale, bottom), *_key()]
    for number, row in enumerate(shown):
        drawn += _bar(row, scale, TOP + number * (BAR + GAP))
    told = " ".join(f"{plain(row.name)}: {_times(value)}." for row, value in zip(shown, ahead, strict=True))
    return framed(WIDTH, bottom + 24, "How many times Hone is ahead of the peer", told, drawn)


def _ruled(scale: Axis, bottom: int) -> Iterator[str]:
    for tick in scale.ticks:
        x = scale.at(tick)
        yield _rule(x, TOP - 8, x, bottom)
        yield f'<text class="value" x="{x - 8:.1f}" y="{bottom + 16}">{tick:g}×</text>'


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line class="axis" {ends} stroke-dasharray="2 4"/>'


def _key() -> Iterator[str]:
    yield f'<rect class="hone" x="0" y="4" width="{BAR}" height="{BAR}" rx="2"/>'
    yield '<text x="22" y="17">times ahead of the peer</text>'
    yield '<line class="aim" x1="190" y1="4" x2="190" y2="20"/><text x="198" y="17">wanted</text>'


def _bar(row: Row, scale: Axis, y: int) -> Iterator[str]:
    value = row.ahead.middle if row.ahead else 1.0
    one, end = scale.at(1.0), scale.at(value)
    yield f'<text x="0" y="{y + 13}">{escape(plain(row.name))}</text>'
    place = f'x="{min(one, end):.1f}" y="{y}" width="{abs(end - one):.1f}" height="{BAR}"'
    yield f'<rect class="hone" {place} rx="2"/>'
    yield f'<text class="value" x="{max(one, end) + 8:.1f}" y="{y + 12}">{_times(value)}</text>'
    if row.lead and row.lead > 1:
        at = scale.at(row.lead)
        yield f'<line class="aim" x1="{at:.1f}" y1="{y - 3}" x2="{at:.1f}" y2="{y + BAR + 3}"/>'


def _times(value: float) -> str:
    return f"{figure(value)}×"


def plain(name: str) -> str:
    """Return the text without Markdown."""
    return name.replace("`", "")


def lines(rows: Sequence[Row], name: str, title: str, across: str) -> str | None:
    """Draw the rows of one plot as a line for each side, both axes in powers of ten."""
    shown = [(row.point[1], row) for row in rows if row.point and row.point[0] == name]
    if len({x for x, _ in shown}) < 2:
        return None
    sides = {side: [(x, _median(row, side)) for x, row in shown if _samples(row, side)] for side in SIDES}
    values = [y for points in sides.values() for _, y in points]
    places = sorted(x for x, _ in shown)
    over = Axis(log10(places[0]), log10(places[-1]), LEFT, WIDTH - RIGHT)
    up = axis(values, TOP + HIGH, TOP)
    heading = f"{title}, {shown[0][1].unit}"
    drawn = [STYLE, f'<text class="heading" x="0" y="17">{escape(heading)}</text>']
    drawn += _grid(over, up, places, across)
    for side, points in sides.items():
        drawn += _line(side, points, over, up)
    ends = {side: (over.at(points[-1][0]), up.at(points[-1][1])) for side, points in sides.items() if points}
    drawn += _names(ends)
    told = " ".join(_told(side, points, shown[0][1].unit) for side, points in sides.items() if points)
    return framed(WIDTH, TOP + HIGH + FOOT, heading, told, drawn)


def _samples(row: Row, side: Side) -> tuple[float, ...]:
    return {"hone": row.hone, "floor": row.floor, "peer": row.peer}[side]


def _median(row: Row, side: Side) -> float:
    return median(_samples(row, side))


def _told(side: Side, points: Sequence[tuple[float, float]], unit: str) -> str:
    found = ", ".join(f"{figure(y)} {unit} at {x:,.0f}" for x, y in points)
    return f"{MARKS[side]}: {found}."


def _grid(over: Axis, up: Axis, places: Sequence[float], across: str) -> Iterator[str]:
    for tick in up.ticks:
        y = up.at(tick)
        yield _rule(LEFT, y, WIDTH - RIGHT, y)
        yield f'<text class="value" x="0" y="{y + 4:.1f}">{tick:g}</text>'
    for place in places:
        yield f'<text class="value" x="{over.at(place) - 10:.1f}" y="{TOP + HIGH + 18}">{place:,.0f}</text>'
    yield f'<text class="value" x="{LEFT}" y="{TOP + HIGH + 38}">{escape(across)}</text>'


def _line(side: Side, points: Sequence[tuple[float, float]], over: Axis, up: Axis) -> Iterator[str]:
    if not points:
        return
    places = [(over.at(x), up.at(y)) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="{side}" points="{path}"/>'
    for x, y in places:
        yield f'<circle class="{side}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def _names(ends: Mapping[Side, tuple[float, float]]) -> Iterator[str]:
    """Place the names at the ends of the lines, one below the other if two lines end at the same height."""
    last = 0.0
    for side, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
        last = max(y + 4, last + 15)
        yield f'<text x="{x + 10:.1f}" y="{last:.1f}">{MARKS[side]}</text>'
