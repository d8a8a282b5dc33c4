"""Counters, gauges and histograms, and their text format, version 0.0.4, which Prometheus reads."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

OTHER = "other"
MOST = 400
"""The most label sets of one metric. Later ones count as "other", so a label never grows without end."""
SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})

Kind = Literal["counter", "gauge", "histogram"]
Labels = Mapping[str, str]


class Sample(Struct, frozen=True):
    """`suffix` follows the name of the family, as in _bucket."""

    value: float
    labels: Labels = {}
    suffix: str = ""


class Family(Struct, frozen=True):
    name: str
    kind: Kind
    help: str
    samples: Sequence[Sample] = ()


def gauge(name: str, help: str, *samples: tuple[float, Labels] | float) -> Family:
    """Return a gauge with the current value."""
    labeled = (each if isinstance(each, tuple) else (each, {}) for each in samples)
    return Family(name, "gauge", help, tuple(Sample(float(value), labels) for value, labels in labeled))


class Metric:
    """Counts by label. Only the event loop's thread changes it."""

    def __init__(self, name: str, kind: Kind, help: str, labels: Sequence[str] = ()) -> None:
        self._name, self._kind, self._help = name, kind, help
        self._labels = tuple(labels)
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *labels: str, by: float = 1.0) -> None:
        key = labels if labels in self._values or len(self._values) < MOST else (OTHER,) * len(labels)
        self._values[key] = self._values.get(key, 0.0) + by

    def collect(self) -> Family:
        samples = [Sample(value, self._named(key)) for key, value in self._values.items()]
        return Family(self._name, self._kind, self._help, samples)

    def _named(self, key: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self._labels, key, strict=True))


class Histogram:
    """Counts durations by label, in buckets."""

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        self._name, self._help = name, help
        self._labels = tuple(labels)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, seconds: float, *labels: str) -> None:
        key = labels if labels in self._counts or len(self._counts) < MOST else (OTHER,) * len(labels)
        counts = self._counts.setdefault(key, [0] * (len(SECONDS) + 1))
        counts[bisect_left(SECONDS, seconds)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + seconds

    def collect(self) -> Family:
        samples = [sample for key in self._counts for sample in self._samples(key)]
        return Family(self._name, "histogram", self._help, samples)

    def _samples(self, key: tuple[str, ...]) -> Iterator[Sample]:
        labels, total = dict(zip(self._labels, key, strict=True)), 0
        for bound, count in zip((*SECONDS, float("inf")), self._counts[key], strict=True):
            total += count
            yield Sample(total, {**labels, "le": write_number(bound)}, "_bucket")
        yield Sample(self._sums[key], labels, "_sum")
        yield Sample(total, labels, "_count")


def label(families: Iterable[Family], name: str, value: str) -> list[Family]:
    """Return the families with one more label on each sample."""
    return [
        Family(
            each.name,
            each.kind,
            each.help,
            [Sample(one.value, {**one.labels, name: value}, one.suffix) for one in each.samples],
        )
        for each in families
    ]


def merge(families: Iterable[Family]) -> list[Family]:
    """Merge families of the same name."""
    found: dict[str, Family] = {}
    for each in families:
        known = found.get(each.name)
        samples = (*known.samples, *each.samples) if known else each.samples
        found[each.name] = Family(each.name, each.kind, each.help, samples)
    return list(found.values())


def render(families: Iterable[Family]) -> str:
    lines: list[str] = []
    for each in families:
        lines.append(f"# HELP {each.name} {each.help.translate(_HELP)}")
        lines.append(f"# TYPE {each.name} {each.kind}")
        lines += [
            f"{each.name}{one.suffix}{_braced(one.labels)} {write_number(one.value)}" for one in each.samples
        ]
    return "\n".join((*lines, ""))


def write_number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _braced(labels: Labels) -> str:
    inner = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""
