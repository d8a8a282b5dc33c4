"""How much of a large count a run tries, what came of it, and how one case of it is tried again."""

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from random import Random
from types import TracebackType
from typing import Self

import pytest
from hypothesis import settings

SAMPLE, FIGURES, TALLY, REPLAY = "sample", "figures", "tally", "replay"
SHOWN = 3
"""A command names no more cases than these."""

EXAMPLES = 100
"""What a law is tried on in the short tier, unless it says that each of its examples takes long."""

CURRENT = pytest.StashKey[list[int]]()
"""The indices under way, or those that a test has named as its failures."""


def fewer(examples: int) -> settings:
    """Try a law on so many examples in the short tier, because each opens a database or does as much. In the
    long tier it has as many as any other law."""
    usual = settings().max_examples
    return settings(max_examples=usual if usual > EXAMPLES else examples)


@dataclass(frozen=True, slots=True)
class Draw:
    """One case of a large count. Its random numbers depend on the seed and the index alone, so that the case
    can be tried again without those before it. `with draw:` marks it as the one under way, where that is not
    the one that was drawn last."""

    index: int
    random: Random
    item: pytest.Item = field(repr=False)

    def __enter__(self) -> Self:
        self.item.stash[CURRENT] = [self.index]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.item.stash[CURRENT] = []


@dataclass(frozen=True, slots=True)
class Tier:
    """How much of a large count this run does: a seeded sample, all of it with --long, or --index K alone."""

    item: pytest.Item
    long: bool
    seed: int
    chosen: tuple[int, ...] = ()

    def size(self, *, short: int, full: int) -> int:
        size = full if self.long else short
        self._sampled(size, full)
        return size

    def random(self) -> Random:
        return Random(self.seed)

    def draws(self, *, short: int, full: int) -> Iterator[Draw]:
        """The cases to try, in order. A test that fails in the middle of one says how to try it again."""
        indices = self._indices(min(short, full), full)
        self._sampled(len(indices), full)
        for index in indices:
            self.item.stash[CURRENT] = [index]
            yield Draw(index, Random(f"{self.seed}:{index}"), self.item)
        self.item.stash[CURRENT] = []

    def _indices(self, short: int, full: int) -> list[int]:
        if self.chosen:
            there = [index for index in self.chosen if 0 <= index < full]
            return there or pytest.skip(f"there are {full} cases here, and none with such an index")
        # Another sample for each test, and for each of its parameters.
        chance = Random(f"{self.seed} {self.item.name}")
        return list(range(full)) if self.long else sorted(chance.sample(range(full), short))

    def _sampled(self, size: int, full: int) -> None:
        self.item.user_properties.append((SAMPLE, f"{size} of {full} (seed {self.seed})"))


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of a count. Got in: what had to be kept out (an attack, a double, an error shown). Lost: what
    had been acknowledged, or belongs there, and is gone. Both have to be 0."""

    tried: int
    got_in: int
    lost: int
    seed: int
    note: str

    def __str__(self) -> str:
        said = f"{self.tried:,} tried, {self.got_in:,} got in, {self.lost:,} lost (seed {self.seed})"
        return f"{said}: {self.note}" if self.note else said


@dataclass(frozen=True, slots=True)
class Figures:
    """Lines that are printed at the end of the run."""

    item: pytest.Item
    seed: int

    def __call__(self, line: str) -> None:
        self.item.user_properties.append((FIGURES, line))

    def tally(
        self, tried: int, *, got_in: int = 0, lost: int = 0, note: str = "", at: Iterable[int] = ()
    ) -> None:
        """Call it before the assertion; `at` are the indices of the draws that went wrong."""
        tally = Tally(tried, got_in, lost, self.seed, note)
        self.item.user_properties += [(FIGURES, str(tally)), (TALLY, json.dumps(asdict(tally)))]
        self.item.stash[CURRENT] = sorted({*self.item.stash.get(CURRENT, []), *at})


def replay(item: pytest.Item) -> str:
    """The command that tries again what failed, and nothing else of the test."""
    seed, long = item.config.getoption("--seed"), item.config.getoption("--long")
    words = ["pytest", *(["--long"] if long else []), item.nodeid, "--seed", str(seed)]
    for index in item.stash.get(CURRENT, list[int]())[:SHOWN]:
        words += ["--index", str(index)]
    return shlex.join(words)
