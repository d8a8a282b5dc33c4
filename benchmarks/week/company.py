"""Play many stories at once, in several processes."""

import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks.week.figures import Score, score
from benchmarks.week.play import Conditions, Stage, play
from benchmarks.week.stories import Story, SurfaceName

Job = tuple[Story, SurfaceName, Conditions, bool]

_stages: list[Stage] = []
"""The stage of this process, if it has one."""


def perform(
    stories: Sequence[Story],
    conditions: Sequence[Conditions],
    workers: int,
    blind: frozenset[str],
    through: Sequence[SurfaceName] = (),
) -> dict[float, list[Score]]:
    """Play every story at every rate, on its own surface or on the named ones."""
    jobs: list[Job] = [
        (story, surface, under, story.id in blind)
        for under in conditions
        for story in stories
        for surface in through or (story.surface,)
    ]
    found: dict[float, list[Score]] = {under.rate: [] for under in conditions}
    for (_, _, under, _), done in zip(jobs, _played(jobs, workers), strict=True):
        found[under.rate].append(done)
    return found


def _played(jobs: Sequence[Job], workers: int) -> Iterator[Score]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_open_stage) as pool:
        for number, done in enumerate(pool.map(_play, jobs), 1):
            if sys.stderr.isatty():
                print(f"\r{number} of {len(jobs)}", end="", file=sys.stderr)
            yield done
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)


def _open_stage() -> None:
    _stages.append(Stage())


def _play(job: Job) -> Score:
    story, surface, under, blind = job
    try:
        return score(play(_stages[0], story, surface, under), blind=blind)
    except Exception as error:
        raise RuntimeError(f"{story.id} on {surface} at {under.rate:.0%}: {error}") from error
