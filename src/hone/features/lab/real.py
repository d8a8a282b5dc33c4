"""Play worlds with a real model: the possible cost is announced before the start, and never exceeded."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.core.clock import SystemClock
from hone.core.messages import ToolCall
from hone.core.model import total
from hone.features.lab.owner import CallCost, Talk, Visited, WorldOwner
from hone.features.lab.play import Played
from hone.features.lab.pupil import HonePupil, HoneTalk, open_pupil, without_learning
from hone.features.lab.world import World
from hone.models.wrappers import ModelTerms
from hone.settings import Settings

INPUT, OUTPUT, CALLS = 20_000, 1_000, 6
"""Tokens and model calls of a session, learning included, as measured with the scripted learner, rounded
up."""
MOST_CALLS = 20
"""The most model calls of one turn."""
MOST_TOKENS = 3_000_000
"""Used if no price is known."""


class SpentAll(Exception):
    """The budget does not allow another turn."""


class LabBudget(Struct, frozen=True):
    """A budget in US dollars, or in tokens if no price is known."""

    dollars: float
    tokens: int = MOST_TOKENS

    def is_spent(self, costs: Sequence[CallCost]) -> bool:
        sum_of = total(each.usage for each in costs)
        if sum_of.cost is not None:
            return sum_of.cost >= self.dollars
        return sum_of.input + sum_of.output >= self.tokens


class LabEstimate(Struct, frozen=True):
    """The likely maximum of a run, without any cache; `dollars` is None if no price is known."""

    calls: int
    tokens: int
    dollars: float | None


def estimate(terms: ModelTerms, sessions: int) -> LabEstimate:
    price = terms.price
    dollars = sessions * (INPUT * price.input + OUTPUT * price.output) / 1e6 if price else None
    return LabEstimate(sessions * CALLS, sessions * (INPUT + OUTPUT), dollars)


class CappedPupil:
    """Says nothing more once the budget is spent. `before` is the cost of earlier worlds."""

    def __init__(self, pupil: HonePupil, budget: LabBudget, before: Sequence[CallCost]) -> None:
        self._pupil = pupil
        self._budget = budget
        self._before = before

    async def open(self) -> "CappedTalk":
        return CappedTalk(await self._pupil.open(), self)

    async def leave(self, talk: Talk) -> None:
        assert isinstance(talk, CappedTalk)
        await self._pupil.leave(talk.talk)

    async def spent(self) -> Sequence[CallCost]:
        return await self._pupil.spent()

    async def check(self) -> None:
        """Raise SpentAll if the budget is spent."""
        if self._budget.is_spent((*self._before, *await self.spent())):
            raise SpentAll


class CappedTalk:
    def __init__(self, talk: HoneTalk, pupil: CappedPupil) -> None:
        self.talk = talk
        self._pupil = pupil

    @property
    def id(self) -> str:
        return self.talk.id

    @property
    def system(self) -> str:
        return self.talk.system

    async def send(self, words: str) -> Sequence[ToolCall]:
        await self._pupil.check()
        return await self.talk.send(words)


class RealRun:
    """Worlds for one model, through the owner's connections. The owner's home does not change."""

    def __init__(self, owner: Hone, model: str, budget: LabBudget) -> None:
        self._owner = owner
        self._model = model
        self._budget = budget
        self.costs: list[CallCost] = []
        self.cut_off = False

    async def play(self, world: World, tell: Callable[[], object], *, learns: bool) -> Played:
        """Play a world as far as the budget reaches."""
        visits: list[Visited] = []
        exam: list[Visited] = []
        with TemporaryDirectory(prefix="hone-lab-") as folder:
            root = Path(folder)
            used = self._settings() if learns else without_learning(self._settings())
            async with open_pupil(root, world, used, SystemClock(), self._owner.models) as pupil:
                capped = CappedPupil(pupil, self._budget, tuple(self.costs))
                owner = WorldOwner(world, capped, root / "work")
                try:
                    for visit in world.visits:
                        visits.append(await owner.visit(visit))
                        tell()
                    for visit in world.exam:
                        exam.append(await owner.visit(visit, corrects=False))
                        tell()
                except SpentAll:
                    self.cut_off = True
                self.costs += await pupil.spent()
        return Played(world.seed, tuple(visits), tuple(exam))

    def _settings(self) -> Settings:
        """Return the owner's settings, without anything that would reach beyond the lab."""
        own = self._owner.settings
        learning = msgspec.structs.replace(own.learning, model="", daily=self._budget.dollars)
        memory = msgspec.structs.replace(own.memory, backend="null")
        return msgspec.structs.replace(
            own,
            model=self._model,
            fallback="",
            calls=MOST_CALLS,
            database="",
            plugins=(),
            hooks=(),
            learning=learning,
            memory=memory,
        )
