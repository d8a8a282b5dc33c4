"""Run a command: capture its output, and when it ends or is stopped, end every process it started.

The supervisor (`sandbox.supervisor`) runs between Hone and the command and holds one end of a pipe. When Hone
closes the other end or dies, the supervisor cleans up.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.waiting import uninterrupted
from hone.sandbox.output import Output
from hone.sandbox.spec import PATH, Launch

GRACE = 0.5
"""Seconds between the request to end and the kill."""
PATIENCE = 10.0
"""Seconds until a supervisor that does not end is abandoned; a process can be stuck in the kernel."""
REPORTED = 65_536
CANNOT = 125
"""The exit code of a command that could not be started."""

_PYTHON = os.path.realpath(sys.executable)
_SOURCES = str(Path(__file__).parents[2])
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from hone.sandbox.supervisor import main; main(sys.argv[2:])"
)


class Ended(Struct, frozen=True):
    """`code` is 128 + n if signal n ended the command; `report` is what it wrote to the report pipe; `notes`
    say what was done about sensitive places."""

    output: str
    code: int
    seconds: float
    timed_out: bool = False
    report: bytes = b""
    notes: tuple[str, ...] = ()


async def run(
    launch: Launch, *, output: Output, clock: Clock, timeout: float, stdin: bytes | None = None
) -> Ended:
    """Raise OSError or ValueError if not even the supervisor can be started."""
    running = Running(output, clock)
    timed_out = False
    try:
        async with clock.timeout(timeout):
            await uninterrupted(running.open(launch, stdin))
            await running.wait()
    except TimeoutError:
        timed_out = True
    finally:
        await running.stop()
    code = CANNOT if running.code is None else running.code
    return Ended(output.text(), code, running.seconds, timed_out, running.report)


async def start(launch: Launch, *, output: Output, clock: Clock) -> "Running":
    """Start a command. The caller must stop it. An interrupt in between leaves nothing behind."""
    running = Running(output, clock)
    try:
        await uninterrupted(running.open(launch, None))
    except asyncio.CancelledError:
        await running.stop()
        raise
    return running


class Running(asyncio.SubprocessProtocol):
    """A started command. Its output and report stay available after it has ended."""

    def __init__(self, output: Output, clock: Clock) -> None:
        self.output = output
        self.report = b""
        self._clock = clock
        self._begun = clock.monotonic()
        self._over: float | None = None
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._lifeline = -1
        self._reports = -1

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._transport.get_returncode() if self._transport and self._gone.done() else None

    @property
    def seconds(self) -> float:
        return (self._clock.monotonic() if self._over is None else self._over) - self._begun

    async def open(self, launch: Launch, stdin: bytes | None, *, talks: bool = False) -> None:
        """Raises OSError. With `talks` the input stays open, and errors come apart from the output."""
        watched, self._lifeline = os.pipe()
        self._reports, report = os.pipe()
        os.set_blocking(self._reports, False)
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *supervisor_command(launch, watched, report),
                stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE if talks else asyncio.subprocess.STDOUT,
                cwd="/",
                env=environment(launch),
                pass_fds=(watched, report, *launch.files),
                start_new_session=True,
            )
        except (OSError, ValueError):
            self._release()
            raise
        finally:
            os.close(watched)
            os.close(report)
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if stdin is not None and not talks and isinstance(pipe, asyncio.WriteTransport):
            pipe.write(stdin)
            pipe.close()

    async def wait(self) -> None:
        await asyncio.shield(self._gone)

    async def stop(self) -> None:
        """Stop, and return when everything it started is gone; an interrupt is delivered after that."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if self._transport:
            await uninterrupted(self._settled(self._transport))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport), "it is a process"
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the supervisor has ended and nobody holds its output any more."""
        self._over = self._clock.monotonic()
        with suppress(BlockingIOError):
            self.report = os.read(self._reports, REPORTED)
        self.output.close()
        self._release()
        if self._transport:
            self._transport.close()
        self._gone.set_result(None)

    async def _settled(self, transport: asyncio.SubprocessTransport) -> None:
        try:
            async with asyncio.timeout(GRACE + PATIENCE):
                await asyncio.shield(self._gone)
        except TimeoutError:
            transport.kill()
            for pipe in map(transport.get_pipe_transport, (1, 2)):  # somebody may hold the other end
                if pipe:
                    pipe.close()
            await asyncio.shield(self._gone)

    def _release(self) -> None:
        for file in (self._lifeline, self._reports):
            if file >= 0:
                os.close(file)
        self._lifeline = self._reports = -1


def supervisor_command(launch: Launch, lifeline: int, report: int) -> list[str]:
    settings = (("grace", str(GRACE)), *launch.settings)
    flat = [text for pair in settings for text in pair]
    head = [_PYTHON, "-I", "-S", "-c", _BOOT, _SOURCES]
    return [*head, str(lifeline), str(report), launch.kind, *flat, "--", *launch.argv]


def environment(launch: Launch) -> dict[str, str]:
    """Return the environment for commands: nothing of Hone's own, which may contain keys."""
    return {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        **dict(launch.env),
        "HOME": f"{launch.tmp}/home",
        "TMPDIR": launch.tmp,
        "TERM": "dumb",
        "PAGER": "cat",
        "USER": "hone",
        "LOGNAME": "hone",
    }
