"""The figures as Markdown and as JSON, and their place in a document."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.figures import Row, Side, figure, spread

BEGIN, END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"
SIDES: tuple[Side, ...] = ("hone", "floor", "peer")


def table(rows: Sequence[Row]) -> str:
    """Return the table. Without a peer its two columns are left out."""
    peer = any(row.peer for row in rows)
    heads = [
        "what",
        "Hone",
        "floor",
        "× floor",
        *(["peer", "ahead of the peer"] if peer else []),
        "wanted",
        "met",
    ]
    return _lines(heads, (_cells(row, peer) for row in rows))


def _lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _cells(row: Row, peer: bool) -> list[str]:
    ratio = "–" if row.ratio is None else f"{row.ratio:.2f}"
    ahead = f"{_spread(row.ahead.low, row.ahead.middle, row.ahead.high)}×" if row.ahead else "–"
    met = {True: "yes", False: "**no**", None: "–"}[row.met]
    beside = [_shown(row, "peer") if row.peer else row.absent or "–", ahead] if peer else []
    return [row.name, _shown(row, "hone"), _samples(row.floor), ratio, *beside, _wanted(row, peer), met]


def _wanted(row: Row, peer: bool) -> str:
    wanted = []
    if row.aim is not None:
        amount = figure(row.aim).removesuffix(".00")
        wanted.append(f"{'≥' if row.rising else '≤'} {amount} {row.unit}")
    if row.lead is not None and peer:
        wanted.append(f"≥ {row.lead:g}×")
    return ", ".join(wanted) or row.unit


def _shown(row: Row, side: Side) -> str:
    samples = row.peer if side == "peer" else row.hone
    if side not in row.bounds:
        return _samples(samples)
    low, high = row.bounds[side]
    return _spread(low, samples[0], high)


def _samples(samples: Sequence[float]) -> str:
    if not samples:
        return "–"
    found = spread(samples)
    return _spread(found.low, found.middle, found.high)


def _spread(low: float, middle: float, high: float) -> str:
    shown = figure(middle), figure(low), figure(high)
    return shown[0] if len(set(shown)) == 1 else f"{shown[0]} ({shown[1]}–{shown[2]})"


def processor(rows: Sequence[Row]) -> str:
    """Return the processor times: on a shared machine they are more reliable than wall time."""
    sides = [side for side in SIDES if side != "peer" or any("peer" in row.cpu for row in rows)]
    names = ["Hone" if side == "hone" else side for side in sides]
    heads = ["what", *(f"{name}, CPU ms" for name in names), *(f"provider beside {name}" for name in names)]
    return _lines(
        heads,
        (
            [
                row.name,
                *(figure(row.cpu[side]) if side in row.cpu else "–" for side in sides),
                *(f"{row.provider[side]:.0%}" if row.provider.get(side) else "–" for side in sides),
            ]
            for row in rows
            if row.cpu
        ),
    )


def as_json(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    measured = [asdict(row) | _said(row) for row in rows]
    return json.dumps({"machine": machine, "rows": measured}, indent=1, ensure_ascii=False) + "\n"


def _said(row: Row) -> dict[str, Any]:
    return {"ratio": row.ratio, "ahead": asdict(row.ahead) if row.ahead else None, "met": row.met}


def placed(document: str, figures: str, mark: str = BEGIN) -> str:
    """Return the document with the figures between its two marks, and nothing else changed."""
    before, begin, rest = document.partition(mark)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document lacks the marks {mark} and {END}")
    return f"{before}{mark}\n\n{figures}\n\n{END}{after}"
