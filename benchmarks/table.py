"""The figures as Markdown and as JSON, and the place in a document where they belong."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.figures import Row, figure, spread

BEGIN, END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"


def table(rows: Sequence[Row]) -> str:
    cells = [("what", "Hone", "floor", "Hone / floor", "aim", "met"), ("---", *["---:"] * 4, "---")]
    cells += [_cells(row) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "–" if row.ratio is None else f"{row.ratio:.2f}"
    aim = f"{'≥' if row.unit == 'turns/s' else '≤'} {figure(row.aim).removesuffix('.00')} {row.unit}"
    return (row.name, _samples(row.hone), _samples(row.floor), ratio, aim, "yes" if row.met else "**no**")


def _samples(samples: Sequence[float]) -> str:
    if not samples:
        return "–"
    found = spread(samples)
    if found.low == found.high:
        return figure(found.middle)
    return f"{figure(found.middle)} ({figure(found.low)}–{figure(found.high)})"


def processor(rows: Sequence[Row]) -> str:
    """Where a machine is shared, processor time tells more than the clock on the wall."""
    cells = [
        ("what", "Hone, CPU ms", "floor, CPU ms", "provider busy beside Hone", "beside the floor"),
        ("---", *["---:"] * 4),
    ]
    for row in rows:
        if row.cpu and row.provider:
            shares = (f"{share:.0%}" if share else "–" for share in row.provider)
            cells.append((row.name, figure(row.cpu[0]), figure(row.cpu[1]), *shares))
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def as_json(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    measured = [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in rows]
    return json.dumps({"machine": machine, "rows": measured}, indent=1, ensure_ascii=False) + "\n"


def placed(document: str, figures: str) -> str:
    """The document with the figures between its two marks, and nothing else changed."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"
