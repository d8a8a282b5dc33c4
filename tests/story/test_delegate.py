"""A9: children work side by side with fewer rights, their words are worth no more than what they read."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from hone import Hone
from hone.core.events import Event, Notice
from hone.core.messages import Message, Role, ToolCall, assistant
from hone.core.permit import Effect
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop
from hone.models.scripted import Scripted
from hone.tools.delegate import delegate_tool
from tests.rig import Puppet, faults
from tests.test_loop import brings

TASKS = ["count the stars", "count the stones", "delegate further"]


def calls(messages: Sequence[Message]) -> Message:
    """The parent gives three tasks; a child looks once, or tries what it may not."""
    if messages[0].text == "go":
        if len(messages) == 1:
            return assistant(ToolCall("d", "delegate", json.dumps({"tasks": TASKS})))
        return assistant("All back.")
    if messages[-1].role is Role.TOOL:
        return assistant(f"{messages[0].text}: {messages[-1].result.text}")  # type: ignore[union-attr]
    if messages[0].text == TASKS[2]:
        return assistant(ToolCall("x", "delegate", '{"tasks": ["more"]}'))
    return assistant(ToolCall("l", "look", "{}"))


@pytest.mark.parametrize(
    ("look", "label"), [(Trust.LOCAL, Trust.LOCAL), (Trust.FOREIGN, Trust.FOREIGN)], ids=["clean", "foul"]
)
async def test_children_report_back_and_cannot_have_children(
    tmp_path: Path, look: Trust, label: Trust
) -> None:
    events: list[Event] = []
    tools = [delegate_tool(), Puppet("look", frozenset({Effect.READ}), readonly=True, act=brings(look))]
    async with Hone(model=Scripted(calls), folder=tmp_path, tools=tools) as hone:
        session = await hone.session()
        turn = await session.send("go", events.append)
        children = await hone.sessions.list(None, Origin.DELEGATE)
        stored = [await hone.sessions.load(child.header.id) for child in children]
    result = turn.nodes[1].message.result
    assert result is not None
    assert "count the stars: data" in result.text
    assert "delegate is not permitted here" in result.text
    assert turn.nodes[1].trust is label
    assert {each.header.parent for each in stored} == {session.id}
    assert {each.prefix.digest for each in stored} == {session.agent.prefix.digest}
    assert all(each.transcript.nodes[0].trust is Trust.AGENT for each in stored)
    assert [fault for each in stored for fault in faults(list(each.transcript))] == []
    said = {event.text for event in events if isinstance(event, Notice)}
    assert {"helper 1 of 3: look", "helper 2 of 3: look", "helper 3 of 3: delegate"} <= said


async def test_an_interrupt_stops_the_children_and_leaves_every_history_valid(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def wait(call: ToolCall) -> object:
        waiting.set()
        return await asyncio.Event().wait()

    tools = [delegate_tool(), Puppet("look", readonly=True, act=wait)]  # type: ignore[arg-type]
    async with Hone(model=Scripted(calls), folder=tmp_path, tools=tools) as hone:
        session = await hone.session()
        sending = asyncio.create_task(session.send("go"))
        await waiting.wait()
        session.cancel()
        turn = await sending
        children = await hone.sessions.list(None, Origin.DELEGATE)
        stored = [await hone.sessions.load(child.header.id) for child in children]
        assert turn.stop is Stop.INTERRUPTED
        assert stored
        assert [fault for each in stored for fault in faults(list(each.transcript))] == []
        assert faults(list(session.transcript)) == []
        assert len(asyncio.all_tasks()) == 1


async def test_a_child_of_a_parent_that_read_foreign_words_is_spoiled_from_its_first_word(
    tmp_path: Path,
) -> None:
    def speak(messages: Sequence[Message]) -> Message:
        if messages[0].text == "go":
            replies = [ToolCall("f", "fetch", "{}"), ToolCall("d", "delegate", '{"tasks": ["look"]}')]
            said = sum(message.role is Role.ASSISTANT for message in messages)
            return assistant(replies[said]) if said < 2 else assistant("done")
        return assistant("seen") if len(messages) > 1 else assistant(ToolCall("l", "look", "{}"))

    tools = [
        delegate_tool(),
        Puppet("look", frozenset({Effect.READ}), act=brings(Trust.LOCAL)),
        Puppet("fetch", frozenset({Effect.NETWORK}), act=brings(Trust.FOREIGN)),
    ]
    async with Hone(model=Scripted(speak), folder=tmp_path, tools=tools) as hone:
        turn = await hone.run("go")
        (child,) = await hone.sessions.list(None, Origin.DELEGATE)
        nodes = (await hone.sessions.load(child.header.id)).transcript.nodes
    assert turn.text == "done"
    assert {node.trust for node in nodes} == {Trust.FOREIGN}
