"""B6 over any history of starts, appends, branches, moves and compressions: exactly the leaves, each once."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.jobs import Job, Look, Topics
from hone.core.messages import Message, assistant, user
from hone.core.ports import Header, Sessions, StoredSession
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.features.traces.export import Tree, choose, export, gather
from hone.features.traces.restore import RestoreState, compare, read, restore
from hone.runtime.export import Clean
from tests.given import NOON, begun, conversations, texts, trusts
from tests.reference.sessions import InMemorySessions

PREFIXES = [Prefix(f"scripted/{name}", "You help.", ('{"name":"read"}',)) for name in ("one", "two")]
NUMBERS = st.integers(0, 9)
WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3)
DEEDS = st.one_of(
    st.tuples(st.just("start"), NUMBERS, WORDS, trusts),
    st.tuples(st.just("append"), NUMBERS, WORDS, trusts),
    st.tuples(st.just("branch"), NUMBERS, NUMBERS, st.lists(st.sampled_from("abc"), max_size=2)),
    st.tuples(st.just("review"), NUMBERS, WORDS),
    st.tuples(st.just("move"), NUMBERS, NUMBERS),
    st.tuples(st.just("shorten"), NUMBERS, WORDS),
)
HISTORIES = st.lists(DEEDS, max_size=12).map(lambda deeds: [("start", 0, ["a"], Trust.OWNER), *deeds])

Line = tuple[str, ...]
"""A prefix and the words said under it: a conversation by what it is, without any hash."""


class Past:
    """Does the deeds, and knows by itself every line of words there was."""

    def __init__(self) -> None:
        self.store = InMemorySessions()
        self.lines: set[Line] = set()

    async def live(self, history: Sequence[tuple[Any, ...]]) -> None:
        for number, (deed, *rest) in enumerate(history):
            await getattr(self, deed)(SessionId(f"s{number}"), number, *rest)
        for each in await self.store.list(None, None):
            self.lines.add(line(await self.store.load(each.header.id)))

    async def pick(self, number: int) -> StoredSession:
        found = sorted(each.header.id for each in await self.store.list(None, None))
        return await self.store.load(found[number % len(found)])

    async def start(self, id: SessionId, at: int, which: int, words: list[str], trust: Trust) -> None:
        prefix = PREFIXES[which % 2]
        said = longer(Transcript(prefix.digest), words, trust, at)
        await self.store.start(Header(id, NOON + timedelta(seconds=at)), prefix, said.nodes)

    async def append(self, _: SessionId, at: int, which: int, words: list[str], trust: Trust) -> None:
        there = await self.pick(which)
        said = longer(there.transcript, words, trust, at)
        await self.store.append(there.header.id, said.nodes[len(there.transcript) :])

    async def branch(self, id: SessionId, at: int, which: int, cut: int, words: list[str]) -> None:
        there = await self.pick(which)
        await self._fork(id, at, there, 1 + cut % len(there.transcript), words, Origin.USER)

    async def review(self, id: SessionId, at: int, which: int, words: list[str]) -> None:
        there = await self.pick(which)
        await self._fork(id, at, there, len(there.transcript), words, Origin.REVIEW)

    async def _fork(
        self, id: SessionId, at: int, there: StoredSession, shared: int, words: list[str], origin: Origin
    ) -> None:
        header = Header(id, NOON + timedelta(seconds=at), "", origin, "", there.header.id, shared)
        said = longer(there.transcript.upto(shared), words, Trust.AGENT, at)
        await self.store.start(header, there.prefix, said.nodes[shared:])

    async def move(self, _: SessionId, __: int, which: int, to: int) -> None:
        there, prefix = await self.pick(which), PREFIXES[to % 2]
        self.lines.add(line(there))
        await self.store.move(there.header.id, prefix, there.transcript.rooted(prefix.digest))

    async def shorten(self, _: SessionId, at: int, which: int, words: list[str]) -> None:
        there = await self.pick(which)
        self.lines.add(line(there))
        short = longer(Transcript(there.prefix.digest), words, Trust.AGENT, at)
        await self.store.shorten(there.header.id, there.transcript.head, short)


def longer(transcript: Transcript, words: Sequence[str], trust: Trust, at: int) -> Transcript:
    for word in words:
        transcript = transcript.then(user(word), trust, NOON + timedelta(seconds=at))
    return transcript


def line(stored: StoredSession) -> Line:
    return (stored.prefix.model, *(message.text for message in stored.transcript))


def outermost(lines: set[Line]) -> set[Line]:
    return {one for one in lines if not any(other[: len(one)] == one for other in lines - {one})}


def spoken(rows: Sequence[dict[str, Any]]) -> list[Line]:
    """The leaves of a file, put together without the code under test."""
    contents: dict[str, str] = {}
    known: dict[str | None, Line] = {}
    leaves = []
    for row in rows:
        if row["kind"] == "content":
            contents[row["digest"]] = "".join(part["text"] for part in row["parts"])
        elif row["kind"] == "leaf":
            so_far = known[row["after"]] if row["after"] else (row["model"],)
            assert len(so_far) == row["shared"] + 1
            for said in row["messages"]:
                so_far = (*so_far, contents[said["content"]])
                known[said["hash"]] = so_far
            leaves.append(so_far)
    return leaves


async def taken(store: Sessions, clean: Clean | None = None) -> Tree:
    return await gather(store, choose(await store.list(None, None)), clean)


def written(tree: Tree) -> list[str]:
    return list(export(tree, redacted=False))


def facts(nodes: Sequence[Node]) -> list[tuple[Any, ...]]:
    return [(node.hash, node.parent, node.trust, node.at, node.encoded) for node in nodes]


@given(HISTORIES)
@example([("start", 0, ["a"], Trust.OWNER), ("review", 0, ["b"]), ("review", 0, ["b"])])
@example([("start", 0, ["a", "b"], Trust.OWNER), ("start", 0, ["a"], Trust.FOREIGN)])
@example([("start", 0, ["a", "b"], Trust.OWNER), ("move", 0, 1), ("move", 0, 0)])
def test_a_file_has_exactly_the_leaves_each_content_once_and_comes_back_as_it_was(
    history: list[tuple[Any, ...]],
) -> None:
    async def whole() -> None:
        past = Past()
        await past.live(history)
        text = written(await taken(past.store))
        rows = [json.loads(each) for each in text]
        leaves, expected = spoken(rows), outermost(past.lines)
        assert sorted(leaves) == sorted(expected)
        event(f"fewer leaves than lines: {len(expected) < len(past.lines)}")
        digests = [row["digest"] for row in rows if row["kind"] != "traces" and row["kind"] != "leaf"]
        nodes = [said["hash"] for row in rows if row["kind"] == "leaf" for said in row["messages"]]
        assert (len(digests), len(nodes)) == (len(set(digests)), len(set(nodes)))

        found, there = read(text), InMemorySessions()
        assert found.faults == []
        steps = await compare(there, found.tree, own=True)
        assert await restore(there, found.tree, steps) == []
        for each in await past.store.list(None, None):
            id = each.header.id
            was, now = await past.store.load(id), await there.load(id)
            assert facts(now.transcript.nodes) == facts(was.transcript.nodes)
            assert now.prefix == was.prefix
            assert now.header in (was.header, replace(was.header, shared=0))
        assert sorted(spoken([json.loads(each) for each in written(await taken(there))])) == sorted(expected)
        again = await compare(there, found.tree, own=True)
        assert {step.state for step in again} == {RestoreState.SAME}

    asyncio.run(whole())


@given(HISTORIES, st.lists(DEEDS, min_size=1, max_size=4))
def test_a_later_file_brings_what_came_since_and_an_earlier_one_nothing(
    history: list[tuple[Any, ...]], more: list[tuple[Any, ...]]
) -> None:
    async def whole() -> None:
        past, there = Past(), InMemorySessions()
        await past.live(history)
        first = read(written(await taken(past.store)))
        await restore(there, first.tree, await compare(there, first.tree, own=True))
        for number, (deed, *rest) in enumerate(more, len(history)):
            await getattr(past, deed)(SessionId(f"s{number}"), number, *rest)
        second = read(written(await taken(past.store)))
        assert await restore(there, second.tree, await compare(there, second.tree, own=True)) == []
        for each in await past.store.list(None, None):
            head = (await past.store.load(each.header.id)).transcript.head
            assert (await there.load(each.header.id)).transcript.head == head
        states = {step.state for step in await compare(there, second.tree)}
        assert states == {RestoreState.SAME}

    asyncio.run(whole())


@given(conversations() | begun(), texts)
def test_every_kind_of_message_survives_and_what_is_cleaned_verifies_like_any_other(
    messages: list[Message], title: str
) -> None:
    async def whole() -> None:
        store = InMemorySessions()
        said = Transcript(PREFIXES[0].digest)
        for message in [*messages, assistant("the secret")]:
            said = said.then(message, Trust.AGENT, NOON)
        await store.start(Header(SessionId("s"), NOON, title), PREFIXES[0], said.nodes)
        exact = read(written(await taken(store)))
        assert exact.faults == []
        assert facts(exact.tree.path(said.head)) == facts(said.nodes)
        assert exact.tree.traces[SessionId("s")].header.title == title

        text = written(await taken(store, lambda text: text.replace("the secret", "[gone]")))
        washed = read(text)
        assert washed.faults == []
        assert said.head not in "".join(text)
        (leaf,) = washed.tree.leaves()
        path = washed.tree.path(leaf)
        assert path[-1].message == assistant("[gone]")
        assert facts(path[:-1]) == facts(said.nodes[:-1])

    asyncio.run(whole())


@given(st.data())
def test_a_file_with_any_bytes_changed_never_brings_other_words_under_an_old_hash(
    data: st.DataObject,
) -> None:
    async def whole() -> None:
        past = Past()
        await past.live(data.draw(HISTORIES))
        text = "\n".join(written(await taken(past.store))).encode()
        top = text.index(b"\n") + 1
        at = data.draw(st.integers(top, len(text)))
        end = min(len(text), at + data.draw(st.integers(0, 30)))
        hurt = text[:at] + data.draw(st.binary(max_size=8)) + text[end:]
        found, there = read(hurt.split(b"\n")), InMemorySessions()
        await restore(there, found.tree, await compare(there, found.tree))
        for each in await there.list(None, None):
            stored = await there.load(each.header.id)
            said = Transcript(stored.prefix.digest)
            for node in stored.transcript.nodes:
                said = said.then(node.message, node.trust, node.at)
            assert facts(said.nodes) == facts(stored.transcript.nodes)
            assert stored.transcript.trust is Trust.FOREIGN
        event(f"faults: {bool(found.faults)}")

    asyncio.run(whole())


HISTORY: list[tuple[Any, ...]] = [
    ("start", 0, ["a", "b"], Trust.OWNER),
    ("review", 0, ["c"]),
    ("append", 0, ["d"], Trust.OWNER),
    ("shorten", 0, ["a", "e"]),
    ("move", 0, 1),
]


async def test_who_was_quicker_stays_as_it_is_and_is_named() -> None:
    past, there = Past(), InMemorySessions()
    await past.live(HISTORY)
    found = read(written(await taken(past.store)))
    steps = await compare(there, found.tree)
    said = longer(Transcript(PREFIXES[0].digest), ["another"], Trust.OWNER, 0)
    await there.start(Header(SessionId("s0"), NOON), PREFIXES[0], said.nodes)
    assert [step.trace.header.id for step in await restore(there, found.tree, steps)] == ["s0"]
    assert facts((await there.load(SessionId("s0"))).transcript.nodes) == facts(said.nodes)
    again = {step.trace.header.id: step.state for step in await compare(there, found.tree)}
    assert again == {"s0": RestoreState.OTHER, "s1": RestoreState.SAME}


class Breaking(InMemorySessions):
    """Its disk is full after so many writes."""

    def __init__(self) -> None:
        super().__init__()
        self.room = 0

    async def start(
        self, header: Header, prefix: Prefix, nodes: Sequence[Node], look: Look | None = None
    ) -> None:
        self.write()
        await super().start(header, prefix, nodes, look)

    async def move(self, session: SessionId, prefix: Prefix, transcript: Transcript) -> None:
        self.write()
        await super().move(session, prefix, transcript)

    async def shorten(
        self,
        session: SessionId,
        after: str,
        transcript: Transcript,
        topics: Topics = frozenset(),
        look: Look | None = None,
    ) -> Job | None:
        self.write()
        return await super().shorten(session, after, transcript, topics, look)

    def write(self) -> None:
        self.room -= 1
        if self.room < 0:
            raise StoreError("The disk is full.")


async def test_an_import_that_breaks_off_leaves_whole_lines_and_the_next_one_ends_it() -> None:
    past = Past()
    await past.live(HISTORY)
    found = read(written(await taken(past.store)))
    whole = {head for trace in found.tree.traces.values() for head, _ in trace.lines}
    for room in range(4):
        there = Breaking()
        there.room = room
        with pytest.raises(StoreError, match=r"^The disk is full\. \d") as caught:
            await restore(there, found.tree, await compare(there, found.tree))
        states = [step.state for step in await compare(there, found.tree)]
        done = states.count(RestoreState.SAME)
        assert f" {done} session{' was' if done == 1 else 's were'} stored before;" in str(caught.value)
        heads = [(await there.load(each.header.id)).transcript.head for each in await there.list(None, None)]
        assert whole.issuperset(heads)
        there.room = 9
        assert await restore(there, found.tree, await compare(there, found.tree)) == []
        assert {step.state for step in await compare(there, found.tree)} == {RestoreState.SAME}
        assert sorted((await taken(there)).leaves()) == sorted(found.tree.leaves())


async def test_parents_that_go_in_circles_and_names_that_are_none_do_no_harm() -> None:
    past, there = Past(), InMemorySessions()
    await past.live(HISTORY[:3])
    rows = [json.loads(each) for each in written(await taken(past.store))]
    for row in rows:
        for each in row.get("sessions", ()):
            each["parent"] = {"s0": "s1", "s1": "s0"}[each["session"]]
    found = read(map(json.dumps, rows))
    assert await restore(there, found.tree, await compare(there, found.tree)) == []
    assert len(await there.list(None, None)) == 2
    for name in ("", "s\u202e", "../s", "s" * 65, "s\n"):
        text = json.dumps(rows[-1]).replace('"session": "s1"', f'"session": {json.dumps(name)}')
        hurt = read([*map(json.dumps, rows[:-1]), text])
        assert len(hurt.faults) == 1
        assert list(hurt.tree.traces) == ["s0"]
