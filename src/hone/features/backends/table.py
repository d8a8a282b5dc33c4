"""Measured memory backends as lines of text."""

from collections.abc import Iterator, Sequence

from hone.features.backends.choice import NULL
from hone.features.backends.evaluate import Measured, advice, label, score

TITLES = (
    *("backend", "score", "label", "avail", "func", "lat", "priv", "store", "retrieve", "query", "recall"),
    *("kill -9", "calls", "key"),
)
TIMED = ("store", "retrieve", "query")


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
