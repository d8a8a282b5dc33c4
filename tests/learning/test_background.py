"""E2: reviews run within a bound, when somebody attends, out of the user's way, and nothing stops them."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import ManualClock
from hone.core.errors import StoreError
from hone.core.events import Emit
from hone.core.ids import SessionId
from hone.core.jobs import Job, JobId, State
from hone.core.ledger import Entry
from hone.core.part import Part
from hone.core.topics import NAMES
from hone.core.value import replace
from hone.learning.background import BREATH, GLANCE, PATIENCE, RELOAD, Background, Pacing
from hone.learning.review import Reviewer
from hone.models.wrappers import Aside, unhindered
from tests.reference.ledger import InMemoryLedger
from tests.reference.sessions import InMemoryJobs, InMemorySessions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A = SessionId("a")


class Queue(InMemoryJobs):
    """Of jobs without sessions."""

    def __init__(self, *ids: int) -> None:
        super().__init__(InMemoryLedger(), InMemorySessions())
        self.all = {JobId(id): Job(JobId(id), A, A, 2, NAMES, NOW, "due") for id in ids}
        self.broken = False

    async def waiting(self, session: SessionId | None = None) -> Sequence[Job]:
        await asyncio.sleep(0)
        if self.broken:
            raise StoreError("The disk is gone.")
        return [job for job in self.all.values() if job.state is State.QUEUED]

    async def job(self, id: JobId) -> Job:
        return self.all[id]


@dataclass
class Bench(Reviewer):
    """Notes what it was asked to do; `act` says what becomes of a job."""

    queue: Queue
    act: Callable[[Job], Job] = lambda job: replace(job, state=State.DONE, tries=job.tries + 1)
    done: list[int] = field(default_factory=list)
    most: int = 0
    now: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    tidied: list[Collection[Job]] = field(default_factory=list)
    steps: list[Aside] = field(default_factory=list)

    async def work(self, id: JobId, emit: Emit, aside: Aside = unhindered) -> Sequence[Entry] | None:
        self.steps.append(aside)
        self.now += 1
        self.most = max(self.most, self.now)
        self.done.append(id)
        self.begun.set()
        try:
            await self.gate.wait()
            self.queue.all[id] = self.act(self.queue.all[id])
        finally:
            self.now -= 1
        return None

    def tidy(self, waiting: Iterable[Job]) -> None:
        self.tidied.append(list(waiting))


def made(*ids: int, pause: float = 0.0, clock: ManualClock | None = None) -> tuple[Background, Bench]:
    queue = Queue(*ids)
    bench = Bench(queue)
    bench.gate.set()
    return Background(queue, lambda: bench, clock or ManualClock(), pacing=Pacing(pause)), bench


def silent(_: object) -> None:
    pass


async def settle() -> None:
    """Lets everything run that can."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_nothing_starts_before_somebody_attends() -> None:
    background, bench = made(1)
    background.notify()
    background.occupied(True)
    background.occupied(False)
    await settle()
    assert bench.done == []
    background.attend(silent)
    await settle()
    assert bench.done == [1]
    await background.close()


async def test_a_review_begins_only_after_the_prompt_had_a_moment_to_come_back() -> None:
    clock = ManualClock()
    background, bench = made(1, clock=clock)
    background.attend(silent)
    await settle()
    assert (clock.slept, bench.done) == ([BREATH], [1])
    await background.close()


async def test_reviews_of_one_tree_are_done_one_at_a_time_and_drain_waits_for_the_one_at_work() -> None:
    background, bench = made(1, 2, 3)
    bench.gate.clear()
    background.attend(silent)
    await bench.begun.wait()
    drained = asyncio.create_task(background.drain())
    await settle()
    assert (bench.done, background.working, drained.done()) == ([1], 1, False)
    bench.gate.set()
    await drained
    await settle()
    assert (bench.done, bench.most, background.working) == ([1, 2, 3], 1, None)
    await background.close()


def trees(
    *ids: int, parallel: int, local: bool = False, clock: ManualClock | None = None
) -> tuple[Background, Bench]:
    """A queue of reviews of different conversations, which wait at the gate."""
    queue = Queue()
    queue.all = {JobId(id): of_tree(id) for id in ids}
    bench = Bench(queue)
    pacing = Pacing(is_local=lambda: local, parallel=parallel)
    return Background(queue, lambda: bench, clock or ManualClock(), pacing=pacing), bench


def of_tree(id: int, tree: str = "") -> Job:
    name = SessionId(tree or f"tree-{id}")
    return Job(JobId(id), name, name, 2, NAMES, NOW, "due")


@pytest.mark.parametrize(("local", "most"), [(False, 3), (True, 1)])
async def test_reviews_of_different_trees_run_side_by_side_within_the_bound(local: bool, most: int) -> None:
    """A server that does one thing at a time gets one."""
    background, bench = trees(*range(1, 8), parallel=3, local=local)
    background.attend(silent)
    await settle()
    assert (bench.now, background.working) == (most, 1)
    bench.gate.set()
    await settle()
    assert (sorted(bench.done), bench.most, bench.now, background.working) == ([*range(1, 8)], most, 0, None)
    await background.close()


async def test_what_is_queued_while_a_review_hangs_does_not_wait_for_it() -> None:
    clock = ManualClock()
    background, bench = trees(1, parallel=2, clock=clock)
    background.attend(silent)
    await settle()
    assert bench.done == [1]
    bench.queue.all |= {JobId(2): of_tree(2), JobId(3): of_tree(3, tree="tree-1")}
    background.notify()
    await settle()
    assert bench.done == [1], "the queue is not looked at all the time"
    clock.advance(RELOAD)
    await settle()
    assert (bench.done, bench.now) == ([1, 2], 2), "the third one is of the tree that is at work"
    bench.gate.set()
    await settle()
    assert (bench.done, bench.now) == ([1, 2, 3], 0)
    await background.close()


async def test_side_by_side_too_drain_begins_none_twice_and_what_is_cancelled_stays_queued() -> None:
    background, bench = trees(1, 2, 3, 4, parallel=2)
    background.attend(silent)
    await settle()
    drained = asyncio.create_task(background.drain())
    await settle()
    assert (bench.done, bench.now, drained.done()) == ([1, 2], 2, False)
    drained.cancel()
    await asyncio.wait([drained])
    await background.close()
    assert (bench.done, bench.now, background.working) == ([1, 2], 0, None)
    assert [job.state for job in await bench.queue.waiting()] == [State.QUEUED] * 4


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_the_longer_the_queue_the_more_run_and_the_less_they_step_aside(queued: int, parallel: int) -> None:
    """One alone steps aside for a minute, and all that wait do so for a minute together."""
    pacing = Pacing(is_local=lambda: False, parallel=parallel)
    assert 1 <= pacing.most(queued) <= pacing.most(queued + 1) <= parallel
    assert (pacing.most(queued) - 1) ** 2 <= queued
    assert 0 < pacing.patience(queued + 1) <= pacing.patience(queued) <= PATIENCE
    assert pacing.patience(queued) * queued <= PATIENCE
    assert (pacing.most(1), pacing.patience(1), Pacing().most(queued)) == (1, PATIENCE, 1)


async def test_what_is_queued_later_is_done_when_it_is_told() -> None:
    background, bench = made()
    background.attend(silent)
    await settle()
    bench.queue.all[JobId(7)] = Job(JobId(7), A, A, 2, NAMES, NOW, "due")
    await settle()
    assert bench.done == []
    background.notify()
    await settle()
    assert bench.done == [7]
    await background.close()


async def test_what_failed_is_not_tried_again_here_and_what_another_process_had_is() -> None:
    background, bench = made(1)
    bench.act = lambda job: job
    background.attend(silent)
    await settle()
    background.notify()
    await settle()
    assert bench.done == [1, 1]
    bench.act = lambda job: replace(job, tries=1, error="It broke.")
    background.notify()
    await settle()
    background.notify()
    await settle()
    assert bench.done == [1, 1, 1]
    await background.close()


async def test_a_store_that_cannot_be_read_for_a_while_ends_nothing() -> None:
    background, bench = made(1)
    bench.queue.broken = True
    background.attend(silent)
    await settle()
    await background.drain()
    bench.queue.broken = False
    background.notify()
    await settle()
    assert bench.done == [1]
    await background.close()


async def test_close_leaves_what_is_at_work_for_later() -> None:
    background, bench = made(1, 2)
    bench.gate.clear()
    background.attend(silent)
    await bench.begun.wait()
    await background.close()
    assert (bench.done, bench.now) == ([1], 0)
    assert [job.state for job in await bench.queue.waiting()] == [State.QUEUED] * 2


class Slow(ManualClock):
    """A pause ends when somebody says so."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds == BREATH:
            return
        self.slept.append(seconds)
        await self.over.wait()
        self.over.clear()


async def test_with_a_pause_a_review_waits_until_the_user_has_been_quiet_all_the_time() -> None:
    clock = Slow()
    background, bench = made(1, 2, pause=30.0, clock=clock)
    background.occupied(True)
    background.attend(silent)
    await settle()
    assert (clock.slept, bench.done) == ([], [])
    background.occupied(False)
    await settle()
    assert (clock.slept, bench.done) == ([30.0], [])
    background.occupied(True)
    background.occupied(False)
    clock.over.set()
    await settle()
    assert (clock.slept, bench.done) == ([30.0, 30.0], [])
    clock.over.set()
    await settle()
    assert bench.done == [1]
    await background.close()


async def test_with_a_pause_the_next_review_does_not_begin_while_the_user_is_busy() -> None:
    clock = Slow()
    background, bench = made(1, 2, pause=30.0, clock=clock)
    bench.gate.clear()
    background.attend(silent)
    await settle()
    clock.over.set()
    await bench.begun.wait()
    background.occupied(True)
    bench.gate.set()
    await settle()
    assert (bench.done, len(clock.slept)) == ([1], 1)
    background.occupied(False)
    await settle()
    clock.over.set()
    await settle()
    assert bench.done == [1, 2]
    await background.close()


async def test_drain_does_not_wait_for_quiet() -> None:
    clock = Slow()
    background, bench = made(1, 2, pause=30.0, clock=clock)
    background.attend(silent)
    await settle()
    await background.drain()
    assert bench.done == [1, 2]
    clock.over.set()
    await settle()
    assert bench.done == [1, 2]
    await background.close()


async def test_what_is_left_is_begun_although_drain_did_the_first_one_during_the_pause() -> None:
    clock = Slow()
    background, bench = made(1, 2, pause=30.0, clock=clock)

    def act(job: Job) -> Job:
        bench.gate.clear()
        return replace(job, state=State.DONE, tries=1)

    bench.act = act
    background.attend(silent)
    await settle()
    drained = asyncio.create_task(background.drain())
    await settle()
    drained.cancel()
    await asyncio.wait([drained])
    assert (bench.done, background.working) == ([1, 2], None)
    bench.gate.set()
    for _ in range(2):
        clock.over.set()
        await settle()
    assert bench.done == [1, 2, 2]
    assert bench.queue.all[JobId(2)].state is State.DONE
    await background.close()


async def at_work(clock: ManualClock) -> tuple[Background, Aside]:
    background, bench = made(1, clock=clock)
    bench.gate.clear()
    background.attend(silent)
    await bench.begun.wait()
    return background, bench.steps[0]


async def test_a_review_at_work_stands_still_until_the_users_turn_is_over() -> None:
    background, aside = await at_work(ManualClock())
    await aside()
    background.occupied(True)
    step = asyncio.ensure_future(aside())
    await settle()
    assert not step.done()
    background.occupied(False)
    await step
    await background.close()


async def test_a_review_stands_still_for_a_minute_in_all_and_then_goes_on_beside_the_turn() -> None:
    clock = ManualClock()
    background, aside = await at_work(clock)
    background.occupied(True)
    step = asyncio.ensure_future(aside())
    await settle()
    clock.advance(PATIENCE / 2)
    await settle()
    assert not step.done()
    background.occupied(False)
    await step
    background.occupied(True)
    step = asyncio.ensure_future(aside())
    await settle()
    assert not step.done()
    clock.advance(PATIENCE / 2)
    await step
    await aside()
    await background.close()


async def test_a_review_that_steps_aside_goes_on_when_the_queue_behind_it_grows() -> None:
    clock = ManualClock()
    background, bench = trees(1, parallel=1, clock=clock)
    background.attend(silent)
    await settle()
    background.occupied(True)
    step = asyncio.ensure_future(bench.steps[0]())
    await settle()
    bench.queue.all |= {JobId(id): of_tree(id) for id in range(2, 90)}
    background.notify()
    await settle()
    assert not step.done()
    for _ in range(2):
        clock.advance(RELOAD)
        await settle()
    assert step.done()
    await background.close()


async def test_what_killed_processes_left_is_taken_away_even_if_nothing_is_queued() -> None:
    background, bench = made()
    background.attend(silent)
    await settle()
    assert bench.tidied == [[]]
    await background.close()


async def test_other_work_is_looked_for_at_the_beginning_after_each_queue_and_from_time_to_time() -> None:
    """And never beside a review."""
    clock, queue, looks = ManualClock(), Queue(1), list[int]()
    bench = Bench(queue)
    bench.gate.set()

    class Curious(Part):
        async def tend(self, _: object) -> None:
            assert bench.now == 0
            looks.append(len(bench.done))

    part = Curious()
    background = Background(queue, lambda: bench, clock, lambda hook: [part] if hook == "tend" else [])
    background.attend(silent)
    await settle()
    assert looks == [1]
    clock.advance(GLANCE - 1)
    await settle()
    assert looks == [1]
    clock.advance(1)
    await settle()
    assert looks == [1, 1]
    background.notify()
    await settle()
    assert looks == [1, 1, 1]
    await background.close()
