"""K1: learning that does not pay becomes rarer and stops at its limit; what the owner asks for is learned."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.events import Event, ReviewFailed
from hone.core.jobs import BY_HAND, ENOUGH, Job, JobId, State
from hone.core.messages import Message, Role, assistant
from hone.core.topics import NAMES
from hone.knowledge.reasons import LABELS
from hone.learning.paying import (
    SLACK,
    UNPAID,
    Payback,
    Paying,
    ReviewWorth,
    SpentReview,
    add_up,
    describe,
    explain_slower,
    is_automatic,
)
from hone.learning.reports import queued
from hone.models.scripted import Script, call, rounds, rules
from tests.features.month import ASKED, DAY, NOUNS, Billed, settings
from tests.given import NOON
from tests.tier import Figures

LIMIT = 0.12


def junk(messages: object) -> object:
    """Writes down what nobody said, each time something else."""
    said = str(messages)
    one, other = (NOUNS[hash_of(said, at) % len(NOUNS)] for at in (1, 2))
    note = call("memory", evidence=["#1"], action="add_anyway", text=f"The {one} is beside the {other}.")
    return rounds(assistant(note), "Done.")(messages)  # type: ignore[arg-type]


def hash_of(text: str, salt: int) -> int:
    return sum(ord(letter) * (salt + at % 7) for at, letter in enumerate(text))


def honest(messages: list[Message]) -> object:
    """Writes down what the owner said."""
    said = next(each.text for each in messages if each.role is Role.USER)
    note = call("memory", evidence=["#1"], action="add_anyway", text=said)
    return rounds(assistant(note), "Done.")(messages)


def opened(home: Path, folder: Path, review: object, clock: ManualClock, limit: float = LIMIT) -> Hone:
    script: Script = rules((ASKED, review), otherwise=rounds("Well."))  # type: ignore[arg-type]
    own = settings(unpaid=limit, daily=100.0)
    hone = Hone(home=home, model=Billed(script), folder=folder, settings=own, clock=clock, learning="queue")
    hone.folders.trust(folder)
    return hone


async def talk(hone: Hone, words: str, heard: list[Event]) -> Job:
    """Have a conversation of one turn and do what is due for it."""
    session = await hone.session()
    await session.send(words)
    jobs = [each for each in await hone.jobs.waiting() if each.session == session.id]
    for job in jobs:
        await hone.reviewer.work(job.id, heard.append)
    return await hone.jobs.job(jobs[-1].id)


async def cost(hone: Hone, folder: Path) -> Payback:
    paying = Paying(hone.stores.overview, hone.jobs, hone.library, hone.clock, LIMIT)
    return await paying.find(str(folder))


async def test_a_learner_that_only_writes_junk_stops_at_its_limit(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    clock, heard = ManualClock(NOON), list[Event]()
    async with opened(home, tmp_path, junk, clock) as hone:
        done = 0
        for number in range(200):
            noun = NOUNS[number % len(NOUNS)]
            job = await talk(hone, f"The {noun} number {number} goes north.", heard)
            clock.advance(DAY / 20)
            for id in job.changes:
                await hone.keeper.undo(id)
            done += job.state is State.DONE
            if job.state is State.QUEUED:
                break
        spent = await cost(hone, tmp_path)
        figures(f"{done} reviews for junk cost {spent.unpaid:.4f} USD, the limit is {LIMIT:.2f}")
        assert job.state is State.QUEUED
        assert job.error.startswith(UNPAID)
        assert 0.95 * LIMIT <= spent.unpaid <= 1.05 * LIMIT == SLACK * LIMIT
        assert (spent.junk, spent.streak) == (done, done)
        # It is said once, and nothing more is spent.
        before = len(await hone.sessions.spending())
        assert (await talk(hone, "The last one goes south.", heard)).state is State.QUEUED
        assert len(await hone.sessions.spending()) == before + 1
        assert sum(isinstance(each, ReviewFailed) for each in heard) == 1
        [said] = await explain_slower(hone)
        assert "only what you ask for is reviewed" in said
        # What the owner asks for is learned, here and by hand; and so is everything in another folder.
        asked = await talk(hone, "Remember that the harbor closes at noon.", heard)
        assert (asked.state, asked.why) == (State.DONE, "1 turn")  # its count came first
        wrong = await talk(hone, "No, that is wrong: it opens at nine.", heard)
        assert wrong.state is State.DONE
        by_hand = await queued(hone, "", NAMES, clock.now())
        await hone.reviewer.work(by_hand.id, heard.append)
        assert (await hone.jobs.job(by_hand.id)).state is State.DONE
        assert (await hone.reviewer.needed()) == {str(tmp_path): 8 * ENOUGH}
    other = tmp_path / "other"
    other.mkdir()
    async with opened(home, other, junk, clock) as hone:
        assert (await talk(hone, "The quarry opens late.", heard)).state is State.DONE
    # With time, the folder may cost something again.
    clock.advance(31 * DAY)
    async with opened(home, tmp_path, junk, clock) as hone:
        assert (await talk(hone, "The orchard is large.", heard)).state is State.DONE


async def test_a_learner_that_writes_what_was_said_is_never_stopped(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    clock, heard = ManualClock(NOON), list[Event]()
    async with opened(home, tmp_path, honest, clock, limit=0.01) as hone:
        states = []
        for one, other in zip(NOUNS[:12], NOUNS[12:24], strict=True):
            job = await talk(hone, f"The {one} report goes to the {other} team.", heard)
            states.append((job.state, len(job.changes)))
            clock.advance(DAY)
        paid = await cost(hone, tmp_path)
        figures(
            f"{len(states)} reviews that paid cost {paid.paid:.4f} USD, {paid.unpaid:.4f} unpaid; limit 0.01"
        )
        assert states == [(State.DONE, 1)] * len(states)
        assert paid.paid > 0.01 > paid.unpaid == 0
        assert await explain_slower(hone) == []


async def test_without_a_limit_nothing_waits(home: Path, tmp_path: Path) -> None:
    clock, heard = ManualClock(NOON), list[Event]()
    async with opened(home, tmp_path, junk, clock, limit=0.0) as hone:
        for number in range(3):
            assert (await talk(hone, f"The stable {number} is red.", heard)).state is State.DONE
        assert await explain_slower(hone) == []


AMOUNTS = st.integers(1, 64).map(lambda each: each / 64)
WORTHS = st.lists(st.tuples(AMOUNTS, st.sampled_from(ReviewWorth)), max_size=30)


@given(WORTHS, AMOUNTS)
def test_what_is_needed_grows_with_what_is_unpaid_and_what_paid_makes_room(
    rows: list[tuple[float, ReviewWorth]], limit: float
) -> None:
    spent = [SpentReview(JobId(number), "/w", cost, worth) for number, (cost, worth) in enumerate(rows, 1)]
    found = add_up("/w", limit, spent)
    assert found.factor in (1, 2, 4, 8)
    worse = add_up("/w", limit, [*spent, SpentReview(JobId(99), "/w", 0.125, ReviewWorth.JUNK)])
    assert (worse.factor, worse.unpaid) >= (found.factor, found.unpaid)
    assert worse.is_spent or not found.is_spent
    better = add_up("/w", limit, [*spent, SpentReview(JobId(99), "/w", 1.0, ReviewWorth.PAID)])
    assert (better.streak, better.allowed) == (0, found.allowed + 1.0)
    assert better.factor <= found.factor
    same = add_up("/w", limit, [*spent, SpentReview(JobId(99), "/w", 0.0, ReviewWorth.EMPTY)])
    assert (same.factor, same.streak, same.unpaid) == (found.factor, found.streak, found.unpaid)
    assert bool(describe(found)) == (found.factor > 1 or found.is_over or found.is_spent)


def test_only_what_nobody_asked_for_is_automatic() -> None:
    whys = {
        BY_HAND: False,
        "4 turns": True,
        "a failure that was fixed": True,
        "10 turns and 10 replies": True,
    }
    whys |= dict.fromkeys(LABELS.values(), False)
    for why, expected in whys.items():
        job = Job(JobId(1), "s", "s", 2, NAMES, NOON, why)  # type: ignore[arg-type]
        assert is_automatic(job) is expected, why
