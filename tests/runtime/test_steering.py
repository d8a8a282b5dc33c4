"""What the owner says while the agent works: it reaches the model at its next step, stored and in order."""

import json
from pathlib import Path

import pytest

from hone import Hone, tool
from hone.core.errors import StoreError
from hone.core.events import CallStarted, Emit, Event, Steered
from hone.core.messages import Role, assistant
from hone.core.trust import Trust
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted, call, lines
from hone.runtime.session import Session
from hone.runtime.triggers import last_turn

SCRIPT = lines(
    assistant("Looking.", call("look", at="one"), call("look", at="two")), "Understood.", "And again."
)


@tool(effects=set())
async def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def speaking(session: Session, *words: str, on: int = 1) -> tuple[list[Event], Emit]:
    """Say these words when the first call starts."""
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        started = sum(isinstance(each, CallStarted) for each in events)
        if isinstance(event, CallStarted) and started == on:
            for each in words:
                session.steering.say(each)

    return events, emit


async def test_it_follows_the_results_of_the_step_as_the_owners_words(home: Path) -> None:
    async with Hone(home=home, model=Scripted(SCRIPT), tools=[look]) as hone:
        session = await hone.session()
        events, emit = speaking(session, "the blue one", "and\x1b hurry")
        turn = await session.send("look around", emit)
        stored = await hone.sessions.load(session.id)
    said = [(node.message.role, node.message.text, node.trust) for node in stored.transcript.nodes]
    assert [each[0] for each in said[1:]] == [
        *(Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER, Role.USER, Role.ASSISTANT)
    ]
    assert said[4:6] == [
        (Role.USER, "the blue one", Trust.OWNER),
        (Role.USER, "and\\x1b hurry", Trust.OWNER),
    ]
    assert [each.text for each in events if isinstance(each, Steered)] == ["the blue one", "and\\x1b hurry"]
    assert (turn.stop, session.steering.waiting) == (Stop.ANSWERED, ())
    assert len(last_turn(stored.transcript)) == 6, "the whole turn counts as one"


async def test_what_comes_too_late_is_given_back(home: Path) -> None:
    async with Hone(home=home, model=Scripted(lines("Done.", "Again."))) as hone:
        session = await hone.session()
        await session.send("hello", lambda _: session.steering.say("too late") if not late(session) else None)
        assert session.steering.withdraw() == ["too late"]
        assert session.steering.withdraw() == []
        assert len(session.transcript) == 2


def late(session: Session) -> bool:
    return bool(session.steering.waiting)


async def test_what_cannot_be_stored_waits_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Hone(home=home, model=Scripted(SCRIPT), tools=[look]) as hone:
        session = await hone.session()
        append = hone.sessions.append

        async def full(id: object, nodes: object, *rest: object) -> object:
            if any(node.message.text == "the blue one" for node in nodes):  # type: ignore[attr-defined]
                raise StoreError("The disk is full.")
            return await append(id, nodes, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(hone.sessions, "append", full)
        _, emit = speaking(session, "the blue one")
        turn = await session.send("look around", emit)
        assert (turn.stop, session.steering.withdraw()) == (Stop.FAILED, ["the blue one"])


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
async def test_every_request_begins_with_the_bytes_of_the_one_before(
    home: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """Law B2: what is said in the middle of a turn is appended."""
    async with FakeProvider(SCRIPT) as stage:
        for name, value in {
            "OPENAI_BASE_URL": f"{stage.url}/v1",
            "OPENAI_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": stage.url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
        }.items():
            monkeypatch.setenv(name, value)
        async with Hone(home=home, model=model, tools=[look], learning="off") as hone:
            session = await hone.session()
            _, emit = speaking(session, "the blue one")
            await session.send("look around", emit)
            await session.send("more")
        assert stage.invalid == []
        first, second, third = map(json.loads, stage.bodies)
    for shorter, longer in ((first, second), (second, third)):
        kept = len(shorter["messages"])
        assert strip(longer["messages"][:kept]) == strip(shorter["messages"])
        assert {**longer, "messages": ()} == {**shorter, "messages": ()}
    assert "the blue one" in json.dumps(second["messages"][-1])


def strip(messages: list[dict[str, object]]) -> str:
    """Without the marks that tell a provider where to cache."""
    return json.dumps(messages).replace(', "cache_control": {"type": "ephemeral"}', "")
