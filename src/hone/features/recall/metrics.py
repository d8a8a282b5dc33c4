"""Figures of a search: how much of the evidence it finds among its first results, and how early."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

DEPTH = 10
"""How many results of a search to check."""
ALL = "all"


class Trial(Struct, frozen=True):
    """One question. `ranks` has the place of each piece of evidence, from 1; None if not found."""

    kind: str
    ranks: tuple[int | None, ...]


class Standing(Struct, frozen=True):
    """The means over `questions`, each from 0 to 1."""

    questions: int
    recall_1: float
    recall_5: float
    recall_10: float
    mrr: float


def recall_at(depth: int, trial: Trial) -> float:
    """Return the share of the evidence among the first results."""
    return sum(rank is not None and rank <= depth for rank in trial.ranks) / len(trial.ranks)


def reciprocal(trial: Trial) -> float:
    """Return one over the place of the first evidence, 0 if there is none."""
    return max((1 / rank for rank in trial.ranks if rank is not None), default=0.0)


def standing(trials: Sequence[Trial]) -> Standing:
    if not trials:
        return Standing(0, 0.0, 0.0, 0.0, 0.0)
    one, five, ten = (fmean(recall_at(depth, trial) for trial in trials) for depth in (1, 5, DEPTH))
    return Standing(len(trials), one, five, ten, fmean(map(reciprocal, trials)))


def by_kind(trials: Iterable[Trial]) -> Mapping[str, Standing]:
    """Return the figures of all trials first, then those of each kind in order of appearance."""
    kinds: dict[str, list[Trial]] = defaultdict(list)
    every = list(trials)
    for trial in every:
        kinds[trial.kind].append(trial)
    figures = {ALL: standing(every)}
    if len(kinds) > 1:
        figures |= {kind: standing(of) for kind, of in kinds.items()}
    return figures
