"""What providers want back comes back: twenty turns over each format, forked and resumed, byte for byte."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from hone import Hone
from hone.core.events import Event, Notice
from hone.core.messages import Message, Part, Role, Thinking, ToolCall, assistant
from hone.core.permit import REVIEW
from hone.core.turn import Origin, Stop
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.returning import SEAL, Rule
from hone.models.scripted import call
from hone.runtime.session import Session
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from tests.conftest import Figures

TURNS = 20
WIRES: dict[str, tuple[str, Rule]] = {
    "responses": ("responses", ""),
    "anthropic": ("anthropic", ""),
    "deepseek": ("openai", "reasoning_content"),
    "openrouter": ("openai", "reasoning_details"),
    "gemini": ("openai", "thought_signature"),
}


def think(messages: Sequence[Message]) -> Message:
    """Each turn reasons, calls two tools at once, reasons again and answers; each word is another one."""
    number = sum(message.role is Role.ASSISTANT for message in messages)
    thought = Thinking(f" Step {number}:\n“é” 你好 {{}} \\ ")
    if messages[-1].role is Role.USER:
        return assistant(
            thought, f"I look ({number}).", call("todo"), call("search_files", pattern=f"x{number}")
        )
    hidden = Thinking("", sealed=f"sealed-{number}") if number % 4 == 1 else thought
    return assistant(hidden, f"Answer {number}.")


def served(stage: FakeProvider, wire: str) -> ProviderSettings:
    format, returns = WIRES[wire]
    return ProviderSettings(
        stage.url if format == "anthropic" else f"{stage.url}/v1", format, returns=returns
    )


def thoughts(body: bytes) -> list[object]:
    """All that a request brings back, in its order."""
    asked = json.loads(body)
    found: list[object] = []
    for item in asked.get("input", asked.get("messages")):
        blocks = item.get("content") if isinstance(item.get("content"), list) else []
        found += [block for block in blocks if "thinking" in block["type"]]
        found += [item] if item.get("type") == "reasoning" else []
        found += [item[name] for name in ("reasoning_content", "reasoning_details") if item.get(name)]
        found += [call["extra_content"] for call in item.get("tool_calls") or () if "extra_content" in call]
    return found


@pytest.mark.parametrize("wire", WIRES)
async def test_reasoning_comes_back_unchanged_over_many_turns_forks_and_resumes(
    wire: str, tmp_path: Path, figures: Figures
) -> None:
    async with FakeProvider(think, returns=WIRES[wire][1]) as stage:
        settings = Settings(model="stage/scripted", providers={"stage": served(stage, wire)})
        identity = ""
        for turn in range(TURNS):
            if turn % 4 == 0:  # another program goes on
                hone = Hone(folder=tmp_path, settings=settings)
                session = await (hone.resume(identity) if identity else hone.session())
                identity = session.id
            done = await session.send(f"turn {turn}")
            assert done.stop is Stop.ANSWERED, done.error
            if turn % 4 == 3:
                fork = await session.fork(REVIEW, Origin.REVIEW).send("what did you learn?")
                assert fork.stop is Stop.ANSWERED, fork.error
                branched = await hone.resume(await hone.branch(session.id, 4))
                assert (await branched.send("another way")).stop is Stop.ANSWERED
                await hone.close()
        returned = thoughts(stage.bodies[-3])
        figures.tally(len(stage.bodies), got_in=len(stage.invalid), note=f"requests refused, {wire}")
        assert stage.invalid == []
    assert len(returned) >= TURNS
    assert len({json.dumps(each) for each in returned}) == len(returned)


@pytest.mark.parametrize("wire", ["responses", "deepseek", "openrouter", "gemini"])
@pytest.mark.parametrize("harm", ["dropped", "changed"])
async def test_the_scripted_server_refuses_what_comes_back_changed_or_not_at_all(
    wire: str, harm: str, tmp_path: Path
) -> None:
    """So that the test above could fail."""
    async with FakeProvider(think, returns=WIRES[wire][1]) as stage:
        settings = Settings(model="stage/scripted", providers={"stage": served(stage, wire)})
        async with Hone(folder=tmp_path, settings=settings) as hone:
            session = await hone.session()
            await session.send("begin")
            await _harm(session, harm)
            turn = await session.send("go on")
        assert turn.stop is not Stop.ANSWERED
        assert "did not come back unchanged" in turn.error


async def _harm(session: Session, harm: str) -> None:
    nodes = tuple(
        replace(
            node,
            message=Message(node.message.role, tuple(_harmed(part, harm) for part in node.message.parts)),
        )
        for node in session.transcript.nodes
    )
    session.transcript = replace(session.transcript, nodes=nodes)


def _harmed(part: Part, harm: str) -> Part:
    if not isinstance(part, Thinking | ToolCall) or not part.origin:
        return part
    if harm == "dropped":
        return replace(part, opaque="", origin="")
    if part.opaque:
        return replace(part, opaque=part.opaque.replace("a", "b").replace("0", "1"))
    return replace(part, text=f"{part.text}.") if isinstance(part, Thinking) else part


def notices(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_change_of_models_leaves_reasoning_out_says_so_once_and_back_brings_it_back(
    wire: str, tmp_path: Path
) -> None:
    other = "deepseek" if wire == "responses" else "responses"
    async with (
        FakeProvider(think, returns=WIRES[wire][1]) as first,
        FakeProvider(think, returns=WIRES[other][1]) as second,
    ):
        providers = {"first": served(first, wire), "second": served(second, other)}
        async with Hone(folder=tmp_path, settings=Settings(model="first/m", providers=providers)) as hone:
            session = await hone.session()
            events: list[Event] = []
            await session.send("begin", events.append)
            assert notices(events) == []
            before = thoughts(first.bodies[-1])
            moved = await hone.resume(session.id, "second/m")
            for words in ("go on", "and on"):
                assert (await moved.send(words, events.append)).stop is Stop.ANSWERED
            (told,) = (line for line in notices(events) if line.startswith("The reasoning in "))
            assert told.endswith("can only go back to the provider it came from; second/m does not get it.")
            assert thoughts(second.bodies[0]) == []
            assert SEAL.encode() not in second.bodies[0]
            back = await hone.resume(session.id, "first/m")
            assert (await back.send("once more", events.append)).stop is Stop.ANSWERED
            assert thoughts(first.bodies[-2])[: len(before)] == before
            assert not any(value in thoughts(first.bodies[-1]) for value in thoughts(second.bodies[-1]))
        assert (first.invalid, second.invalid) == ([], [])
