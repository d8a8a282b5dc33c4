"""A command that a program talks to: its standard input and output carry messages, its error output is
kept."""

import asyncio
import os
from pathlib import Path

from hone.core.clock import Clock
from hone.core.waiting import uninterrupted
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import Running
from hone.sandbox.spec import Launch

ERRORS = 16_384
"""The bytes of standard error to keep: the beginning and the end."""
WINDOW = 65_536
"""The most bytes of standard output that wait to be read; then the process waits."""


class PipedProcess(Running):
    """Read from `reader`, write with `write`. `errors` is its error output. The caller must stop it, which
    ends everything it started."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(Output(Spill(Path(os.devnull), ""), ERRORS), clock)
        self.reader = asyncio.StreamReader(WINDOW)
        self._writable = asyncio.Event()
        self._writable.set()
        self._has_input = True

    @classmethod
    async def start(cls, launch: Launch, clock: Clock) -> "PipedProcess":
        """Start the process. Raises OSError or ValueError. An interrupt in between leaves nothing behind."""
        process = cls(clock)
        try:
            await uninterrupted(process.open(launch, b"", talks=True))
        except asyncio.CancelledError:
            await process.stop()
            raise
        return process

    @property
    def errors(self) -> str:
        return self.output.text()

    async def write(self, data: bytes) -> None:
        """Wait until the process accepts input, and send all of it. Raises OSError if it is gone."""
        await self._writable.wait()
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if not isinstance(pipe, asyncio.WriteTransport) or not self._has_input:
            raise BrokenPipeError("the process has ended")
        pipe.write(data)

    async def stop(self) -> None:
        """Stop the process. Its remaining output is not awaited: it may be endless."""
        for pipe in map(self._transport.get_pipe_transport, (0, 1)) if self._transport else ():
            if pipe:
                pipe.close()
        await super().stop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._transport is not None
        pipe = self._transport.get_pipe_transport(1)
        if pipe is not None:
            self.reader.set_transport(pipe)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self.reader.feed_data(data)
        else:
            super().pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.reader.feed_eof()
        elif fd == 0:
            self._has_input = False
            self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()
