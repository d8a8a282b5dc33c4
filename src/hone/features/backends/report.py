"""Report measured memory backends: as a table, and as a drawing of one bar each."""

from collections.abc import Iterator, Sequence
from html import escape

from hone.features.backends.choice import NULL
from hone.features.backends.evaluate import BASELINE, Measured, advice, label, score

TITLES = (
    *("backend", "score", "label", "avail", "func", "lat", "priv", "store", "retrieve", "query", "recall"),
    *("kill -9", "calls", "key"),
)
TIMED = ("store", "retrieve", "query")
PARTS = (
    ("availability", "#8ecae6", 20),
    ("function", "#219ebc", 40),
    ("latency", "#ffb703", 20),
    ("privacy", "#90be6d", 20),
)
LEFT, BAR, ROW, TOP = 110, 5, 34, 54


def table(every: Sequence[Measured]) -> str:
    """Times are p50/p95 in milliseconds; calls are requests to a server for store/retrieve/query."""
    rows = [TITLES, *(tuple(_cells(each)) for each in every)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    notes = [f"{each.name}: {each.why or each.error}" for each in every if each.why or each.error]
    lies = [f"{each.name} lies in {each.location}" for each in every if each.available and each.name != NULL]
    return "\n".join([*lines, "", *notes, *lies, *advice(every)])


def _cells(measured: Measured) -> Iterator[str]:
    points = score(measured)
    yield measured.name
    yield str(points.total)
    yield label(measured) if measured.available else "not available"
    yield from map(str, (points.availability, points.function, points.latency, points.privacy))
    for name in TIMED:
        yield (
            ""
            if measured.at(name, 0.5) is None
            else f"{measured.at(name, 0.5):.1f}/{measured.at(name, 0.95):.1f}"
        )
    yield f"{100 * measured.recall:.0f} %" if measured.available else ""
    yield {True: "kept", False: "lost", None: ""}[measured.durable]
    yield "/".join(f"{measured.calls[name]:.1f}" for name in TIMED if name in measured.calls)
    yield "yes" if measured.needs_key else "no"


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
