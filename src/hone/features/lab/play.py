"""Play worlds with the scripted learner through the real Hone. The same seed gives the same result."""

import asyncio
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from hone.core.clock import ManualClock
from hone.core.errors import HoneError
from hone.core.value import replace
from hone.features.lab.dialect import HoneDialect
from hone.features.lab.learner import PROFILES, Learner, Profile, TaskTruth
from hone.features.lab.owner import Visited, WorldOwner
from hone.features.lab.provider import LearnerProvider
from hone.features.lab.pupil import open_pupil, scripted_settings, without_learning
from hone.features.lab.world import World, build


class LabArm(Struct, frozen=True):
    """Who learns, and whether."""

    learner: str
    learns: bool

    @property
    def name(self) -> str:
        return f"{self.learner}, learning {'on' if self.learns else 'off'}"


class Played(Struct, frozen=True):
    """A world from its first visit to the exam. `work` has the truth about each visit, by number."""

    seed: int
    visits: tuple[Visited, ...]
    exam: tuple[Visited, ...]
    work: dict[int, TaskTruth] = {}


Job = tuple[LabArm, int, int]
"""An arm, a seed, and how many sessions."""
Tell = Callable[[], object]


async def play(world: World, profile: Profile, root: Path, *, learns: bool = True) -> Played:
    """Play a world. `root` holds the home and, afterwards, the owner's folder `work`."""
    tries = profile if learns else replace(profile, eager=0.0)  # it never calls what is off
    clock, learner = ManualClock(), Learner(world, tries, HoneDialect())
    async with LearnerProvider(learner, clock) as provider:
        settings = scripted_settings(provider.url)
        used = settings if learns else without_learning(settings)
        async with open_pupil(root, world, used, clock) as pupil:
            owner = WorldOwner(world, pupil, root / "work")
            visits = [await owner.visit(each) for each in world.visits]
            exam = [await owner.visit(each, corrects=False) for each in world.exam]
        if provider.complaints:
            raise HoneError(f"The provider of the lab objects: {provider.complaints[0]}")
    return Played(world.seed, tuple(visits), tuple(exam), learner.work)


def play_all(jobs: Sequence[Job], workers: int, tell: Tell) -> list[Played]:
    """Play many worlds, each in its own temporary home; `tell` is called after each."""
    done = []
    for each in _play_each(jobs, workers):
        done.append(each)
        tell()
    return done


def _play_each(jobs: Sequence[Job], workers: int) -> Iterator[Played]:
    if workers == 1 or len(jobs) == 1:
        yield from map(_play_job, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), context) as pool:
        yield from pool.map(_play_job, jobs)


def _play_job(job: Job) -> Played:
    arm, seed, sessions = job
    with TemporaryDirectory(prefix="hone-lab-") as folder:
        profile = PROFILES[arm.learner]
        return asyncio.run(play(build(seed, sessions), profile, Path(folder), learns=arm.learns))
