"""The soak as a picture: memory, descriptors and waiting reviews over time, one panel each. Plain SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, log10

from benchmarks.plot import STYLE
from hone.cli.drawing import framed

WIDTH, LEFT, RIGHT = 940, 60, 20
TOP, HIGH, GAP, FOOT = 34, 130, 46, 40

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """A line over minutes. `mark` is the end of the load, in minutes."""

    title: str
    points: Points
    mark: float

    @property
    def top(self) -> float:
        """Return a round number that is not below any value."""
        highest = max(1.0, *(value for _, value in self.points))
        unit = 10.0 ** ceil(log10(highest) - 1)
        return ceil(highest / unit) * unit

    @property
    def last(self) -> float:
        return max(1.0, ceil(self.points[-1][0]))

    def at(self, minute: float, value: float, y: float) -> tuple[float, float]:
        across = LEFT + minute / self.last * (WIDTH - LEFT - RIGHT)
        return across, y + HIGH * (1 - value / self.top)


def draw(panels: Sequence[Panel], title: str) -> str:
    drawn = [STYLE, f'<text class="heading" x="0" y="17">{escape(title)}</text>']
    for number, panel in enumerate(panels):
        drawn += _panel(panel, TOP + GAP / 2 + number * (HIGH + GAP))
    height = TOP + len(panels) * (HIGH + GAP) + FOOT
    drawn.append(f'<text class="value" x="{LEFT}" y="{height - 8}">minutes</text>')
    return framed(WIDTH, height, title, " ".join(map(_describe, panels)), drawn)


def _panel(panel: Panel, y: float) -> Iterator[str]:
    yield f'<text x="0" y="{y - 8:.1f}">{escape(panel.title)}</text>'
    for value in (0.0, panel.top / 2, panel.top):
        x, height = panel.at(0.0, value, y)
        ends = f'x1="{x:.1f}" y1="{height:.1f}" x2="{WIDTH - RIGHT}" y2="{height:.1f}"'
        yield f'<line class="axis" {ends} stroke-dasharray="2 4"/>'
        yield f'<text class="value" x="0" y="{height + 4:.1f}">{value:g}</text>'
    for minute in range(int(panel.last) + 1):
        x, _ = panel.at(minute, 0.0, y)
        yield f'<text class="value" x="{x - 4:.1f}" y="{y + HIGH + 15:.1f}">{minute}</text>'
    x, _ = panel.at(panel.mark, 0.0, y)
    yield f'<line class="aim" x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{y + HIGH}"/>'
    path = " ".join("{:.1f},{:.1f}".format(*panel.at(minute, value, y)) for minute, value in panel.points)
    yield f'<polyline class="hone" points="{path}"/>'


def _describe(panel: Panel) -> str:
    values = [value for _, value in panel.points]
    return f"{panel.title}: {min(values):.0f} to {max(values):.0f}, {values[-1]:.0f} at the end."
