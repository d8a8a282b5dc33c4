"""`!command` in the chat: run a command of the owner's, and show its output while it runs."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hone.cli.context import Interrupts
from hone.core.messages import Attachment
from hone.core.secrets import redact
from hone.core.visible import one_line, visible

KEPT = 60_000
"""The most characters of an output to keep for the conversation, half of them from its end."""
ENDED = 1.0
"""Seconds for which processes that a command started may still print after it has ended."""


class OwnOutput(Struct, frozen=True):
    """What a command printed, and its exit code."""

    command: str
    text: str
    code: int

    def attach(self) -> Attachment:
        """Return it for a message. The content of a command's output is unknown, so it is foreign text."""
        told = f"{redact(cut(self.text))}\n(exit code {self.code})"
        return Attachment(told, f"output of the user's command {one_line(self.command, 200)}", "foreign")


def cut(text: str) -> str:
    """Leave out the middle of a long output."""
    if len(text) <= KEPT:
        return text
    half = KEPT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


async def run_own(
    command: str, folder: Path, interrupts: Interrupts, show: Callable[[str], None]
) -> OwnOutput:
    """Run a command with the owner's shell. Ctrl-C interrupts it; pressed again, it kills it. Raises OSError
    if the shell cannot be started."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    process = await asyncio.create_subprocess_exec(
        *(shell, "-c", command),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )

    def send(number: signal.Signals) -> Callable[[], None]:
        return lambda: _signal(process.pid, number)

    printed: list[str] = []
    with interrupts.heed(send(signal.SIGINT), send(signal.SIGKILL)):
        reading = asyncio.ensure_future(_read(process, show, printed))
        code = await process.wait()
        with suppress(TimeoutError):  # a process that it started holds the pipe
            await asyncio.wait_for(reading, ENDED)
    return OwnOutput(command, "".join(printed), code if code >= 0 else 128 - code)


async def _read(process: asyncio.subprocess.Process, show: Callable[[str], None], printed: list[str]) -> None:
    """Pass on output as it arrives. The middle of an endless output is dropped."""
    assert process.stdout is not None
    kept = 0
    while piece := await process.stdout.read(65_536):
        text = visible(piece.decode("utf-8", "replace"))
        show(text)
        printed.append(text)
        kept += len(text)
        while kept > 4 * KEPT and len(printed) > 2:
            kept -= len(printed.pop(len(printed) // 2))


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process, number)
