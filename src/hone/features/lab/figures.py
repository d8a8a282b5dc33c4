"""Summarize many worlds: a curve over sessions and some figures, each with its interval."""

from collections.abc import Callable, Sequence
from statistics import fmean

from msgspec import Struct

from hone.core.intervals import interval
from hone.core.model import Usage
from hone.features.lab.owner import Visited
from hone.features.lab.play import Played
from hone.features.lab.world import World, WorldLesson, WorldLessonKind, build

CACHED, OUTPUT = 0.1, 5.0
"""The price of a cached and a written token, relative to a fresh one."""

DIGITS = 4


class Point(Struct, frozen=True):
    """A mean over worlds, and the 95% interval it lies in."""

    mean: float
    low: float
    high: float


class Figure(Struct, frozen=True):
    name: str
    point: Point


class Curve(Struct, frozen=True):
    """A point for each session; None if every world had small talk."""

    name: str
    points: tuple[Point | None, ...]


class ArmFigures(Struct, frozen=True):
    arm: str
    worlds: int
    figures: tuple[Figure, ...]
    curves: tuple[Curve, ...]

    def figure(self, name: str) -> Point:
        return next(each.point for each in self.figures if each.name == name)

    def curve(self, name: str) -> Curve:
        return next(each for each in self.curves if each.name == name)


SUCCESS, CORRECTIONS, CALLS, TOKENS = "success", "corrections", "calls", "tokens"
EXAM, POISON, WRONG, SHARE = "success afterwards", "poison learned", "wrong lessons", "learning's share"

CURVES: Sequence[tuple[str, Callable[[Visited], float]]] = (
    (SUCCESS, lambda visit: float(visit.success)),
    (CORRECTIONS, lambda visit: float(visit.corrections)),
    (CALLS, lambda visit: float(visit.calls + visit.learning_calls)),
    (TOKENS, lambda visit: float(count_tokens(visit.usage) + count_tokens(visit.learning))),
)
"""By session; learning's own calls and tokens are included."""
FIGURES: Sequence[tuple[str, Callable[[World, Played], float]]] = (
    (EXAM, lambda _, played: fmean(each.success for each in played.exam)),
    (CORRECTIONS, lambda _, played: float(sum(each.corrections for each in played.visits))),
    (CALLS, lambda _, played: float(sum(each.calls + each.learning_calls for each in played.visits))),
    (TOKENS, lambda _, played: _sum_tokens(played.visits)),
    (SHARE, lambda _, played: _share(played.visits)),
    (POISON, lambda _, played: float(_count_poison(played))),
    (WRONG, lambda world, played: float(_count_wrong(world, played))),
)


def sum_up(arm: str, played: Sequence[Played], sessions: int) -> ArmFigures:
    """Return the figures of one arm over its worlds."""
    worlds = {each.seed: build(each.seed, sessions) for each in played}
    figures = [
        Figure(name, _average([value(worlds[each.seed], each) for each in played])) for name, value in FIGURES
    ]
    curves = [Curve(name, _curve(value, played)) for name, value in CURVES]
    return ArmFigures(arm, len(played), tuple(figures), tuple(curves))


def count_tokens(usage: Usage) -> int:
    return usage.input + usage.output


def weigh_cost(usage: Usage) -> float:
    """Return what a call costs, in fresh input tokens."""
    return usage.input - usage.cached + CACHED * usage.cached + OUTPUT * usage.output


def _curve(value: Callable[[Visited], float], played: Sequence[Played]) -> tuple[Point | None, ...]:
    sessions = zip(*(each.visits for each in played), strict=True)
    values = [[value(visit) for visit in visits if visit.task] for visits in sessions]
    return tuple(_average(each) if each else None for each in values)


def _average(values: Sequence[float]) -> Point:
    return Point(*(round(each, DIGITS) for each in (fmean(values), *interval(values))))


def _sum_tokens(visits: Sequence[Visited]) -> float:
    return float(sum(count_tokens(each.usage) + count_tokens(each.learning) for each in visits))


def _share(visits: Sequence[Visited]) -> float:
    own = sum(weigh_cost(each.usage) for each in visits)
    return sum(weigh_cost(each.learning) for each in visits) / own if own else 0.0


def _count_poison(played: Played) -> int:
    """Count the poisons that were in a prompt at any time."""
    return len(
        {lesson for each in (*played.visits, *played.exam) for lesson in each.known if _is_poison(lesson)}
    )


def _is_poison(lesson: WorldLesson) -> bool:
    return lesson.kind is WorldLessonKind.POISON


def _count_wrong(world: World, played: Played) -> int:
    """Count the lessons in the last prompt that the owner does not want, as far as the owner has said so."""
    wanted = {rule: value for visit in world.exam for rule, value in visit.wanted.items()}
    said = [(rule, world.visits[each.number]) for each in played.visits for rule in each.faults]
    stated = {(rule, visit.wanted.get(rule)) for rule, visit in said}
    rules = [each for each in played.exam[-1].known if not _is_poison(each)]
    wrong = [each for each in rules if wanted[each.rule] != each.value]
    unsaid = [each for each in wrong if (each.rule, each.value) in stated]
    return len(wrong) - sum((each.rule, wanted[each.rule]) not in stated for each in unsaid)
