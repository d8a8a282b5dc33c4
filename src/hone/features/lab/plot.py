"""Draw learning curves: success by session, one panel for each learner, with a band over each interval."""

from collections.abc import Iterator, Sequence
from html import escape

from msgspec import Struct

from hone.cli.drawing import framed
from hone.features.lab.figures import EXAM, SUCCESS, ArmFigures, Curve, Point
from hone.features.lab.report import describe

WIDTH, TOP, BOTTOM, LEFT, RIGHT, GAP = 860, 62, 58, 42, 10, 58
PLOT = 240
"""Height of a panel."""
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
STYLES = (("clear", "hone", ""), ("span", "floor", ""), ("aim", "", "6 4"), ("aim", "", "2 3"))
"""Classes of a line and of its band, and its dashes, for one arm after the other."""


class Panel(Struct, frozen=True):
    title: str
    arms: tuple[ArmFigures, ...]


def picture(panels: Sequence[Panel], title: str) -> str:
    """Return an SVG file."""
    width = (WIDTH - LEFT - RIGHT - GAP * (len(panels) - 1)) / len(panels)
    height = TOP + PLOT + BOTTOM + 18 * max(len(each.arms) for each in panels)
    drawn = [f'<text class="heading" x="0" y="18">{escape(title)}</text>']
    for number, panel in enumerate(panels):
        drawn += _draw_panel(panel, LEFT + number * (width + GAP), width)
    said = [f"{panel.title}, {arm.arm}: {_tell(arm)}." for panel in panels for arm in panel.arms]
    return framed(WIDTH, height, title, " ".join(said), drawn)


def _tell(arm: ArmFigures) -> str:
    return f"success after the last session {describe(EXAM, arm.figure(EXAM))}"


def _draw_panel(panel: Panel, left: float, width: float) -> Iterator[str]:
    yield f'<text x="{left:.0f}" y="{TOP - 18}">{escape(panel.title)}</text>'
    for step in STEPS:
        y = _height(step)
        line = f'<line class="axis" stroke-opacity="0.35" x1="{left:.0f}" x2="{left + width:.0f}"'
        yield f'{line} y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="value" x="{left - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{step:.0%}</text>'
    sessions = len(panel.arms[0].curve(SUCCESS).points)
    for session in range(1, sessions + 1):
        if session in (1, sessions) or session % 5 == 0:
            x = _place(session - 1, sessions, left, width)
            text = f'<text class="value" x="{x:.1f}" y="{TOP + PLOT + 16}" text-anchor="middle">'
            yield f"{text}{session}</text>"
    middle = left + width / 2
    yield f'<text class="value" x="{middle:.0f}" y="{TOP + PLOT + 34}" text-anchor="middle">session</text>'
    for number, arm in enumerate(panel.arms):
        yield from _draw_arm(arm, number, left, width)


def _draw_arm(arm: ArmFigures, number: int, left: float, width: float) -> Iterator[str]:
    line, band, dashes = STYLES[number % len(STYLES)]
    points = list(_points(arm.curve(SUCCESS), left, width))
    if band:
        upper = [f"{x:.1f},{_height(point.high):.1f}" for x, point in points]
        lower = [f"{x:.1f},{_height(point.low):.1f}" for x, point in reversed(points)]
        yield f'<polygon class="{band}" fill-opacity="0.15" points="{" ".join((*upper, *lower))}"/>'
    path = " ".join(f"{x:.1f},{_height(point.mean):.1f}" for x, point in points)
    drawn = f'class="{line}" stroke-dasharray="{dashes}"' if dashes else f'class="{line}"'
    yield f'<polyline fill="none" {drawn} points="{path}"/>'
    y = TOP + PLOT + 52 + 18 * number
    yield f'<line {drawn} x1="{left:.0f}" y1="{y}" x2="{left + 26:.0f}" y2="{y}"/>'
    told = f"{arm.arm}, {arm.worlds} worlds"
    yield f'<text class="value" x="{left + 34:.0f}" y="{y + 4}">{escape(told)}</text>'


def _points(curve: Curve, left: float, width: float) -> Iterator[tuple[float, Point]]:
    for session, point in enumerate(curve.points):
        if point is not None:
            yield _place(session, len(curve.points), left, width), point


def _place(session: int, sessions: int, left: float, width: float) -> float:
    return left + width * session / max(1, sessions - 1)


def _height(share: float) -> float:
    return TOP + PLOT * (1 - share)
