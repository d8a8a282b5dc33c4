"""What every store promises about looks: they are stored with the words, and each becomes one review."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hone.core.errors import Conflict, HoneError
from hone.core.ids import SessionId
from hone.core.jobs import (
    CUT_OFF,
    ENOUGH,
    FOLLOWED,
    TOGETHER,
    Job,
    Look,
    PendingLook,
    State,
    TurnSummary,
    find_next,
    find_ripe,
)
from hone.core.ports import Header
from hone.core.topics import NAMES as TOPICS
from hone.core.transcript import Transcript
from hone.core.value import replace
from hone.runtime.triggers import configure_topics, count_turn
from hone.settings.sections import Learning
from hone.stores.home import Stores
from tests.contract.kinds import KINDS as STORES
from tests.contract.kinds import all_kinds, kept, sqlite
from tests.contract.test_sessions import NOW, PREFIX, A, B, C, D, branch, said
from tests.tier import fewer

SOON, LATER = NOW + timedelta(minutes=4), NOW + timedelta(minutes=9)
NOTES = frozenset({"memory"})
CUE = "a correction"


@pytest.fixture(params=STORES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with kept(request.param, tmp_path) as stores:
        yield stores


def look(
    minutes: float = 4, cue: str = "", turns: int = 1, *, tainted: bool = False, since: datetime | None = None
) -> Look:
    return Look(NOW + timedelta(minutes=minutes), cue, turns, tainted, TOPICS, since=since)


async def begin(stores: Stores, id: SessionId, first: Look | None, folder: str = "/work") -> Transcript:
    talk = said("hello", "hi")
    await stores.sessions.start(Header(id, NOW, folder=folder), PREFIX, talk.nodes, first)
    return talk


async def append(stores: Stores, id: SessionId, next: Look | None, **more: Any) -> Job | None:
    before = (await stores.sessions.load(id)).transcript
    return await stores.sessions.append(id, said("on", on=before).nodes[len(before) :], look=next, **more)


async def test_a_look_is_stored_with_the_words_and_moved_by_what_follows(stores: Stores) -> None:
    await begin(stores, A, look(4))
    assert await stores.jobs.looks() == (PendingLook(A, A, 2, "/work", SOON, "", 1),)
    await append(stores, A, look(6, turns=0))
    await append(stores, A, look(9, CUE, tainted=True))
    await append(stores, A, look(9, "another"))
    assert await stores.jobs.looks() == (PendingLook(A, A, 5, "/work", LATER, CUE, 3, True),)


async def test_what_only_puts_off_makes_no_look(stores: Stores) -> None:
    await begin(stores, A, None)
    await append(stores, A, look(turns=0))
    assert await stores.jobs.looks() == ()
    await append(stores, A, look(cue=CUE, turns=0))
    assert [each.cue for each in await stores.jobs.looks()] == [CUE]


async def test_words_that_cannot_be_stored_leave_no_look(stores: Stores) -> None:
    await begin(stores, A, look())
    before = await stores.jobs.looks()
    with pytest.raises(HoneError):
        await stores.sessions.append(A, said("x", "y", "z").nodes[2:], look=look(9, CUE))
    with pytest.raises(HoneError):
        await begin(stores, A, look(9, CUE))
    assert await stores.jobs.looks() == before


async def test_nothing_is_queued_before_it_is_due_and_then_once(stores: Stores) -> None:
    await begin(stores, A, look(4, CUE))
    await append(stores, A, None)
    assert await stores.jobs.promote(SOON - timedelta(seconds=1), TOPICS) == ()
    (job,) = await stores.jobs.promote(SOON, TOPICS)
    assert (job.session, job.tree, job.messages, job.topics, job.why) == (A, A, 3, TOPICS, CUE)
    assert (job.created, job.state, job.others) == (SOON, State.QUEUED, ())
    assert await stores.jobs.promote(LATER, TOPICS) == ()
    assert (await stores.jobs.looks(), await stores.jobs.waiting()) == ((), (job,))


async def test_of_many_that_promote_at_once_one_queues_each_review(stores: Stores) -> None:
    for id in (A, B, C):
        await begin(stores, id, look(4, CUE))
    made = await asyncio.gather(*(stores.jobs.promote(LATER, TOPICS) for _ in range(12)))
    assert sorted(job.session for jobs in made for job in jobs) == [A, B, C]
    assert len(await stores.jobs.jobs()) == 3


async def test_who_leaves_makes_it_due_and_who_returns_puts_it_off(stores: Stores) -> None:
    await begin(stores, A, look(4, CUE))
    await begin(stores, B, look(4, CUE))
    await stores.jobs.hasten([A, SessionId("gone")], NOW)
    assert [(each.session, each.due) for each in await stores.jobs.looks()] == [(A, NOW), (B, SOON)]
    await stores.jobs.hasten([A], LATER)
    assert (await stores.jobs.looks())[0].due == NOW, "it never becomes later by leaving"
    await append(stores, A, look(9))
    assert [(each.session, each.due) for each in await stores.jobs.looks()] == [(B, SOON), (A, LATER)]


async def test_what_follows_an_early_review_is_reviewed_once_it_is_silent(stores: Stores) -> None:
    """Leaving brings the review at once. Who comes back soon and says more, without a cue, is heard, too."""
    for id in (A, B):
        await begin(stores, id, look(turns=2))
    (job,) = await stores.jobs.promote(SOON, TOPICS)
    assert [job.session, *dict(job.others)] == [A, B]
    for id in (A, B):
        await append(stores, id, look(9, since=SOON - timedelta(seconds=1)))
        await stores.jobs.hasten([id], NOW)
    assert {(each.cue, each.due) for each in await stores.jobs.looks()} == {(FOLLOWED, LATER)}
    await append(stores, A, look(9, CUT_OFF))
    await append(stores, A, look(9, since=LATER))
    await append(stores, B, look(9, CUE))
    assert {each.session: each.cue for each in await stores.jobs.looks()} == {A: FOLLOWED, B: CUE}
    await stores.jobs.hasten([A, B], NOW)
    assert [each.session for each in await stores.jobs.promote(NOW, TOPICS)] == [B]
    assert [each.session for each in await stores.jobs.promote(LATER, TOPICS)] == [A]


async def test_after_a_silence_or_a_review_on_the_way_words_count_by_themselves(stores: Stores) -> None:
    await begin(stores, A, look(turns=ENOUGH))
    await stores.jobs.promote(SOON, TOPICS)
    await append(stores, A, look(9))
    await append(stores, A, look(9, since=SOON))
    assert [each.cue for each in await stores.jobs.looks()] == [""]


async def test_the_first_of_a_home_is_reviewed_after_one_turn_and_later_ones_together(stores: Stores) -> None:
    await begin(stores, A, look())
    (first,) = await stores.jobs.promote(SOON, TOPICS)
    assert (first.session, first.why) == (A, "1 turn")
    names = [SessionId(f"one-{number}") for number in range(ENOUGH)]
    for id in names:
        assert await stores.jobs.promote(LATER, TOPICS) == ()
        await begin(stores, id, look())
    await begin(stores, D, look(), folder="/elsewhere")
    (job,) = await stores.jobs.promote(SOON, TOPICS)
    assert (job.session, job.others, job.why) == (
        names[0],
        tuple((id, 2) for id in names[1:]),
        f"{ENOUGH} turns",
    )
    assert await stores.jobs.job(job.id) == job
    assert [each.session for each in await stores.jobs.looks()] == [D]


async def test_a_review_that_is_due_by_count_takes_the_look_along(stores: Stores) -> None:
    every = count_turn(TurnSummary(1), configure_topics(Learning(turns=1)))
    await begin(stores, A, look(4, CUE))
    job = await append(stores, A, look(9, turns=0), counts=every)
    assert job is not None
    assert (job.topics, job.why) == (TOPICS, "1 turn"), "it reads everything anyway"
    assert (await stores.jobs.looks(), await stores.jobs.counters(A)) == ((), {})


async def test_what_is_queued_counts_anew(stores: Stores) -> None:
    seldom = count_turn(TurnSummary(1), configure_topics(Learning()))
    await begin(stores, A, look(4, CUE))
    await append(stores, A, look(4, turns=0), counts=seldom)
    assert await stores.jobs.counters(A) == {"memory": 1, "skills": 1}
    await stores.jobs.promote(SOON, NOTES)
    assert await stores.jobs.counters(A) == {"skills": 1}


async def test_a_branch_has_its_own_look(stores: Stores) -> None:
    await begin(stores, A, look(4, CUE))
    await branch(stores.sessions, B, A, 2)
    await append(stores, B, look(9, CUE))
    assert [(each.session, each.tree) for each in await stores.jobs.looks()] == [(A, A), (B, A)]
    await stores.sessions.delete(A)
    assert [each.session for each in await stores.jobs.looks()] == [B]


async def test_before_messages_give_way_to_notes_what_they_taught_is_queued(stores: Stores) -> None:
    talk = await begin(stores, A, look(4))
    await append(stores, A, look(4, turns=0))
    now = (await stores.sessions.load(A)).transcript
    short = said("notes")
    assert await stores.sessions.shorten(A, now.head, short, TOPICS) == (await stores.jobs.jobs())[0]
    (job,) = await stores.jobs.jobs()
    assert (job.session, job.messages, await stores.jobs.looks()) == (A, len(talk) + 1, ())
    assert await stores.sessions.shorten(A, short.head, said("shorter"), TOPICS) is None


async def test_a_look_is_stored_with_a_line_that_takes_the_place_of_another(stores: Stores) -> None:
    await begin(stores, A, None)
    now, other = (await stores.sessions.load(A)).transcript, said("hello", "more", "hi")
    assert await stores.sessions.shorten(A, now.head, other, look=look(4, CUE)) is None
    assert await stores.jobs.looks() == (PendingLook(A, A, 3, "/work", SOON, CUE, 1),)
    with pytest.raises(Conflict):
        await stores.sessions.shorten(A, now.head, said("hello"), look=look(9))
    assert [each.due for each in await stores.jobs.looks()] == [SOON]


async def test_a_review_by_hand_of_everything_takes_the_look_along_and_any_other_does_not(
    stores: Stores,
) -> None:
    await begin(stores, A, look(4, CUE))
    await stores.jobs.enqueue(A, 2, NOTES, "by hand", NOW)
    await stores.jobs.enqueue(A, 1, TOPICS, "by hand", NOW)
    assert len(await stores.jobs.looks()) == 1
    await stores.jobs.enqueue(A, 2, TOPICS, "by hand", NOW)
    assert await stores.jobs.looks() == ()


async def test_a_review_of_several_goes_on_with_those_that_are_left(stores: Stores) -> None:
    for id in (A, B, C, D):
        await begin(stores, id, look())
    (job,) = await stores.jobs.promote(SOON, TOPICS)
    assert (job.session, job.others) == (A, ((B, 2), (C, 2), (D, 2)))
    await stores.sessions.delete(B)
    await stores.sessions.delete(A)
    after = replace(job, session=C, tree=C, others=((D, 2),))
    assert await stores.jobs.waiting() == (after,)
    await stores.sessions.delete(C)
    await stores.sessions.delete(D)
    assert [each.state for each in await stores.jobs.jobs()] == [State.CANCELLED]


# Which looks become reviews, as a decision without a store.

pending = st.builds(
    PendingLook,
    st.integers(0, 40).map(lambda number: SessionId(f"s{number}")),
    st.just(A),
    st.just(2),
    st.sampled_from(["/a", "/b"]),
    st.integers(0, 600).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    st.sampled_from(["", "", "", CUE]),
    st.integers(0, 5),
    st.booleans(),
)
several = st.lists(pending, max_size=40, unique_by=lambda each: each.session)


@given(several, st.booleans())
def test_a_look_is_in_one_review_at_most_and_foreign_text_is_never_mixed_in(
    looks: list[PendingLook], first: bool
) -> None:
    groups = find_ripe(looks, first=first)
    chosen = [each.session for group in groups for each in group]
    assert len(chosen) == len(set(chosen))
    assert set(chosen) <= {each.session for each in looks}
    for group in groups:
        assert len({(each.folder, each.tainted) for each in group}) == 1
        assert len(group) == 1 or all(not each.cue and each.turns < ENOUGH for each in group)
        assert len(group) <= TOGETHER


@given(several, st.booleans())
def test_whatever_is_reason_enough_is_chosen(looks: list[PendingLook], first: bool) -> None:
    chosen = {each.session for group in find_ripe(looks, first=first) for each in group}
    assert {each.session for each in looks if each.cue or each.turns >= ENOUGH} <= chosen
    for folder in ("/a", "/b"):
        for tainted in (False, True):
            rest = [
                each
                for each in looks
                if (each.folder, each.tainted) == (folder, tainted) and each.session not in chosen
            ]
            assert sum(each.turns for each in rest) < ENOUGH * (1 + len(rest) // TOGETHER) + ENOUGH
    if first and any(each.turns for each in looks):
        assert chosen


@given(several, st.booleans(), st.sampled_from([8, 16, 32]))
def test_where_more_turns_are_needed_reviews_are_rarer_and_a_cue_is_always_read(
    looks: list[PendingLook], first: bool, turns: int
) -> None:
    usual, rarer = find_ripe(looks, first=first), find_ripe(looks, first=first, needed={"/a": turns})
    assert len([each for each in rarer if each[0].folder == "/a"]) <= len(
        [each for each in usual if each[0].folder == "/a"]
    )
    assert {each.session for each in looks if each.cue} <= {each.session for group in rarer for each in group}
    for group in rarer:
        if group[0].folder == "/a" and not group[0].cue and not first:
            assert sum(each.turns for each in group) >= turns or len(group) == TOGETHER
    now = NOW + timedelta(seconds=700)
    assert (find_next(looks, now, first=first, needed={"/a": turns}) == now) is bool(rarer)


async def test_a_folder_can_need_more_turns_than_others(stores: Stores) -> None:
    await stores.jobs.enqueue(await begin_elsewhere(stores), 2, TOPICS, "by hand", NOW)
    for id in (A, B, C, D):
        await begin(stores, id, look())
    folder = (await stores.jobs.looks())[0].folder
    assert await stores.jobs.promote(SOON, TOPICS, {folder: 8}) == ()
    assert len(await stores.jobs.looks()) == 4
    (job,) = await stores.jobs.promote(SOON, TOPICS, {folder: 4, "/elsewhere": 99})
    assert (job.session, job.why) == (A, "4 turns")


async def begin_elsewhere(stores: Stores) -> SessionId:
    """Have a conversation, so that the next review is not the first one of the home."""
    other = SessionId("before")
    await begin(stores, other, look())
    return other


@given(several, st.booleans(), st.integers(0, 700))
def test_the_next_look_is_when_something_becomes_ripe(
    looks: list[PendingLook], first: bool, seconds: int
) -> None:
    now = NOW + timedelta(seconds=seconds)
    due = find_next(looks, now, first=first)
    ripe = bool(find_ripe([each for each in looks if each.due <= now], first=first))
    assert (due == now) is ripe
    assert due is None or due >= now
    if due is None:
        assert not find_ripe(looks, first=first)


# The law: whatever is done to the reference and to another store, both answer alike.


@dataclass(frozen=True)
class Deed:
    kind: str
    pick: int
    minutes: int
    turns: int
    cue: str
    tainted: bool
    since: int | None


NAMES = (A, B, C, D)
DEEDS = st.builds(
    Deed,
    st.sampled_from(
        ("start", "append", "append", "append", "count", "promote", "promote", "hasten", "delete")
    )
    | st.sampled_from(("shorten", "branch", "enqueue", "stale")),
    st.integers(0, 3),
    st.integers(0, 12),
    st.integers(0, 3),
    st.sampled_from(["", "", CUE, CUT_OFF, "a complaint \udcff"]),
    st.booleans(),
    st.none() | st.integers(0, 12),
)


async def made(deed: Deed, known: Stores) -> Callable[[Stores], Any]:
    """The deed as a call, built from what the reference knows."""
    there = sorted(each.header.id for each in await known.sessions.list(origin=None))
    free = [each for each in NAMES if each not in there] or [A]
    name = there[deed.pick % len(there)] if there else A
    now = (await known.sessions.load(name)).transcript if there else said("x")
    since = None if deed.since is None else NOW + timedelta(minutes=deed.since)
    next = look(deed.minutes, deed.cue, deed.turns, tainted=deed.tainted, since=since)
    longer = said("z").nodes if deed.kind == "stale" else said("x", on=now).nodes[len(now) :]
    at = NOW + timedelta(minutes=deed.minutes)
    match deed.kind:
        case "start":
            return lambda stores: begin(stores, free[0], next, f"/{deed.pick % 2}")
        case "append" | "stale":
            return lambda stores: stores.sessions.append(name, longer, look=next)
        case "count":
            topics = configure_topics(Learning(turns=1 + deed.pick))
            counts = count_turn(TurnSummary(deed.turns), topics)
            return lambda stores: stores.sessions.append(name, longer, None, counts, next)
        case "promote":
            return lambda stores: stores.jobs.promote(at, TOPICS if deed.turns else NOTES)
        case "hasten":
            return lambda stores: stores.jobs.hasten([name, free[0]], at)
        case "delete":
            return lambda stores: stores.sessions.delete(name)
        case "shorten":
            return lambda stores: stores.sessions.shorten(name, now.head, said("notes"), TOPICS)
        case "branch":
            return lambda stores: branch(stores.sessions, free[-1], name, 1, "x")
    return lambda stores: stores.jobs.enqueue(name, 1 + deed.turns, TOPICS, "by hand", NOW)


async def outcome(stores: Stores, call: Callable[[Stores], Any]) -> Any:
    try:
        result = await call(stores)
    except HoneError as error:
        return type(error).__name__, str(error)
    return result if isinstance(result, Job | tuple) else None


async def view(stores: Stores) -> tuple[Any, ...]:
    sessions = [each.header.id for each in await stores.sessions.list(origin=None)]
    counters = [await stores.jobs.counters(each) for each in sessions]
    return sessions, await stores.jobs.looks(), await stores.jobs.jobs(), counters


async def compare(kinds: Sequence[Stores], deeds: Sequence[Deed]) -> tuple[Any, ...]:
    """Do the same to all of them; return what there is to see in the end."""
    reference, *others = kinds
    for stores in (reference, *others):
        await begin(stores, A, look())
    for deed in deeds:
        call = await made(deed, reference)
        expected = await outcome(reference, call)
        event(f"{deed.kind}: {type(expected).__name__}")
        seen = await view(reference)
        assert {each.session for each in seen[1]} <= set(seen[0]), "what is to be looked at is there"
        waiting = [job for job in seen[2] if job.state is State.QUEUED]
        assert {job.session for job in waiting} <= set(seen[0]), "what waits has its session"
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
