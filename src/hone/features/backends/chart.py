"""The scores of memory backends as a drawing: one bar each, in the parts it is made of."""

from collections.abc import Sequence
from html import escape

from hone.features.backends.evaluate import BASELINE, Measured, label, score

PARTS = (
    ("availability", "#8ecae6", 20),
    ("function", "#219ebc", 40),
    ("latency", "#ffb703", 20),
    ("privacy", "#90be6d", 20),
)
LEFT, BAR, ROW, TOP = 110, 5, 34, 54


def svg(every: Sequence[Measured]) -> str:
    """Five pixels a point; the lines stand at 40, 60 and 80."""
    height = TOP + ROW * len(every) + 26
    width = LEFT + 100 * BAR + 170
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13" role="img" aria-label="Scores of memory backends">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(),
        *(line for number, each in enumerate(every) for line in _bar(each, TOP + ROW * number)),
        *_marks(TOP, TOP + ROW * len(every)),
        "</svg>",
    ]
    return "\n".join(rows) + "\n"


def _legend() -> list[str]:
    rows = []
    for number, (name, colour, most) in enumerate(PARTS):
        at = LEFT + 130 * number
        rows.append(f'<rect x="{at}" y="14" width="12" height="12" fill="{colour}"/>')
        rows.append(f'<text x="{at + 18}" y="25" fill="#222222">{name} ({most})</text>')
    return rows


def _bar(measured: Measured, top: int) -> list[str]:
    points, at, rows = score(measured), LEFT, []
    name = escape(measured.name)
    rows.append(f'<text x="{LEFT - 10}" y="{top + 16}" text-anchor="end" fill="#222222">{name}</text>')
    for part, colour, _ in PARTS:
        size = BAR * int(getattr(points, part))
        rows.append(f'<rect x="{at}" y="{top}" width="{size}" height="22" fill="{colour}"/>')
        at += size
    word = label(measured) if measured.available or label(measured) == BASELINE else "not available"
    rows.append(f'<text x="{at + 8}" y="{top + 16}" fill="#222222">{points.total} · {word}</text>')
    return rows


def _marks(top: int, bottom: int) -> list[str]:
    rows = []
    for mark in (40, 60, 80):
        at = LEFT + BAR * mark
        dashes = 'stroke="#888888" stroke-dasharray="3 3"'
        rows.append(f'<line x1="{at}" y1="{top - 8}" x2="{at}" y2="{bottom}" {dashes}/>')
        rows.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle" fill="#555555">{mark}</text>')
    return rows
