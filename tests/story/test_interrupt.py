"""A6 with real processes: an interrupt leaves nothing running, a valid history, and a next turn."""

import asyncio
import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from hone import Hone
from hone.core.events import Event, Heard
from hone.core.messages import Message, Role, assistant, user
from hone.core.model import TextPiece
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.settings import Settings
from tests.conftest import requires
from tests.rig import faults
from tests.wire.test_fork import FORMATS, name_model, point

CHILDREN = (
    "trap '' TERM; (setsid sleep {mark} &) ; sleep {mark} & bash -c 'sleep {mark} & wait' & "
    "echo ready > {fifo}; wait"
)


def running(mark: str) -> list[str]:
    """The processes of this machine with the mark among their arguments."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # gone by now
            continue
        if mark.encode() in arguments:
            found.append(process.name)
    return found


def wait_for(mark: str) -> None:
    """Return when one of them runs: forked children are not yet what they are called on a busy machine."""
    until = time.monotonic() + 60
    while not running(mark):
        assert time.monotonic() < until, "the command did not start"


@pytest.mark.parametrize(
    ("through", "wire"),
    [
        pytest.param(through, wire, marks=() if row == column else pytest.mark.long)
        for row, through in enumerate(["terminal", "delegate", "background"])
        for column, wire in enumerate(FORMATS)
    ],
)
async def test_a_command_with_children_is_gone_after_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str, through: str
) -> None:
    requires("bwrap")
    mark, fifo = f"9{uuid.uuid4().int % 10**9}", tmp_path / "fifo"
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    tmp_path.chmod(0o777)
    command = call("terminal", command=CHILDREN.format(mark=mark, fifo=fifo), timeout=3000)
    behind = call("terminal", command=CHILDREN.format(mark=mark, fifo=fifo), background=True)
    work = {"terminal": [command], "delegate": [call("delegate", tasks=["go"])], "background": [behind]}

    def speak(messages: Sequence[Message]) -> Message:
        last = messages[-1]
        if last.role is Role.USER and last.text in ("begin", "go"):
            return assistant(*(work[through] if last.text == "begin" else [command]))
        if through == "background" and last.role is Role.TOOL:
            return assistant(call("terminal", command=f"sleep {mark}", timeout=3000))
        return assistant("Here I am.")

    async with FakeProvider(speak) as stage:
        point(monkeypatch, wire, stage.url)
        async with Hone(folder=tmp_path, settings=Settings(model=name_model(wire))) as hone:
            session = await hone.session()
            sending = asyncio.create_task(session.send("begin"))
            assert await asyncio.to_thread(fifo.read_text) == "ready\n"
            await asyncio.to_thread(wait_for, mark)
            session.cancel()
            turn = await sending
            assert turn.stop is Stop.INTERRUPTED
            assert running(mark) == [] or through == "background"
            assert faults(list(session.transcript)) == []
            again = await session.send("are you there?")
            assert (again.stop, again.text) == (Stop.ANSWERED, "Here I am.")
        assert running(mark) == []
        assert stage.invalid == []


@pytest.mark.parametrize("wire", FORMATS)
async def test_a_stream_that_is_interrupted_keeps_what_was_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wire: str
) -> None:
    words = " ".join(f"word{number}" for number in range(5_000))

    def speak(messages: Sequence[Message]) -> Message:
        return assistant(words if messages[-1] == user("begin") else "Here I am.")

    async with FakeProvider(speak, pace=0.001) as stage:
        point(monkeypatch, wire, stage.url)
        async with Hone(folder=tmp_path) as hone:
            session, seen = await hone.session(), asyncio.Event()

            def look(event: Event) -> None:
                if isinstance(event, TextPiece):
                    seen.set()

            sending = asyncio.create_task(session.send("begin", look))
            await seen.wait()
            session.cancel()
            turn = await sending
            assert turn.stop is Stop.INTERRUPTED
            assert turn.text.startswith("word0")
            assert turn.text.endswith("(cut short: interrupted)")
            stage.pace = 0.0
            assert (await session.send("again")).text == "Here I am."
        assert stage.invalid == []


async def test_an_interrupt_before_the_model_was_asked_keeps_the_words_and_asks_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with FakeProvider(lambda _: assistant("Here I am.")) as stage:
        point(monkeypatch, "openai", stage.url)
        async with Hone(folder=tmp_path) as hone:
            session = await hone.session()

            def stop(event: Event) -> None:
                if isinstance(event, Heard):
                    session.cancel()

            turn = await session.send("begin", stop)
            assert (turn.stop, len(stage.requests)) == (Stop.INTERRUPTED, 0)
            assert [message.role for message in session.transcript][:1] == [Role.USER]
            assert faults(list(session.transcript)) == []
            assert (await session.send("again")).text == "Here I am."
        assert stage.invalid == []


@pytest.mark.parametrize("who", ["session", "caller", "both", "timeout"])
async def test_a_turn_ends_in_order_whoever_cancels_it_and_only_the_callers_own_cancel_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, who: str
) -> None:
    words = " ".join(f"word{number}" for number in range(5_000))

    def speak(messages: Sequence[Message]) -> Message:
        return assistant(words if messages[-1] == user("begin") else "Here I am.")

    async with FakeProvider(speak, pace=0.001) as stage:
        point(monkeypatch, "openai", stage.url)
        async with Hone(folder=tmp_path) as hone:
            session, seen = await hone.session(), asyncio.Event()

            def look(event: Event) -> None:
                if isinstance(event, TextPiece):
                    seen.set()

            async def caller() -> tuple[str | None, int]:
                task = asyncio.current_task()
                assert task is not None
                try:
                    async with asyncio.timeout(1.0 if who == "timeout" else None):
                        return (await session.send("begin", look)).stop, task.cancelling()
                except TimeoutError:
                    return "late", task.cancelling()

            sending = asyncio.create_task(caller())
            await seen.wait()
            if who in ("session", "both"):
                session.cancel()
            if who in ("caller", "both"):
                sending.cancel()
            [ended] = await asyncio.gather(sending, return_exceptions=True)
            expected = {"session": (Stop.INTERRUPTED, 0), "timeout": ("late", 0)}
            assert ended == expected[who] if who in expected else isinstance(ended, asyncio.CancelledError)
            stored = await hone.sessions.load(session.id)
            assert list(stored.transcript)[-1].text.endswith("(cut short: interrupted)")
            stage.pace = 0.0
            assert (await session.send("again")).text == "Here I am."
        assert stage.invalid == []
