"""Drives the real command: as a process with pipes, and at a terminal that somebody types at and looks at."""

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyte

from hone.files.documents import FileDocuments
from hone.models.fake_provider import FakeProvider
from hone.runtime.trust import Folders

HONE = (sys.executable, "-m", "hone")
# Makes its standard input the controlling terminal, so that Ctrl-C typed there reaches the command.
AT_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
PATIENCE = 60.0

ENTER, ALT_ENTER, TAB, ESCAPE = b"\r", b"\x1b\r", b"\t", b"\x1b"
UP, DOWN = b"\x1b[A", b"\x1b[B"
CTRL_C, CTRL_D = b"\x03", b"\x04"


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


def environment(home: Path, stage: FakeProvider | None = None, /, **more: str) -> dict[str, str]:
    """Little but a home and, if there is a stage, the way to it in both formats."""
    basis = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HONE_HOME": str(home),
        "HONE_LEARNING": "queue",
        "HONE_LOCAL": "false",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    if stage:
        basis |= {"OPENAI_BASE_URL": f"{stage.url}/v1", "OPENAI_API_KEY": "sk-test"}
        basis |= {"ANTHROPIC_BASE_URL": stage.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
        basis |= {"HONE_MODEL": "openai/scripted"}
    return basis | more


async def hone(
    *arguments: str,
    env: Mapping[str, str],
    piped: bytes | None = None,
    folder: Path | None = None,
    program: Path | None = None,
) -> Ended:
    command = (program,) if program else HONE
    stdin = DEVNULL if piped is None else PIPE
    process = await asyncio.create_subprocess_exec(
        *command, *arguments, env=env, cwd=folder, stdin=stdin, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate(piped)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


class Answering(pyte.HistoryScreen):
    """A screen that says where its cursor is when it is asked, as real ones do."""

    def __init__(self, columns: int, lines: int, master: int) -> None:
        super().__init__(columns, lines, history=100_000, ratio=0.5)
        self._master = master

    def write_process_input(self, data: str) -> None:
        os.write(self._master, data.encode())


class Terminal:
    """What stands on the screen and above it, and the keys. Rows count from the first one ever printed."""

    def __init__(self, master: int, process: Process, size: tuple[int, int]) -> None:
        self._master = master
        self._process = process
        self._news = asyncio.Event()
        self._mark = 0
        self._screen = Answering(*size, master)
        self._stream = pyte.ByteStream(self._screen)
        self.data = b""
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how a pseudo-terminal says that its other side is closed
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
        self.data += data
        self._stream.feed(data)
        self._news.set()

    @property
    def title(self) -> str:
        return self._screen.title

    @property
    def rows(self) -> list[str]:
        """All of them, those that have scrolled away included."""
        columns = range(self._screen.columns)
        above = ["".join(row[at].data for at in columns).rstrip() for row in self._screen.history.top]
        return above + [row.rstrip() for row in self._screen.display]

    @property
    def screen(self) -> str:
        """What can be seen now."""
        return "\n".join(row.rstrip() for row in self._screen.display)

    @property
    def text(self) -> str:
        return "\n".join(self.rows).rstrip("\n")

    @property
    def news(self) -> str:
        """What stands from the last entered message on."""
        return "\n".join(self.rows[self._mark :]).rstrip("\n")

    @property
    def said(self) -> str:
        """What stands from the last entered message up to the prompt."""
        return "\n".join(self.rows[self._mark : self.row]).rstrip("\n")

    @property
    def row(self) -> int:
        """The one the cursor is on."""
        return len(self._screen.history.top) + self._screen.cursor.y

    @property
    def is_waiting(self) -> bool:
        """Whether the cursor stands behind an empty prompt."""
        cursor = self._screen.cursor
        return not cursor.hidden and cursor.x == 2 and self._screen.display[cursor.y].startswith("> ")

    def type(self, keys: str | bytes) -> None:
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def widen(self, columns: int) -> None:
        lines = self._screen.lines
        self._screen.resize(lines, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{what} never came; the screen:\n{self.text}") from None

    async def sees(self, *texts: str) -> str:
        """The news, once all of these stand in them."""
        for text in texts:
            await self.until(partial(self._shows, text), repr(text))
        return self.news

    def _shows(self, text: str) -> bool:
        return text in self.news

    async def prompt(self) -> None:
        await self.until(lambda: self.is_waiting, "the prompt")

    async def write(self, text: str) -> None:
        """Types at the prompt and sees that it stands there."""
        await self.prompt()
        self._mark = self.row
        self.type(text)
        await self.until(lambda: not self.is_waiting, "an echo")

    async def enter(self, text: str) -> None:
        await self.write(text)
        self.type(ENTER)

    async def leave(self) -> int:
        """Ctrl-D at the next prompt; the exit code."""
        await self.prompt()
        self.type(CTRL_D)
        return await self.ended()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def hang_up(self) -> None:
        """Closes the window: the kernel tells what runs in it. The descriptor's number stays taken."""
        asyncio.get_running_loop().remove_reader(self._master)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, self._master)
        os.close(nowhere)

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self._process.wait()

    async def interrupt(self) -> int:
        """Press Ctrl-C at a plain question until the program ends, and return its exit code. Python's input()
        misses a signal that arrives just before it waits: about one in 1,500."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.type(CTRL_C)
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        return await self._process.wait()


@asynccontextmanager
async def terminal(
    *arguments: str,
    env: Mapping[str, str],
    folder: Path | None = None,
    size: tuple[int, int] = (100, 40),
    command: tuple[str, ...] = HONE,
    trusted: bool = True,
) -> AsyncIterator[Terminal]:
    columns, lines = size
    if trusted:
        Folders.of(FileDocuments(Path(env["HONE_HOME"]))).trust(folder or Path.cwd())
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", AT_TERMINAL, *command, *arguments),
        env=env,
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process, size)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)
