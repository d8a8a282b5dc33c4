"""Count how often the cue detector reacts to turns that state nothing, and what it misses."""

from collections.abc import Callable, Sequence
from importlib import import_module

from msgspec import Struct

from benchmarks.week.stories import Story

DETECTOR, FUNCTION = "hone.knowledge.reasons", "find_cue"


class Alarms(Struct, frozen=True):
    """`alarms` are false ones. `missed` turns state a lesson; other reasons may still trigger a review."""

    turns: int
    alarms: int
    stating: int
    missed: int

    @property
    def rate(self) -> float:
        return self.alarms / self.turns if self.turns else 0.0


def find_detector() -> Callable[[str], str] | None:
    """Return the detector of this Hone; None if it has none."""
    try:
        found: Callable[[str], str] = getattr(import_module(DETECTOR), FUNCTION)
    except ModuleNotFoundError:
        return None
    return found


def measure(stories: Sequence[Story]) -> Alarms | None:
    detect = find_detector()
    if detect is None:
        return None
    told = [
        ((number, at) in story.stated, bool(detect(turn)))
        for story in stories
        for number, at, turn in story.turns
    ]
    return Alarms(
        len(told),
        sum(fires and not states for states, fires in told),
        sum(states for states, _ in told),
        sum(states and not fires for states, fires in told),
    )
