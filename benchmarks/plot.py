"""The figures as a picture: bars of Hone and of the floor, a mark at the aim. Plain SVG, light and dark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from benchmarks.figures import Row, Unit, figure
from hone.cli.svg import framed

WIDTH, LABELS, VALUES = 860, 330, 70
BAR, GAP, HEADING = 14, 14, 34
SCALE = WIDTH - LABELS - VALUES


@dataclass(frozen=True, slots=True)
class Panel:
    """Rows that share a unit and a scale."""

    heading: str
    rows: tuple[Row, ...]

    @property
    def top(self) -> float:
        """The value at the right end of the scale."""
        shown = (median(samples) for row in self.rows for samples in (row.hone, row.floor) if samples)
        return max(*shown, *(row.aim for row in self.rows))

    @property
    def height(self) -> int:
        return HEADING + len(self.rows) * (2 * BAR + GAP)


HEADINGS: dict[Unit, str] = {
    "ms": "Milliseconds (shorter is better)",
    "turns/s": "Turns a second (longer is better)",
    "bytes": "Bytes (shorter is better)",
}


def panels(rows: Sequence[Row]) -> Iterator[Panel]:
    """By unit, starts apart from the much shorter iterations."""
    for unit, heading in HEADINGS.items():
        of_unit = [row for row in rows if row.unit == unit]
        for long in (True, False):
            some = tuple(row for row in of_unit if (row.aim >= 50) is long)
            if some:
                yield Panel(heading, some)


def picture(rows: Sequence[Row]) -> str:
    drawn: list[str] = []
    y = HEADING
    for panel in panels(rows):
        drawn += _panel(panel, y)
        y += panel.height
    return framed(WIDTH, y, "Hone beside a bare loop", _told(rows), (*_legend(), *drawn))


def _told(rows: Sequence[Row]) -> str:
    """The same for whoever cannot see the bars."""
    sentences = []
    for row in rows:
        floor = f", floor {figure(median(row.floor))}" if row.floor else ""
        sentences.append(
            f"{_plain(row.name)}: Hone {figure(median(row.hone))}{floor}, aim {row.aim:g} {row.unit}."
        )
    return " ".join(sentences)


def _plain(name: str) -> str:
    """Without the marks of Markdown."""
    return name.replace("`", "")


def _legend() -> Iterator[str]:
    for x, name in ((0, "hone"), (80, "floor")):
        yield f'<rect class="{name}" x="{x}" y="4" width="{BAR}" height="{BAR}" rx="2"/>'
        yield f'<text x="{x + 20}" y="16">{name.capitalize() if name == "hone" else name}</text>'
    yield '<line class="aim" x1="164" y1="3" x2="164" y2="19"/><text x="174" y="16">aim</text>'


def _panel(panel: Panel, y: int) -> Iterator[str]:
    yield f'<text class="heading" x="0" y="{y + 18}">{escape(panel.heading)}</text>'
    y += HEADING
    for row in panel.rows:
        yield from _row(row, panel.top, y)
        y += 2 * BAR + GAP


def _row(row: Row, top: float, y: int) -> Iterator[str]:
    yield f'<text x="0" y="{y + BAR + 4}">{escape(_plain(row.name))}</text>'
    for offset, name, samples in ((0, "hone", row.hone), (BAR, "floor", row.floor)):
        if not samples:
            continue
        value = median(samples)
        long = value / top * SCALE
        place = f'x="{LABELS}" y="{y + offset}" width="{long:.1f}" height="{BAR - 1}"'
        yield f'<rect class="{name}" {place} rx="2"/>'
        yield f'<text class="value" x="{LABELS + long + 6:.1f}" y="{y + offset + 11}">{figure(value)}</text>'
    at = LABELS + row.aim / top * SCALE
    yield f'<line class="aim" x1="{at:.1f}" y1="{y - 3}" x2="{at:.1f}" y2="{y + 2 * BAR + 2}"/>'
