"""Score memory backends from measurements, and show the result as a table or a chart."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from hone.features.backends.current import NULL

AVAILABLE = 20
FUNCTIONS: Mapping[str, int] = {"store": 15, "retrieve": 15, "query": 10}
LATENCIES: Sequence[tuple[float, int]] = ((10.0, 20), (50.0, 15), (200.0, 10))
SLOWEST = 5
LOCAL, CLOUD = 20, 5
LABELS: Sequence[tuple[int, str]] = ((80, "recommended"), (60, "acceptable"), (40, "marginal"))
LAST = "not recommended"
BASELINE = "baseline"
ABSENT = "not available"
WARNING = "What is stored leaves this machine."
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


class Measured(Struct, frozen=True):
    """Measurements of a backend. `why` says why it cannot be used, `error` what went wrong; `worked` are the
    operations whose round trip was complete; `times` are the milliseconds of each; `recall` is the share of
    questions whose answer was among the first three; `durable` whether a memory survived the kill of its
    writer, None if that was not tried; `calls` are requests to a server per operation."""

    name: str
    is_cloud: bool = False
    why: str = ""
    error: str = ""
    worked: frozenset[str] = frozenset()
    times: Mapping[str, Sequence[float]] = {}
    recall: float = 0.0
    durable: bool | None = None
    location: str = ""
    needs_key: bool = False
    calls: Mapping[str, float] = {}

    @property
    def available(self) -> bool:
        return not self.why

    def at(self, operation: str, share: float) -> float | None:
        """Return the time within which this share of the calls was answered."""
        times = sorted(self.times.get(operation, ()))
        return times[min(len(times) - 1, int(share * len(times)))] if times else None

    @property
    def mean(self) -> float | None:
        every = [time for times in self.times.values() for time in times]
        return sum(every) / len(every) if every else None


class Score(Struct, frozen=True):
    availability: int = 0
    function: int = 0
    latency: int = 0
    privacy: int = 0

    @property
    def total(self) -> int:
        return self.availability + self.function + self.latency + self.privacy


def score(measured: Measured) -> Score:
    """Return the points. An unusable backend has none, and an operation without a round trip gets none."""
    if not measured.available:
        return Score()
    function = sum(points for name, points in FUNCTIONS.items() if name in measured.worked)
    return Score(AVAILABLE, function, latency(measured.mean), CLOUD if measured.is_cloud else LOCAL)


def latency(mean: float | None) -> int:
    if mean is None:
        return 0
    return next((points for limit, points in LATENCIES if mean < limit), SLOWEST)


def label(measured: Measured) -> str:
    """Return the label. The backend that stores nothing is there for comparison."""
    if measured.name == NULL:
        return BASELINE
    total = score(measured).total
    return next((word for least, word in LABELS if total >= least), LAST)


def recommend(every: Sequence[Measured]) -> Measured | None:
    """Return the best usable one; among equals the local one, then the faster one."""
    fit = [each for each in every if label(each) in (LABELS[0][1], LABELS[1][1])]
    return max(
        fit,
        key=lambda each: (score(each).total, not each.is_cloud, -(each.mean or 0.0)),
        default=None,
    )


def advice(every: Sequence[Measured]) -> list[str]:
    """Return a sentence with the recommendation, and one for each backend that sends memories away."""
    best = recommend(every)
    said = [f"Recommended: {best.name}." if best else "None of them can be recommended."]
    return said + [f"{each.name}: {WARNING}" for each in every if each.is_cloud]


def standing(measured: Measured) -> str:
    """Return the word for people and programs: its label, unless there is nothing to label."""
    return label(measured) if measured.available or measured.name == NULL else ABSENT


def data(measured: Measured) -> dict[str, Any]:
    """Return everything about a backend: programs get it unchanged, and the table is made from it."""
    points = score(measured)
    return {
        "name": measured.name,
        "available": measured.available,
        "why_not": measured.why or None,
        "error": measured.error or None,
        "score": points.total,
        "label": None if measured.name == NULL else standing(measured),
        "points": asdict(points),
        "milliseconds": {
            name: {"p50": measured.at(name, 0.5), "p95": measured.at(name, 0.95)} for name in measured.times
        },
        "mean_milliseconds": measured.mean,
        "recall": measured.recall if measured.available else None,
        "survives_kill": measured.durable,
        "location": measured.location,
        "needs_key": measured.needs_key,
        "cloud": measured.is_cloud,
        "calls": dict(measured.calls),
    }


def table(every: Sequence[Measured]) -> str:
    """Return a table. Times are p50/p95 in milliseconds; calls are requests to a server for
    store/retrieve/query."""
    rows = [TITLES, *(tuple(_cells(data(each))) for each in every)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    notes = [f"{each.name}: {each.why or each.error}" for each in every if each.why or each.error]
    lies = [f"{each.name} lies in {each.location}" for each in every if each.available and each.name != NULL]
    return "\n".join([*lines, "", *notes, *lies, *advice(every)])


def _cells(told: Mapping[str, Any]) -> Iterator[str]:
    yield told["name"]
    yield str(told["score"])
    yield told["label"] or BASELINE
    yield from (str(told["points"][part]) for part, *_ in PARTS)
    for name in TIMED:
        times = told["milliseconds"].get(name)
        yield f"{times['p50']:.1f}/{times['p95']:.1f}" if times else ""
    yield "" if told["recall"] is None else f"{100 * told['recall']:.0f}%"
    yield {True: "kept", False: "lost", None: ""}[told["survives_kill"]]
    yield "/".join(f"{told['calls'][name]:.1f}" for name in TIMED if name in told["calls"])
    yield "yes" if told["needs_key"] else "no"


def svg(every: Sequence[Measured]) -> str:
    """Return a chart with five pixels per point and lines at 40, 60 and 80."""
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
    told = f"{points.total} · {standing(measured)}"
    rows.append(f'<text x="{at + 8}" y="{top + 16}" fill="#222222">{told}</text>')
    return rows


def _marks(top: int, bottom: int) -> list[str]:
    rows = []
    for mark in (40, 60, 80):
        at = LEFT + BAR * mark
        dashes = 'stroke="#888888" stroke-dasharray="3 3"'
        rows.append(f'<line x1="{at}" y1="{top - 8}" x2="{at}" y2="{bottom}" {dashes}/>')
        rows.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle" fill="#555555">{mark}</text>')
    return rows
