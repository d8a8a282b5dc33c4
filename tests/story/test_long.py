"""A5, A8: a conversation far longer than the model's window goes on, and nothing that was said is gone."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import pytest

from hone import Hone
from hone.core.messages import Message, Role, ToolCall, assistant
from hone.core.turn import Origin, Stop
from hone.models.fake_provider import FakeProvider
from hone.settings import Settings
from hone.tools.todo import todos
from tests.conftest import Figures, Tier
from tests.doubles.requests import problems
from tests.wire.test_fork import FORMATS, name_model, point

WINDOW = 32_000
QUESTION = "about to be shortened"
ITEMS = json.dumps({"items": [{"text": "keep going", "state": "doing"}]})


def worker(calls: int, summary: Callable[[], str]) -> Callable[[Sequence[Message]], Message]:
    """Makes so many calls a turn; asked for notes, it gives what `summary` says."""

    def speak(messages: Sequence[Message]) -> Message:
        if QUESTION in messages[-1].text:
            return assistant(summary())
        number = len(messages)
        last = next((each.text for each in reversed(messages) if each.role is Role.ASSISTANT), "")
        step = int(last.removeprefix("Step ")) + 1 if last.startswith("Step ") else 0
        if "begin" in messages[-1].text:
            return assistant("Step 0", ToolCall(f"todo{number}", "todo", ITEMS))
        if step > calls:
            return assistant(f"Done after {calls} calls.")
        arguments = json.dumps({"path": "big.txt", "offset": step + 1})
        return assistant(f"Step {step}", ToolCall(f"r{number}", "read_file", arguments))

    return speak


def tokens(body: bytes) -> int:
    return len(body) // 4


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_long_conversation_never_overflows_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path, wire: str, tier: Tier, figures: Figures
) -> None:
    (tmp_path / "big.txt").write_text("\n".join(f"row {n} " + "x" * 180 for n in range(60)))
    turns = tier.size(short=12, full=100)
    async with FakeProvider(worker(10, lambda: "Notes: rows were read."), recall=4) as stage:
        point(monkeypatch, wire, stage.url)
        settings = Settings(model=name_model(wire), window=WINDOW)
        async with Hone(folder=tmp_path, settings=settings) as hone:
            session = await hone.session()
            await session.send("begin: the secret word is zanzibar-0")
            for number in range(1, turns):
                turn = await session.send(f"again: the secret word is zanzibar-{number}")
                assert turn.stop is Stop.ANSWERED, turn.error
            assert todos(session.transcript)[0].text == "keep going"
            stored = await hone.sessions.load(session.id)
            forks = await hone.sessions.list(None, Origin.COMPACT)
    assert stage.invalid == []
    assert [found for body in stage.bodies for found in problems(wire, body)] == []  # type: ignore[arg-type]
    most = max(map(tokens, stage.bodies))
    assert most < WINDOW
    assert stored.transcript.head == session.transcript.head
    assert forks
    connection = apsw.Connection(str(home / "hone.db"))
    kept = [json.loads(body) for (body,) in connection.execute("SELECT body FROM contents")]
    connection.close()
    words = json.dumps(kept)
    assert all(f"zanzibar-{number}" in words for number in range(turns))
    done = f"{turns} turns, {len(stage.bodies)} calls, {len(forks)} times shortened"
    figures(f"a window of {WINDOW} tokens, {wire}: {done}, at most {most} tokens sent")


async def test_a_summariser_that_fails_does_not_end_the_conversation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "big.txt").write_text("\n".join("x" * 180 for _ in range(60)))
    async with FakeProvider(worker(30, lambda: " ")) as stage:
        point(monkeypatch, "openai", stage.url)
        settings = Settings(model="openai/scripted", window=WINDOW, tries=1)
        async with Hone(folder=tmp_path, settings=settings) as hone:
            session = await hone.session()
            for number in range(4):
                turn = await session.send(f"begin {number}")
                assert turn.stop is Stop.ANSWERED, turn.error
            assert "The user said, in order:" in list(session.transcript)[1].text
    assert stage.invalid == []


async def test_an_overflow_that_the_provider_reports_makes_room_and_the_turn_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The estimate says there is room; the provider says there is none."""
    (tmp_path / "big.txt").write_text("\n".join("x" * 180 for _ in range(60)))
    async with FakeProvider(worker(6, lambda: "Notes.")) as stage:
        stage.fault = lambda number: "overflow" if number == 20 else None
        point(monkeypatch, "openai", stage.url)
        async with Hone(folder=tmp_path) as hone:
            session = await hone.session()
            for number in range(4):
                turn = await session.send(f"begin {number}")
                assert turn.stop is Stop.ANSWERED, turn.error
            assert "Notes." in list(session.transcript)[1].text
    assert stage.invalid == []


async def test_compact_by_hand_keeps_the_focus_and_says_when_there_is_too_little(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with FakeProvider(worker(0, lambda: "Notes by hand.")) as stage:
        point(monkeypatch, "anthropic", stage.url)
        async with Hone(
            folder=tmp_path, settings=Settings(model="anthropic/scripted", window=100_000)
        ) as hone:
            session = await hone.session()
            await session.send("hello")
            assert not await session.compact()
            for number in range(8):
                await session.send(f"{number} " + "word " * 200)
            assert await session.compact("the numbers")
            assert b"Pay special attention to: the numbers" in stage.bodies[-1]
            turn = await session.send("go on")
    assert turn.stop is Stop.ANSWERED
    assert stage.invalid == []
