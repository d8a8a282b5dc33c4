"""What every store of jobs promises, line by line of the port; then all of them against the reference."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hone.core.errors import Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import Job, JobId, Jobs, State, TopicCount, TurnSummary
from hone.core.ledger import MEMORY, Actor, Author, Change, ChangeId, ChangeKind, ChangeState, Delta
from hone.core.messages import digest
from hone.core.ports import Header
from hone.core.topics import NAMES as TOPICS
from hone.core.value import replace
from hone.runtime.triggers import configure_topics, count_turn
from hone.settings.sections import Learning
from hone.stores.home import Stores
from tests.contract.kinds import KINDS as STORES
from tests.contract.kinds import all_kinds, kept, sqlite
from tests.contract.test_sessions import NOW, OTHER, A, B, C, D, begin, branch, said
from tests.tier import fewer

BOTH = TOPICS
NOTES = frozenset({"memory"})
LATER = NOW + timedelta(minutes=5)
REVIEW, SECOND = SessionId("review-1"), SessionId("review-2")
BODIES = {digest(body): body for body in (b"one", b"two")}
ONE, TWO = BODIES
THIRD = count_turn(TurnSummary(iterations=1), configure_topics(Learning(turns=3, iterations=0)))
"""Every third turn of a tree sets a review off."""


@pytest.fixture(params=STORES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with kept(request.param, tmp_path) as stores:
        yield stores


def note(before: str | None, after: str | None) -> Change:
    return Change(MEMORY, ChangeKind.EDIT, (Delta("MEMORY.md", before, after),), Author(Actor.REVIEW, REVIEW))


async def queued(stores: Stores, session: SessionId = A) -> Job:
    """A job for a session that is made if need be."""
    if not await stores.sessions.list(origin=None):
        await begin(stores.sessions, session)
    return await stores.jobs.enqueue(session, 3, BOTH, "by hand", NOW)


async def take_turn(stores: Stores, session: SessionId, counts: Sequence[TopicCount] = THIRD) -> Job | None:
    before = (await stores.sessions.load(session)).transcript
    after = said("on", on=before)
    return await stores.sessions.append(session, after.nodes[len(before) :], None, counts)


async def view(stores: Stores) -> tuple[Any, ...]:
    sessions = [each.header.id for each in await stores.sessions.list(origin=None)]
    return (
        sessions,
        await stores.jobs.jobs(),
        await stores.jobs.waiting(),
        [await stores.jobs.counters(each) for each in sessions],
        await stores.ledger.entries(),
        await stores.ledger.held_below(""),
    )


STEPS: dict[str, Callable[[Jobs, JobId], Any]] = {
    "begin": lambda jobs, id: jobs.begin(id, SECOND),
    "complete": lambda jobs, id: jobs.complete(id, [note(None, ONE)], BODIES, 0.5, LATER),
    "fail": lambda jobs, id: jobs.fail(id, "no answer", LATER, again=False),
    "fail, again": lambda jobs, id: jobs.fail(id, "no answer", LATER, again=True),
    "cancel": lambda jobs, id: jobs.cancel(id, LATER),
    "retry": lambda jobs, id: jobs.retry(id),
}
ENDS = {
    "done": lambda jobs, id: jobs.complete(id, [], BODIES, None, NOW),
    "failed": STEPS["fail"],
    "cancelled": STEPS["cancel"],
}


async def test_a_review_of_a_session_that_is_not_there_is_missing(stores: Stores) -> None:
    await begin(stores.sessions, A)
    for name in (B, SessionId("\udcff")):
        with pytest.raises(Missing):
            await stores.jobs.enqueue(name, 1, BOTH, "by hand", NOW)
        with pytest.raises(Missing):
            await stores.jobs.counters(name)
    assert await stores.jobs.jobs() == ()


@pytest.mark.parametrize("messages", [4, 0, -1, 1 << 80])
async def test_a_review_of_more_messages_than_there_are_or_of_none_is_refused(
    stores: Stores, messages: int
) -> None:
    await begin(stores.sessions, A)
    with pytest.raises(Refused, match="has 3 messages"):
        await stores.jobs.enqueue(A, messages, BOTH, "by hand", NOW)
    assert await stores.jobs.jobs() == ()


@pytest.mark.parametrize("id", [0, -1, 2, 1 << 80, -(1 << 80)])
async def test_a_job_that_is_not_there_is_missing_whatever_is_asked_of_it(stores: Stores, id: int) -> None:
    await queued(stores)
    before = await view(stores)
    for step in STEPS.values():
        with pytest.raises(Missing, match="no review"):
            await step(stores.jobs, JobId(id))
    with pytest.raises(Missing, match="no review"):
        await stores.jobs.job(JobId(id))
    assert await view(stores) == before


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("step", [name for name in STEPS if name != "retry"])
async def test_what_has_ended_goes_no_further_and_nothing_is_changed(
    stores: Stores, end: str, step: str
) -> None:
    job = await queued(stores)
    await ENDS[end](stores.jobs, job.id)
    before = await view(stores)
    with pytest.raises(Conflict, match=f"is {end} by now"):
        await STEPS[step](stores.jobs, job.id)
    assert await view(stores) == before


@pytest.mark.parametrize("end", [*ENDS, "queued"])
async def test_only_what_failed_or_was_cancelled_is_retried(stores: Stores, end: str) -> None:
    job = await queued(stores)
    await stores.jobs.begin(job.id, REVIEW)
    if end != "queued":
        await ENDS[end](stores.jobs, job.id)
    if end in ("queued", "done"):
        before = await view(stores)
        with pytest.raises(Conflict):
            await stores.jobs.retry(job.id)
        assert await view(stores) == before
        return
    await stores.jobs.retry(job.id)
    assert await stores.jobs.waiting() == (replace(job, review=REVIEW),), "with all its tries before it"


@pytest.mark.parametrize(
    ("changes", "contents", "error"),
    [
        pytest.param([note(None, TWO)], {}, Conflict, id="something is there"),
        pytest.param([note(ONE, TWO), note(ONE, TWO)], {}, Conflict, id="the second of two"),
        pytest.param([note(ONE, digest(b"nothing"))], {}, Missing, id="no such content"),
        pytest.param([note(ONE, TWO)], {TWO: b"other"}, Corrupt, id="not what its digest says"),
        pytest.param([replace(note(ONE, TWO), about=ChangeId(7))], {}, Conflict, id="about nothing"),
    ],
)
async def test_what_cannot_be_recorded_leaves_the_job_queued_and_nothing_recorded(
    stores: Stores, changes: Sequence[Change], contents: dict[str, bytes], error: type[StoreError]
) -> None:
    await stores.ledger.record([note(None, ONE)], BODIES, NOW)
    job = await queued(stores)
    before = await view(stores)
    with pytest.raises(error):
        await stores.jobs.complete(job.id, changes, contents, 0.9, LATER)
    assert await view(stores) == before
    (made,) = await stores.jobs.complete(job.id, [note(ONE, TWO)], {}, 0.9, LATER)
    assert (made.id, await stores.ledger.held(MEMORY)) == (2, {"MEMORY.md": TWO})


async def test_of_many_that_complete_a_job_at_once_one_does_and_the_others_are_told(stores: Stores) -> None:
    job = await queued(stores)
    pending = replace(note(None, ONE), standing=ChangeState.PENDING)
    rivals = [stores.jobs.complete(job.id, [pending], BODIES, None, NOW) for _ in range(20)]
    results = await asyncio.gather(*rivals, return_exceptions=True)
    assert [type(each) for each in results].count(Conflict) == 19
    assert (await stores.ledger.latest(), (await stores.jobs.job(job.id)).changes) == (1, (1,))


async def test_a_try_that_another_process_began_anew_records_nothing(stores: Stores) -> None:
    """A process that was stopped comes back when somebody else is at work."""
    job = await queued(stores)
    for review in (REVIEW, SECOND):
        await stores.jobs.begin(job.id, review)
    with pytest.raises(Conflict, match="begun anew"):
        await stores.jobs.complete(job.id, [note(None, ONE)], BODIES, None, NOW, (), REVIEW)
    assert await stores.ledger.latest() == 0
    await stores.jobs.complete(job.id, [note(None, ONE)], BODIES, None, NOW, (), SECOND)
    assert (await stores.jobs.job(job.id)).changes == (1,)


async def test_a_review_of_a_session_that_is_deleted_meanwhile_records_nothing(stores: Stores) -> None:
    job = await queued(stores)
    await stores.jobs.begin(job.id, REVIEW)
    await stores.sessions.delete(A)
    with pytest.raises(Conflict, match="cancelled"):
        await stores.jobs.complete(job.id, [note(None, ONE)], BODIES, None, NOW)
    assert await stores.ledger.latest() == 0
    with pytest.raises(Missing, match="no session"):
        await stores.jobs.retry(job.id)
    assert await stores.jobs.waiting() == ()


async def test_deleting_a_session_cancels_its_queued_jobs_and_no_others(stores: Stores) -> None:
    await begin(stores.sessions, A)
    await branch(stores.sessions, B, A, 3)
    jobs = [await stores.jobs.enqueue(A, 2, NOTES, "by hand", NOW) for _ in range(4)]
    other = await stores.jobs.enqueue(B, 2, NOTES, "by hand", NOW)
    await stores.jobs.complete(jobs[0].id, [note(None, ONE)], BODIES, 1.0, LATER)
    await stores.jobs.fail(jobs[1].id, "no answer", LATER, again=False)
    await stores.jobs.fail(jobs[2].id, "no answer", LATER, again=True)
    ended = [await stores.jobs.job(job.id) for job in jobs[:2]]
    await stores.sessions.delete(A)
    gone = [
        replace(job, state=State.CANCELLED, error="its session was deleted", ended=None) for job in jobs[2:]
    ]
    assert list(await stores.jobs.jobs()) == [other, *gone[::-1], *ended[::-1]]
    assert await stores.jobs.waiting() == (other,)


async def test_a_job_comes_back_as_it_was_queued(stores: Stores) -> None:
    await begin(stores.sessions, A)
    await branch(stores.sessions, B, A, 2)
    early = datetime(1969, 12, 31, 23, 59, 59, 999_999, timezone(timedelta(hours=9, minutes=30)))
    job = await stores.jobs.enqueue(B, 1, NOTES, "ten turns 👋\0\udcff", early)
    assert job == Job(JobId(1), B, A, 1, NOTES, early, "ten turns 👋\0" + "\ufffd" * 3)
    assert (await stores.jobs.job(job.id), job.created.tzinfo is not None) == (job, True)
    empty = await stores.jobs.enqueue(A, 3, frozenset(), "", NOW)
    assert await stores.jobs.job(empty.id) == Job(JobId(2), A, A, 3, frozenset(), NOW, "")


async def test_a_job_says_how_its_tries_went(stores: Stores) -> None:
    job = await queued(stores)
    first = await stores.jobs.begin(job.id, REVIEW)
    assert first == replace(job, tries=1, review=REVIEW)
    await stores.jobs.fail(job.id, "cut off \udcff", LATER, again=True)
    again = replace(first, error="cut off " + "\ufffd" * 3)
    assert await stores.jobs.waiting() == (again,), "it waits, and has not ended"
    second = await stores.jobs.begin(job.id, SECOND)
    assert second == replace(again, tries=2, review=SECOND)
    entries = await stores.jobs.complete(job.id, [note(None, ONE), note(ONE, TWO)], BODIES, 0.875, LATER)
    assert list(entries) == list(await stores.ledger.entries())[::-1]
    assert [entry.at for entry in entries] == [LATER, LATER]
    done = replace(
        second, state=State.DONE, cached=0.875, error="", ended=LATER, changes=(ChangeId(1), ChangeId(2))
    )
    assert (await stores.jobs.job(job.id), await stores.jobs.waiting()) == (done, ())


async def test_a_review_that_changed_nothing_is_done_like_any_other(stores: Stores) -> None:
    job = await queued(stores)
    assert await stores.jobs.complete(job.id, [], {}, None, LATER) == ()
    assert await stores.jobs.job(job.id) == replace(job, state=State.DONE, ended=LATER)


async def test_jobs_that_a_review_covers_are_done_with_it_or_not_at_all(stores: Stores) -> None:
    leader, queued_one, tried, ended = [await queued(stores) for _ in range(4)]
    await stores.jobs.begin(tried.id, REVIEW)
    await stores.jobs.fail(tried.id, "cut off", LATER, again=True)
    await stores.jobs.cancel(ended.id, LATER)
    covered = [queued_one.id, tried.id, ended.id]
    before = await view(stores)
    with pytest.raises(Conflict):
        await stores.jobs.complete(leader.id, [note(TWO, ONE)], BODIES, 0.5, LATER, covered)
    assert await view(stores) == before
    await stores.jobs.complete(leader.id, [note(None, ONE)], BODIES, 0.5, LATER, covered)
    cancelled, second, first, _ = await stores.jobs.jobs()
    told = f"{queued_one.why}, read in review {leader.id}"
    assert first == replace(queued_one, state=State.DONE, ended=LATER, why=told)
    assert (second.state, second.tries, second.error, second.changes) == (State.DONE, 1, "", ())
    assert cancelled == replace(ended, state=State.CANCELLED, ended=LATER)
    assert await stores.jobs.waiting() == ()


async def test_the_queue_of_one_session_is_the_part_of_the_queue_that_is_its(stores: Stores) -> None:
    await begin(stores.sessions, A)
    await begin(stores.sessions, B)
    jobs = [await stores.jobs.enqueue(each, 1, NOTES, "due", NOW) for each in (A, B, A, A)]
    await stores.jobs.cancel(jobs[0].id, NOW)
    assert await stores.jobs.waiting(A) == (jobs[2], jobs[3])
    assert await stores.jobs.waiting(C) == ()


async def test_what_failed_or_was_cancelled_says_when_and_why(stores: Stores) -> None:
    one, two = await queued(stores), await queued(stores)
    await stores.jobs.fail(one.id, "the budget is spent", LATER, again=False)
    await stores.jobs.cancel(two.id, LATER)
    failed = replace(one, state=State.FAILED, error="the budget is spent", ended=LATER)
    assert await stores.jobs.jobs() == (replace(two, state=State.CANCELLED, ended=LATER), failed)


async def test_the_list_is_newest_first_and_the_queue_oldest_first_although_clocks_go_back(
    stores: Stores,
) -> None:
    await begin(stores.sessions, A)
    for days in (0, -5, 3, -9):
        await stores.jobs.enqueue(A, 1, NOTES, "by hand", NOW + timedelta(days=days))
    await stores.jobs.cancel(JobId(2), NOW)
    await stores.jobs.fail(JobId(1), "no answer", NOW, again=False)
    await stores.jobs.retry(JobId(1))

    async def ids(limit: int | None) -> list[int]:
        return [job.id for job in await stores.jobs.jobs(limit)]

    assert [await ids(limit) for limit in (None, 2, 0, 9)] == [[4, 3, 2, 1], [4, 3], [], [4, 3, 2, 1]]
    assert [job.id for job in await stores.jobs.waiting()] == [1, 3, 4]


async def test_a_tree_counts_as_one_with_branches_forks_and_children(stores: Stores) -> None:
    await begin(stores.sessions, A)
    await branch(stores.sessions, B, A, 2, "another way")
    await branch(stores.sessions, C, B, 3)
    await stores.sessions.start(Header(D, NOW, parent=C), OTHER, said("a task", prefix=OTHER).nodes)
    stranger = SessionId("stranger")
    await begin(stores.sessions, stranger)
    assert [await take_turn(stores, each) for each in (A, B)] == [None, None]
    assert [await stores.jobs.counters(each) for each in (A, B, C, D)] == [{"memory": 2, "skills": 2}] * 4
    assert await stores.jobs.counters(stranger) == {}
    due = await take_turn(stores, D)
    assert due is not None
    assert (due.session, due.tree, due.messages, due.topics) == (D, A, 2, NOTES)
    assert [await stores.jobs.counters(each) for each in (A, B, C, D)] == [{"skills": 3}] * 4


async def test_a_deleted_parent_changes_nothing_for_those_who_come_from_it(stores: Stores) -> None:
    await begin(stores.sessions, A)
    await branch(stores.sessions, B, A, 2, "b")
    await branch(stores.sessions, C, B, 2, "c")
    await take_turn(stores, C)
    await stores.sessions.delete(B)
    await stores.sessions.delete(A)
    await take_turn(stores, C)
    await branch(stores.sessions, D, C, 1, "d")
    due = await take_turn(stores, D)
    assert due is not None
    assert (due.tree, await stores.jobs.counters(C)) == (A, {"skills": 3})


async def test_with_the_last_session_of_a_tree_its_counters_go(stores: Stores) -> None:
    await begin(stores.sessions, A)
    await branch(stores.sessions, B, A, 2, "b")
    await take_turn(stores, A)
    await stores.sessions.delete(A)
    assert await stores.jobs.counters(B) == {"memory": 1, "skills": 1}
    await stores.sessions.delete(B)
    await begin(stores.sessions, A, "the name is free again")
    assert await stores.jobs.counters(A) == {}


# The law: whatever is done to the reference and to another store, both answer alike.

NAMES = (A, B, C, D)


@dataclass(frozen=True)
class Deed:
    """Something done to the session or the job of number `pick`; `wrong` makes it out of date or of place."""

    kind: str
    pick: int
    at: int
    turns: int
    wrong: bool


KINDS = ("start", "branch", "append", "delete", "enqueue", "begin", "complete", "fail", "cancel", "retry")
DEEDS = st.builds(
    Deed,
    st.sampled_from((*KINDS, "append", "append", "begin", "complete", "retry")),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from([False] * 6 + [True]),
)


async def made(deed: Deed, known: Stores) -> Callable[[Stores], Any]:
    """The deed as a call, built from what the reference knows."""
    there = sorted(each.header.id for each in await known.sessions.list(origin=None))
    free = [each for each in NAMES if each not in there] or [A]
    name = free[0] if deed.wrong or not there else there[deed.pick % len(there)]
    length = len(await known.jobs.jobs())
    id = JobId(length + 1 if deed.wrong and deed.kind != "complete" else length - deed.pick % length)
    now = (await known.sessions.load(name)).transcript if name in there else said("x")
    held = (await known.ledger.held(MEMORY)).get("MEMORY.md")
    match deed.kind:
        case "start":
            return lambda stores: begin(stores.sessions, name if deed.turns == 0 else free[0], "x", "y")
        case "branch":
            return lambda stores: branch(stores.sessions, free[-1], name, deed.turns, "x")
        case "append":
            longer = said("z").nodes if deed.at == 3 else said("x", on=now).nodes[len(now) :]
            topics = configure_topics(Learning(turns=2 + deed.turns, iterations=deed.at))
            changed_by = frozenset({"memory"} if deed.at == 4 else ())
            counts = count_turn(TurnSummary(deed.turns, changed_by), topics)
            return lambda stores: stores.sessions.append(name, longer, None, counts)
        case "delete":
            return lambda stores: stores.sessions.delete(name)
        case "enqueue":
            return lambda stores: stores.jobs.enqueue(name, deed.at, NOTES, "by hand", NOW)
        case "begin":
            return lambda stores: stores.jobs.begin(id, SessionId(f"review-{deed.turns}"))
        case "complete":
            after = TWO if held == ONE else ONE
            changes = [note(digest(b"stale") if deed.wrong else held, after)] * (deed.turns > 0)
            covered = [JobId(each) for each in range(1, length + 1) if each % 3 == deed.at and each != id]
            return lambda stores: stores.jobs.complete(id, changes, {}, deed.turns / 2, LATER, covered)
        case "fail":
            return lambda stores: stores.jobs.fail(id, f"failed {deed.turns}", LATER, again=deed.turns > 0)
        case "cancel":
            return lambda stores: stores.jobs.cancel(id, LATER)
    return lambda stores: stores.jobs.retry(id)


async def outcome(stores: Stores, call: Callable[[Stores], Any]) -> Any:
    try:
        result = await call(stores)
    except HoneError as error:
        return type(error).__name__, str(error)
    return result if isinstance(result, Job | tuple) else None


async def compare(kinds: Sequence[Stores], deeds: Sequence[Deed]) -> tuple[Any, ...]:
    """Do the same to all of them; return what there is to see in the end."""
    reference, *others = kinds
    for stores in (reference, *others):
        await stores.ledger.record([], BODIES, NOW)
        await begin(stores.sessions, A)
        await branch(stores.sessions, B, A, 2, "x")
        await stores.jobs.enqueue(B, 1, BOTH, "by hand", NOW)
    for deed in deeds:
        call = await made(deed, reference)
        expected = await outcome(reference, call)
        refused = isinstance(expected, tuple) and expected and isinstance(expected[0], str)
        event(f"{deed.kind}: {expected[0] if refused else type(expected).__name__}")
        seen = await view(reference)
        assert {job.session for job in seen[2]} <= set(seen[0]), "what waits has its session"
        for stores in others:
            assert await outcome(stores, call) == expected
            assert await view(stores) == seen
    return await view(reference)


async def agree(folder: Path, deeds: Sequence[Deed]) -> None:
    async with all_kinds(folder) as kinds:
        last = await compare(kinds, deeds)
    again = sqlite("sqlite", folder)
    assert await view(again) == last
    await again.close()


@fewer(30)
@given(st.lists(DEEDS, min_size=5, max_size=20))
def test_sqlite_and_the_reference_agree_over_any_history_and_after_reopening(deeds: list[Deed]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(agree(Path(folder), deeds))
