"""What every store of sessions promises, line by line of the port; then all of them against the reference."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hone.core.errors import Conflict, Missing, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import Job, JobId, TopicCount, Topics
from hone.core.messages import (
    Image,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from hone.core.model import Usage
from hone.core.ports import IMPORTED, Header, Sessions, Spending, SpendingTotal, StoredSession
from hone.core.prefix import Prefix
from hone.core.topics import NAMES
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.stores.home import Stores
from tests.contract.kinds import KINDS as STORES
from tests.contract.kinds import all_kinds, kept
from tests.stores.worker import OpenedSessions
from tests.tier import fewer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PREFIX = Prefix("scripted/one", "You help.", ('{"name":"read"}',))
OTHER = Prefix("scripted/two", "You help, too.")
A, B, C, D = (SessionId(name) for name in ("a1", "b1", "c1", "c2"))
SPENT = Spending(NOW, "scripted/one", Origin.USER, Usage(10, 4, 2, 3, 0.25))


BOTH = NAMES
NOTHING: Topics = frozenset()
LOST = "\ufffd" * 3
"""What a byte that is no text becomes."""


@pytest.fixture(params=STORES)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with kept(request.param, tmp_path) as stores:
        yield stores


@pytest.fixture
def sessions(stores: Stores) -> Sessions:
    return stores.sessions


def said(*words: str, on: Transcript | None = None, prefix: Prefix = PREFIX) -> Transcript:
    """A conversation in which user and assistant speak in turn."""
    transcript = Transcript(prefix.digest) if on is None else on
    for text in words:
        by_user = len(transcript) % 2 == 0
        message = user(text) if by_user else assistant(text)
        transcript = transcript.then(message, Trust.OWNER if by_user else Trust.AGENT, NOW)
    return transcript


def facts(nodes: Sequence[Node]) -> list[tuple[Any, ...]]:
    names = ("message", "trust", "at", "parent", "encoded", "digest", "hash")
    return [tuple(getattr(node, name) for name in names) for node in nodes]


async def begin(sessions: Sessions, id: SessionId, *words: str, **header: Any) -> Transcript:
    transcript = said(*(words or ("hello", "hi", "how are you?")))
    await sessions.start(Header(id, NOW, **header), PREFIX, transcript.nodes)
    return transcript


async def branch(
    sessions: Sessions, id: SessionId, parent: SessionId, shared: int, *words: str
) -> Transcript:
    base = (await sessions.load(parent)).transcript.upto(shared)
    transcript = said(*words, on=base)
    header = Header(id, NOW, parent=parent, shared=shared)
    await sessions.start(header, (await sessions.load(parent)).prefix, transcript.nodes[shared:])
    return transcript


async def test_an_append_that_does_not_follow_the_head_is_a_conflict_and_adds_nothing(
    sessions: Sessions,
) -> None:
    transcript = await begin(sessions, A)
    stale = said("another thing", "and more", on=transcript.upto(2))
    with pytest.raises(Conflict):
        await sessions.append(A, stale.nodes[2:], SPENT)
    assert facts((await sessions.load(A)).transcript.nodes) == facts(transcript.nodes)
    assert await sessions.spending() == ()


async def test_nothing_is_added_by_half_if_only_the_first_nodes_follow(sessions: Sessions) -> None:
    transcript = await begin(sessions, A)
    longer = said("one", "two", "three", on=transcript).nodes[3:]
    with pytest.raises(Conflict):
        await sessions.append(A, (longer[0], longer[2]), SPENT)
    assert (await sessions.load(A)).transcript.head == transcript.head
    assert (await sessions.spending(), (await sessions.list())[0].messages) == ((), 3)
    await sessions.append(A, longer)
    assert len((await sessions.load(A)).transcript) == 6


def tally(due: Topics = NOTHING, why: str = "") -> tuple[TopicCount, ...]:
    """Count a turn and two iterations; what is `due` is so at once."""
    adds = {"memory": 1, "skills": 2}
    return tuple(TopicCount(name, adds[name], int(name in due), why=why) for name in sorted(adds))


async def test_what_cannot_be_added_is_not_counted_and_sets_nothing_off(stores: Stores) -> None:
    sessions = stores.sessions
    transcript = await begin(sessions, A)
    stale = said("x", on=transcript.upto(2)).nodes[2:]
    with pytest.raises(Conflict):
        await sessions.append(A, stale, SPENT, tally(BOTH))
    with pytest.raises(Missing):
        await sessions.append(B, stale, SPENT, tally(BOTH))
    assert (await stores.jobs.counters(A), await stores.jobs.jobs()) == ({}, ())
    job = await sessions.append(A, said("x", on=transcript).nodes[3:], None, tally(BOTH))
    assert (await stores.jobs.counters(A), job and job.id) == ({}, 1)


async def test_what_is_due_is_queued_with_all_messages_up_to_the_last_and_returned(stores: Stores) -> None:
    sessions, late = stores.sessions, NOW + timedelta(minutes=1)
    transcript = await begin(sessions, A)
    first = said("one", "two", on=transcript)
    second = first.then(assistant("three"), Trust.AGENT, late)
    assert await sessions.append(A, first.nodes[3:], SPENT, tally()) is None
    assert await stores.jobs.counters(A) == {"memory": 1, "skills": 2}
    job = await sessions.append(A, second.nodes[5:], SPENT, tally(BOTH, "due\udcff"))
    assert job == Job(JobId(1), A, A, 6, BOTH, late, f"due{LOST} and due{LOST}")
    assert await stores.jobs.counters(A) == {}, "what is due counts anew"
    again = await sessions.append(A, (), None, tally(frozenset({"skills"})))
    assert again == Job(JobId(2), A, A, 6, frozenset({"skills"}), late, "")
    assert await stores.jobs.counters(A) == {"memory": 1}
    assert await sessions.append(A, (), SPENT) is None
    assert facts((await sessions.load(A)).transcript.nodes) == facts(second.nodes)
    assert await sessions.spending() == (SPENT,) * 3


async def test_a_turn_that_resets_a_counter_or_counts_nothing_is_never_due(stores: Stores) -> None:
    await begin(stores.sessions, A)
    await stores.sessions.append(A, (), None, tally())
    turn = (TopicCount("memory", 5, 1, resets=True), TopicCount("skills", 9, 0), TopicCount("weather", 1, 2))
    assert await stores.sessions.append(A, (), None, turn) is None
    assert await stores.jobs.counters(A) == {"skills": 11, "weather": 1}


async def test_many_appends_at_once_to_branches_of_one_tree_lose_no_count(stores: Stores) -> None:
    sessions = stores.sessions
    await begin(sessions, A)
    names = [SessionId(f"s{number}") for number in range(20)]
    for name in names:
        await branch(sessions, name, A, 2, name)
    await asyncio.gather(*(sessions.append(name, (), None, tally()) for name in names))
    assert await stores.jobs.counters(A) == {"memory": 20, "skills": 40}


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.load(B),
        lambda store: store.append(B, said("x").nodes),
        lambda store: store.append(B, (), SPENT),
        lambda store: store.move(B, OTHER, said("x", prefix=OTHER)),
        lambda store: store.rename(B, "title"),
        lambda store: store.delete(B),
        lambda store: store.find("b"),
        lambda store: store.load(SessionId("\udcff")),
        lambda store: store.find("\udcff"),
        lambda store: store.start(Header(C, NOW, parent=B, shared=1), PREFIX, ()),
    ],
)
async def test_a_session_that_is_not_there_is_missing(sessions: Sessions, call: Callable[..., Any]) -> None:
    await begin(sessions, A)
    with pytest.raises(Missing):
        await call(sessions)
    assert ([each.header.id for each in await sessions.list()], await sessions.spending()) == ([A], ())


async def test_an_id_is_taken_once(sessions: Sessions) -> None:
    transcript = await begin(sessions, A, "the first")
    with pytest.raises(Conflict):
        await begin(sessions, A, "the second")
    assert facts((await sessions.load(A)).transcript.nodes) == facts(transcript.nodes)


@pytest.mark.parametrize(
    ("header", "prefix", "nodes"),
    [
        pytest.param(Header(B, NOW), PREFIX, (), id="no message"),
        pytest.param(Header(B, NOW, parent=A), PREFIX, (), id="no message, none shared"),
        pytest.param(Header(B, NOW, shared=1), PREFIX, said("x").nodes, id="shared with nobody"),
        pytest.param(Header(B, NOW), OTHER, said("x").nodes, id="nodes under another prefix"),
        pytest.param(Header(B, NOW), PREFIX, said("x", "y").nodes[1:], id="nodes without their beginning"),
        pytest.param(Header(B, NOW, parent=A, shared=4), PREFIX, (), id="more shared than there is"),
        pytest.param(Header(B, NOW, parent=A, shared=-1), PREFIX, said("x").nodes, id="fewer than none"),
        pytest.param(Header(B, NOW, parent=A, shared=2), OTHER, (), id="shared under another prefix"),
        pytest.param(Header(B, NOW, parent=A, shared=2), PREFIX, said("x").nodes, id="after other nodes"),
    ],
)
async def test_a_start_that_does_not_fit_is_a_conflict_and_leaves_no_session(
    sessions: Sessions, header: Header, prefix: Prefix, nodes: Sequence[Node]
) -> None:
    await begin(sessions, A)
    with pytest.raises(Conflict):
        await sessions.start(header, prefix, nodes)
    with pytest.raises(Missing):
        await sessions.load(B)
    assert len(await sessions.list()) == 1


@pytest.mark.parametrize(
    "transcript",
    [
        pytest.param(said("hello", "hi", prefix=OTHER), id="fewer"),
        pytest.param(said("hello", "hi", "how are you?", "well", prefix=OTHER), id="more"),
        pytest.param(said("hello", "hi", "who are you?", prefix=OTHER), id="others"),
        pytest.param(Transcript(OTHER.digest), id="none"),
        pytest.param(said("hello", "hi", "how are you?"), id="under the old prefix"),
    ],
)
async def test_a_move_with_other_contents_is_a_conflict(sessions: Sessions, transcript: Transcript) -> None:
    before = await begin(sessions, A)
    with pytest.raises(Conflict):
        await sessions.move(A, OTHER, transcript)
    stored = await sessions.load(A)
    assert (stored.prefix, stored.transcript.head) == (PREFIX, before.head)


async def test_a_beginning_that_several_ids_share_is_missing_and_names_them(sessions: Sessions) -> None:
    for id in (A, C, D, SessionId("c")):
        await begin(sessions, id)
    assert [await sessions.find(text) for text in ("a", "a1", "c1", "c")] == [A, A, C, "c"]
    for text in ("", "A", "c1x", "%", "_1", "c1\0"):
        with pytest.raises(Missing):
            await sessions.find(text)
    await sessions.delete(SessionId("c"))
    with pytest.raises(Missing, match=r"c1, c2\."):
        await sessions.find("c")


async def test_a_session_comes_back_as_it_was_written(sessions: Sessions) -> None:
    header = Header(A, NOW, "Grüße\0", Origin.DELEGATE, "/tmp/ä b")
    transcript = said("one", "two")
    await sessions.start(header, PREFIX, transcript.nodes[:1])
    await sessions.append(A, transcript.nodes[1:])
    stored = await sessions.load(A)
    assert (stored.header, stored.prefix, stored.transcript.root) == (header, PREFIX, PREFIX.digest)
    assert (stored.transcript.shared, facts(stored.transcript.nodes)) == (0, facts(transcript.nodes))


async def test_a_title_or_folder_with_broken_letters_is_kept_without_them(sessions: Sessions) -> None:
    await begin(sessions, A, folder="/tmp/\udcff", title="x\ud800")
    assert (await sessions.load(A)).header.title == "x\ufffd\ufffd\ufffd"
    await sessions.rename(A, "\udcff")
    header = (await sessions.load(A)).header
    assert (header.title, header.folder) == ("\ufffd" * 3, "/tmp/" + "\ufffd" * 3)


ODD = "\0 \x1b[0m \u202e \u200d 👩‍👩‍👧 e\u0301 \ufeff \U0010ffff \ufdd0 \u2028 \\ \" '"
PARTS: list[Part] = [
    Text(ODD),
    Text(""),
    Image("image/png", "aGVsbG8="),
    Thinking(ODD, "signature", "sealed"),
    ToolCall("call-1", "read_file", '{ "path" : "ä\\u0000" ,"path":1}'),
    ToolCall("", "", "not json \0"),
    ToolResult("call-1", ODD, failed=True),
    ToolResult("call-2", ""),
]


async def test_every_kind_of_part_survives_with_odd_letters(sessions: Sessions) -> None:
    transcript = Transcript(PREFIX.digest)
    for role in Role:
        for parts in [(part,) for part in PARTS] + [tuple(PARTS), ()]:
            transcript = transcript.then(Message(role, parts), Trust.FOREIGN, NOW)
    await sessions.start(Header(A, NOW), PREFIX, transcript.nodes)
    assert facts((await sessions.load(A)).transcript.nodes) == facts(transcript.nodes)


async def test_trust_and_time_belong_to_the_node_and_not_to_the_content(sessions: Sessions) -> None:
    east = timezone(timedelta(hours=9, minutes=30))
    times = [NOW, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2400, 1, 1, 0, 0, 0, 1, east)]
    transcript = Transcript(PREFIX.digest)
    for trust in Trust:
        for at in times:
            transcript = transcript.then(user("the same words"), trust, at)
    await sessions.start(Header(A, times[1]), PREFIX, transcript.nodes)
    await sessions.start(Header(B, times[2]), PREFIX, said("the same words").nodes)
    stored = (await sessions.load(A)).transcript
    assert [(node.trust, node.at) for node in stored.nodes] == [
        (node.trust, node.at) for node in transcript.nodes
    ]
    assert all(node.at.tzinfo for node in stored.nodes)
    assert (await sessions.load(B)).transcript.nodes[0].trust is Trust.OWNER


async def test_a_branch_shares_the_beginning_and_goes_its_own_way(sessions: Sessions) -> None:
    parent = await begin(sessions, A)
    child = await branch(sessions, B, A, 2, "and now?")
    empty = await branch(sessions, C, A, 3)
    longer = said("fine", on=parent)
    await sessions.append(A, longer.nodes[3:])
    grown = said("later", on=empty)
    await sessions.append(C, grown.nodes[3:])
    assert facts((await sessions.load(A)).transcript.nodes) == facts(longer.nodes)
    stored = await sessions.load(B)
    assert (stored.header.parent, stored.transcript.shared) == (A, 2)
    assert facts(stored.transcript.nodes) == facts(child.nodes)
    assert facts((await sessions.load(C)).transcript.nodes) == facts(grown.nodes)


async def test_a_child_may_share_nothing_and_have_a_prefix_of_its_own(sessions: Sessions) -> None:
    await begin(sessions, A)
    child = said("a task of its own", prefix=OTHER)
    await sessions.start(Header(B, NOW, parent=A), OTHER, child.nodes)
    stored = await sessions.load(B)
    assert (stored.prefix, stored.header.parent, stored.transcript.head) == (OTHER, A, child.head)


async def test_a_branch_of_a_branch_outlives_both(sessions: Sessions) -> None:
    await begin(sessions, A)
    await branch(sessions, B, A, 2, "b", "b again")
    last = await branch(sessions, C, B, 3, "c")
    await sessions.delete(A)
    await sessions.delete(B)
    assert facts((await sessions.load(C)).transcript.nodes) == facts(last.nodes)
    await sessions.append(C, said("on", on=last).nodes[4:])


async def test_a_move_keeps_contents_times_and_trust_under_the_new_prefix(sessions: Sessions) -> None:
    transcript = await begin(sessions, A)
    child = await branch(sessions, B, A, 2, "elsewhere")
    await branch(sessions, D, A, 3)
    moved = transcript.rooted(OTHER.digest)
    await sessions.move(A, OTHER, moved)
    stored = await sessions.load(A)
    assert (stored.prefix, facts(stored.transcript.nodes)) == (OTHER, facts(moved.nodes))
    with pytest.raises(Conflict):
        await sessions.append(A, said("to the old head", on=transcript).nodes[3:])
    await sessions.append(A, said("to the new one", on=moved).nodes[3:])
    late = await branch(sessions, C, A, 4, "after the move")
    assert facts((await sessions.load(C)).transcript.nodes) == facts(late.nodes)
    await sessions.delete(D)
    assert facts((await sessions.load(B)).transcript.nodes) == facts(child.nodes)


async def test_a_branch_after_a_move_keeps_what_it_shares_and_no_more(
    sessions: Sessions, tmp_path: Path
) -> None:
    transcript = await begin(sessions, A, "shared", "alone", "alone, too")
    await sessions.move(A, OTHER, transcript.rooted(OTHER.digest))
    child = await branch(sessions, B, A, 1, "its own")
    await sessions.delete(A)
    assert facts((await sessions.load(B)).transcript.nodes) == facts(child.nodes)
    if (path := tmp_path / "hone.db").exists():
        assert set(rows(path, "SELECT digest FROM contents")) == {node.digest for node in child.nodes}
        assert rows(path, "SELECT count(*) FROM nodes") == [3]
        await sessions.delete(B)
        assert rows(path, "SELECT count(*) FROM nodes") == [0]


async def test_with_a_session_go_its_forks_and_children_but_not_the_users_branches(
    sessions: Sessions,
) -> None:
    whole = said("one", "two")
    await sessions.start(Header(A, NOW), PREFIX, whole.nodes)
    fork = replace(Header(B, NOW), origin=Origin.REVIEW, parent=A, shared=2)
    await sessions.start(fork, PREFIX, said("look back", on=whole).nodes[2:])
    await sessions.start(replace(fork, id=C, parent=B, origin=Origin.COMPACT), PREFIX, ())
    await sessions.start(replace(fork, id=D, origin=Origin.USER), PREFIX, ())
    await sessions.delete(A)
    assert [each.header.id for each in await sessions.list(None, None)] == [D]
    assert len((await sessions.load(D)).transcript) == 2


async def test_a_deleted_session_is_gone_its_branch_readable_and_its_cost_known(sessions: Sessions) -> None:
    transcript = await begin(sessions, A)
    await sessions.append(A, said("alone", on=transcript).nodes[3:], SPENT)
    child = await branch(sessions, B, A, 2, "mine")
    await sessions.delete(A)
    with pytest.raises(Missing):
        await sessions.load(A)
    assert [each.header.id for each in await sessions.list()] == [B]
    stored = await sessions.load(B)
    assert (facts(stored.transcript.nodes), stored.header.parent) == (facts(child.nodes), A)
    assert (await sessions.spending(A), await sessions.spending()) == ((SPENT,), (SPENT,))
    for beginning, found in ((A, [A]), (A[:1], [A]), (B, []), ("zz", [])):
        assert list(await sessions.find_deleted(beginning)) == found
    await sessions.append(B, said("still", on=child).nodes[3:])
    await begin(sessions, A, "the name is free again")
    assert list(await sessions.find_deleted(A)) == []


async def test_the_list_is_in_the_order_of_activity_although_clocks_go_back(sessions: Sessions) -> None:
    transcripts = {}
    for hours, id in enumerate((A, B, C)):
        early = NOW - timedelta(hours=hours)
        transcripts[id] = Transcript(PREFIX.digest).then(user(id), Trust.OWNER, early)
        await sessions.start(Header(id, early), PREFIX, transcripts[id].nodes)
    assert [each.header.id for each in await sessions.list()] == [C, B, A]
    past = NOW - timedelta(days=9)
    await sessions.append(A, transcripts[A].then(assistant("x"), Trust.AGENT, past).nodes[1:])
    assert [each.header.id for each in await sessions.list()] == [A, C, B]
    await sessions.move(B, OTHER, transcripts[B].rooted(OTHER.digest))
    await sessions.append(C, (), SPENT)
    await sessions.rename(A, "a new title is no activity")
    assert [each.header.id for each in await sessions.list()] == [C, B, A]
    assert [each.header.id for each in await sessions.list(2)] == [C, B]
    assert await sessions.list(0) == ()
    assert (await sessions.list())[2].updated == past


async def test_the_list_shows_the_sessions_of_one_origin_or_all(sessions: Sessions) -> None:
    await begin(sessions, A)
    await begin(sessions, B, origin=Origin.REVIEW)
    await begin(sessions, C, origin=Origin.CURATOR)
    assert [each.header.id for each in await sessions.list()] == [A]
    assert [each.header.id for each in await sessions.list(origin=Origin.REVIEW)] == [B]
    assert [each.header.id for each in await sessions.list(origin=None)] == [C, B, A]
    assert [each.header.id for each in await sessions.list(1, origin=Origin.USER)] == [A]


async def test_what_was_brought_in_stands_in_the_list_by_its_own_time_and_is_never_the_latest_of_ones_own(
    sessions: Sessions,
) -> None:
    brought = Prefix(f"{IMPORTED}/codex", "")
    for id, days, prefix in ((A, 9, PREFIX), (B, 1, PREFIX), (C, 5, brought), (D, 20, brought)):
        past = NOW - timedelta(days=days)
        nodes = Transcript(prefix.digest).then(user(id), Trust.OWNER, past).nodes
        await sessions.start(Header(id, past), prefix, nodes)
    listed = await sessions.list()
    assert [(each.header.id, each.source) for each in listed] == [
        (B, ""),
        (C, "codex"),
        (A, ""),
        (D, "codex"),
    ]
    assert [each.header.id for each in await sessions.list(2)] == [B, C]
    assert [each.header.id for each in await sessions.list(own=True)] == [B, A]
    stored = await sessions.load(D)
    await sessions.move(D, OTHER, stored.transcript.rooted(OTHER.digest))  # gone on with, it is one's own
    assert [each.header.id for each in await sessions.list(own=True)] == [D, B, A]
    await sessions.start(Header(SessionId("e"), NOW, parent=C, shared=1), brought, ())
    assert (await sessions.list(1, own=True))[0].header.id == "e"  # and so is a branch


async def test_a_summary_tells_model_length_last_time_and_the_users_first_words(sessions: Sessions) -> None:
    picture = user(Image("image/png", "aGVsbG8="))
    transcript = Transcript(PREFIX.digest).then(picture, Trust.OWNER, NOW)
    header = Header(A, NOW, "title")
    await sessions.start(header, PREFIX, transcript.nodes)
    assert (await sessions.list())[0].opening == ""
    late = NOW + timedelta(minutes=1)
    transcript = transcript.then(assistant("what is it?"), Trust.AGENT, NOW)
    transcript = transcript.then(user("A  cat,\n\tI\0 think. ", "é" * 99), Trust.OWNER, NOW)
    transcript = transcript.then(user("or not"), Trust.OWNER, late)
    await sessions.append(A, transcript.nodes[1:])
    await branch(sessions, B, A, 2, "a dog")
    await branch(sessions, C, A, 3)
    await sessions.move(A, OTHER, transcript.rooted(OTHER.digest))
    moved, shared, own = await sessions.list()
    assert (moved.header, moved.model, moved.messages, moved.updated) == (header, "scripted/two", 4, late)
    assert moved.opening == ("A cat, I\0 think. " + "é" * 99)[:80]
    assert (shared.opening, own.opening, own.model) == (moved.opening, "a dog", "scripted/one")


async def test_a_new_title_is_the_only_thing_a_rename_changes(sessions: Sessions) -> None:
    await begin(sessions, A, folder="/tmp")
    before = await sessions.load(A)
    await sessions.rename(A, "Grüße 👋\0")
    after = await sessions.load(A)
    assert after.header == replace(before.header, title="Grüße 👋\0")
    assert facts(after.transcript.nodes) == facts(before.transcript.nodes)


async def test_spending_is_kept_in_order_by_session_and_in_all(sessions: Sessions) -> None:
    transcript = await begin(sessions, A)
    await begin(sessions, B)
    unpriced = Spending(NOW - timedelta(days=1), "x/y", Origin.REVIEW, Usage(1, 2, 3, 4, None))
    await sessions.append(A, said("x", on=transcript).nodes[3:], SPENT)
    await sessions.append(B, (), unpriced)
    await sessions.append(A, (), unpriced)
    assert await sessions.spending(A) == (SPENT, unpriced)
    assert await sessions.spending(B) == (unpriced,)
    assert await sessions.spending() == (SPENT, unpriced, unpriced)
    assert await sessions.spending(C) == ()
    assert await sessions.spending(since=NOW) == (SPENT,)
    assert await sessions.spending(A, since=NOW - timedelta(days=1)) == (SPENT, unpriced)
    assert await sessions.spending(origins=(Origin.REVIEW,)) == (unpriced, unpriced)
    assert await sessions.spending(A, since=NOW, origins=(Origin.REVIEW, Origin.CURATOR)) == ()
    both, day = (Origin.REVIEW, Origin.USER), timedelta(days=1)
    assert await sessions.total_spending(NOW - day, NOW, both) == SpendingTotal(0.0, 10)
    assert await sessions.total_spending(NOW, NOW + day, both) == SpendingTotal(SPENT.usage.cost or 0.0)
    assert await sessions.total_spending(NOW - day, NOW + day, (Origin.REVIEW,)) == SpendingTotal(0.0, 10)
    assert await sessions.total_spending(NOW + day, NOW + 2 * day, both) == SpendingTotal()


async def test_many_appends_at_once_to_one_session_let_one_win_and_tell_the_others(
    sessions: Sessions,
) -> None:
    transcript = await begin(sessions, A)
    rivals = [said(f"rival {number}", on=transcript) for number in range(20)]
    results = await asyncio.gather(
        *(sessions.append(A, rival.nodes[3:], SPENT) for rival in rivals), return_exceptions=True
    )
    assert [type(result) for result in results].count(Conflict) == 19
    winner = rivals[results.index(None)]
    assert facts((await sessions.load(A)).transcript.nodes) == facts(winner.nodes)
    assert await sessions.spending() == (SPENT,)


async def test_steps_of_many_conversations_at_once_are_each_stored_or_refused_by_themselves(
    sessions: Sessions,
) -> None:
    names = [SessionId(f"many-{number:02}") for number in range(24)]
    begun = [await begin(sessions, name) for name in names]
    steps = [said(f"{number}", on=each) for number, each in enumerate(begun)]
    late = {
        5: said("too late", on=begun[5].upto(2)).nodes[2:],
        6: said("x", on=said("y", on=begun[6])).nodes[4:],
    }
    calls = [
        sessions.append(name, late.get(at, step.nodes[3:]), SPENT if at % 2 else None)
        for at, (name, step) in enumerate(zip(names, steps, strict=True))
    ]
    calls[11:11] = [sessions.append(A, steps[0].nodes[3:], SPENT)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    refused = {5: Conflict, 6: Conflict, 11: Missing}
    assert {at: type(each) for at, each in enumerate(results) if each} == refused
    for at, (name, step) in enumerate(zip(names, steps, strict=True)):
        kept = begun[at] if at in late else step
        assert facts((await sessions.load(name)).transcript.nodes) == facts(kept.nodes)
        assert await sessions.spending(name) == ((SPENT,) if at % 2 and at not in late else ())


async def test_whatever_was_handed_over_is_there_although_its_caller_was_cancelled(
    sessions: Sessions,
) -> None:
    transcript = await begin(sessions, A)
    longer = said("one", "two", on=transcript)
    task = asyncio.create_task(sessions.append(A, longer.nodes[3:4]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await sessions.append(A, longer.nodes[4:])
    assert facts((await sessions.load(A)).transcript.nodes) == facts(longer.nodes)


# Laws: whatever is done to the reference and to another store, both answer alike.

TIMES = st.datetimes(timezones=st.just(UTC))
ANY_PART = st.one_of(
    st.builds(Text, st.text()),
    st.builds(Thinking, st.text(), st.text(), st.text()),
    st.builds(ToolCall, st.text(), st.text(), st.text()),
    st.builds(ToolResult, st.text(), st.text(), st.booleans()),
)
ANY_MESSAGE = st.builds(Message, st.sampled_from(Role), st.lists(ANY_PART, max_size=3).map(tuple))


@dataclass(frozen=True)
class Step:
    """Something to do with the session of number `pick`; `wrong` makes it out of date or out of place."""

    kind: str
    pick: int
    at: int
    words: list[str]
    prefix: Prefix
    wrong: str


STEPS = st.builds(
    Step,
    kind=st.sampled_from(
        ["start", "branch", "branch", "append", "append", "move", "delete", "rename", "find"]
    ),
    pick=st.integers(0, 5),
    at=st.integers(0, 5),
    # Few words, so that contents meet in several sessions.
    words=st.lists(st.sampled_from(["x", "y", " "]), max_size=3),
    prefix=st.sampled_from([PREFIX, OTHER]),
    wrong=st.sampled_from(["", "", "", "", "", "id", "nodes", "prefix"]),
)


def call(step: Step, fresh: SessionId, known: Mapping[SessionId, StoredSession]) -> Callable[[Sessions], Any]:
    """The step as a call, built from what the reference knows."""
    ids = list(known)
    id = ids[step.pick % len(ids)] if ids and step.wrong != "id" else SessionId("nobody")
    now = known[id].transcript if id in known else said("x")
    prefix = step.prefix
    match step.kind:
        case "start":
            new = ids[0] if ids and step.wrong == "id" else fresh
            nodes = said(*step.words, prefix=PREFIX if step.wrong == "prefix" else prefix).nodes
            nodes = nodes[1:] if step.wrong == "nodes" else nodes
            return lambda store: store.start(Header(new, NOW), prefix, nodes)
        case "branch":
            shared = step.at % (len(now) + 1)
            prefix = known[id].prefix if shared and id in known and step.wrong != "prefix" else prefix
            base = now.upto(shared) if shared else Transcript(prefix.digest)
            nodes = said(*step.words, on=base).nodes[shared + (step.wrong == "nodes") :]
            origin = Origin.REVIEW if step.pick % 2 else Origin.USER
            header = Header(fresh, NOW, origin=origin, parent=id, shared=shared)
            return lambda store: store.start(header, prefix, nodes)
        case "append":
            base = now.upto(len(now) - 1) if step.wrong == "nodes" else now
            nodes = said(*step.words, on=base).nodes[len(base) :]
            due = BOTH if step.pick % 2 else NOTHING
            counts = tally(due, "due") if step.at % 3 else ()
            return lambda store: store.append(id, nodes, SPENT if step.at % 2 else None, counts)
        case "move":
            cut = now.upto(len(now) - 1) if step.wrong == "nodes" else now
            moved = cut.rooted(PREFIX.digest if step.wrong == "prefix" else prefix.digest)
            return lambda store: store.move(id, prefix, moved)
        case "delete":
            return lambda store: store.delete(id)
        case "rename":
            return lambda store: store.rename(id, "".join(step.words))
    return lambda store: store.find(f"s{step.at}"[: 1 + step.pick])


async def outcome(store: Sessions, call: Callable[[Sessions], Any]) -> Any:
    try:
        return await call(store)
    except StoreError as error:
        return type(error).__name__, str(error)


async def view(store: Sessions) -> tuple[Any, ...]:
    summaries = await store.list(origin=None)
    stored = [await store.load(each.header.id) for each in summaries]
    shown = [
        (each.header, each.prefix, facts(each.transcript.nodes), each.transcript.shared) for each in stored
    ]
    return summaries, shown, await store.spending()


def rows(path: Path, query: str) -> list[Any]:
    connection = apsw.Connection(str(path))
    try:
        return [value for (value,) in connection.execute(query)]
    finally:
        connection.close()


async def compare(
    kinds: Sequence[Stores], steps: Sequence[Step], contents_of: Callable[[], Sequence[str]]
) -> None:
    """Do the same to all of them, then delete all. `contents_of` are the contents that one of them keeps."""
    reference, *others = [stores.sessions for stores in kinds]
    for sessions in (reference, *others):
        await begin(sessions, A)
        await branch(sessions, B, A, 2, "x")
    for number, step in enumerate(steps):
        ids = [each.header.id for each in await reference.list(origin=None)]
        known = {id: await reference.load(id) for id in ids}
        made = call(step, SessionId(f"s{number}"), known)
        expected = await outcome(reference, made)
        event(f"{step.kind}: {expected[0] if isinstance(expected, tuple) else 'done'}")
        seen = await view(reference)
        for store in others:
            assert await outcome(store, made) == expected
            assert await view(store) == seen
        contents = {node[5] for _, _, nodes, _ in seen[1] for node in nodes}
        assert set(contents_of()) == contents
    for store in others:
        while left := await store.list(origin=None):
            await store.delete(left[0].header.id)
        assert await store.spending() == await reference.spending()


async def agree(folder: Path, steps: Sequence[Step]) -> None:
    path = folder / "hone.db"
    async with all_kinds(folder) as kinds:
        await compare(kinds, steps, lambda: rows(path, "SELECT digest FROM contents"))
    for table in ("sessions", "nodes", "chains", "contents", "prefixes", "counts"):
        assert rows(path, f"SELECT count(*) FROM {table}") == [0], table


@fewer(30)
@given(st.lists(STEPS, min_size=5, max_size=30))
def test_sqlite_and_the_reference_agree_over_any_history_and_nothing_is_left_behind(
    steps: list[Step],
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(agree(Path(folder), steps))


@fewer(50)
@given(st.lists(st.tuples(ANY_MESSAGE, st.sampled_from(Trust), TIMES), min_size=1, max_size=5))
def test_any_message_at_any_time_comes_back_from_sqlite(said: list[tuple[Message, Trust, datetime]]) -> None:
    transcript = Transcript(PREFIX.digest)
    for message, trust, at in said:
        transcript = transcript.then(message, trust, at)

    async def round_trip(path: Path) -> Transcript:
        store = OpenedSessions.open(path)
        await store.start(Header(A, NOW), PREFIX, transcript.nodes)
        stored = await store.load(A)
        await store.close()
        return stored.transcript

    with TemporaryDirectory() as folder:
        assert facts(asyncio.run(round_trip(Path(folder) / "s.db")).nodes) == facts(transcript.nodes)
