"""Drives the real command: as a process with pipes, and at a terminal that somebody types at."""

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hone.models.stage import Stage

HONE = (sys.executable, "-m", "hone")
# Makes its standard input the controlling terminal, so that Ctrl-C typed there reaches the command.
AT_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
PATIENCE = 60.0

PROMPT, CTRL_C, CTRL_D = "> ", b"\x03", b"\x04"


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


def environment(home: Path, stage: Stage | None = None, /, **more: str) -> dict[str, str]:
    """Little but a home and, if there is a stage, the way to it in both formats."""
    basis = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HONE_HOME": str(home),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }
    if stage:
        basis |= {"OPENAI_BASE_URL": f"{stage.url}/v1", "OPENAI_API_KEY": "sk-test"}
        basis |= {"ANTHROPIC_BASE_URL": stage.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
        basis |= {"HONE_MODEL": "openai/scripted"}
    return basis | more


async def hone(
    *arguments: str, env: Mapping[str, str], piped: bytes | None = None, folder: Path | None = None
) -> Ended:
    stdin = DEVNULL if piped is None else PIPE
    process = await asyncio.create_subprocess_exec(
        *HONE, *arguments, env=env, cwd=folder, stdin=stdin, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(piped)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


class Terminal:
    """The screen so far, and the keys. `wait_for` reads on from where the last one ended."""

    def __init__(self, master: int, process: Process) -> None:
        self._master = master
        self._process = process
        self._news = asyncio.Event()
        self._seen = 0
        self._data = b""
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def screen(self) -> str:
        return self._data.decode("utf-8", "replace").replace("\r\n", "\n")

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how a pseudo-terminal says that its other side is closed
            data = b""
        self._data += data
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self._news.set()

    def type(self, keys: str | bytes) -> None:
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    async def wait_for(self, text: str) -> str:
        """The screen from the last found text to this one."""
        try:
            async with asyncio.timeout(PATIENCE):
                while (found := self.screen.find(text, self._seen)) < 0:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} never came; the screen:\n{self.screen[self._seen :]}") from None
        start, self._seen = self._seen, found + len(text)
        return self.screen[start : self._seen]

    async def insist(self, keys: bytes, text: str) -> None:
        """Presses keys until the text comes: a signal that falls between the last letter of a prompt and the
        waiting for a key is only noticed with the next one."""
        pressed = 0
        while self.screen.find(text, self._seen) < 0:
            assert pressed < PATIENCE, f"{text!r} never came; the screen:\n{self.screen[self._seen :]}"
            pressed += 1
            self.type(keys)
            with suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    while self.screen.find(text, self._seen) < 0:
                        self._news.clear()
                        await self._news.wait()
        await self.wait_for(text)

    async def enter(self, line: str) -> None:
        await self.wait_for(PROMPT)
        self.type(f"{line}\n")

    async def leave(self) -> int:
        """Ctrl-D at the next prompt; the exit code."""
        await self.wait_for(PROMPT)
        self.type(CTRL_D)
        return await self.ended()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self._process.wait()


@asynccontextmanager
async def terminal(
    *arguments: str, env: Mapping[str, str], folder: Path | None = None
) -> AsyncIterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", AT_TERMINAL, *HONE, *arguments),
        env=env,
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)
