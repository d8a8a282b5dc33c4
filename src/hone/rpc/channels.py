"""Channels over pipes: a message is a line. A line that is too long ends the connection."""

import asyncio
import os
import sys
from concurrent.futures import CancelledError
from threading import Thread

from hone.rpc.messages import ConnectionLost

MOST = 16 * 1024 * 1024
"""The most bytes of one message."""
CHUNK = 65_536


class LineBuffer:
    """Cuts input into lines. Raises ConnectionLost for a line longer than `most`."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._rest = bytearray()

    def feed(self, arrived: bytes) -> list[bytes]:
        """Return the lines that are complete now, without empty ones."""
        first, *more = arrived.split(b"\n")
        self._rest += first
        lines = []
        if more:
            lines = [bytes(self._rest), *more[:-1]]
            self._rest = bytearray(more[-1])
        if max(map(len, (*lines, self._rest))) > self._most:
            raise ConnectionLost(f"A message is longer than {self._most:,} bytes.")
        return [line for line in lines if line.strip()]


class PipeChannel:
    """Lines over the streams of a process or a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int = MOST) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = LineBuffer(most)
        self._lines: list[bytes] = []

    async def send(self, message: bytes) -> None:
        try:
            self._writer.write(message + b"\n")
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            raise ConnectionLost("The other side has closed the connection.") from error

    async def receive(self) -> bytes:
        while not self._lines:
            try:
                arrived = await self._reader.read(CHUNK)
            except OSError as error:
                raise ConnectionLost("The connection broke.") from error
            if not arrived:
                raise ConnectionLost("The other side has closed the connection.")
            self._lines = self._buffer.feed(arrived)[::-1]
        return self._lines.pop()

    async def close(self) -> None:
        self._writer.close()


class StdioChannel:
    """Lines over this process's own input and output. A thread reads, since the input may be a file. Other
    printed text goes to standard error, so that the output contains only messages."""

    def __init__(self, most: int = MOST) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | ConnectionLost] = asyncio.Queue()
        self._room = asyncio.Semaphore(64)
        self._buffer = LineBuffer(most)
        self._output = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        Thread(target=self._read, daemon=True).start()

    async def send(self, message: bytes) -> None:
        try:
            await asyncio.to_thread(self._write, message + b"\n")
        except OSError as error:
            raise ConnectionLost("The other side has closed the connection.") from error

    async def receive(self) -> bytes:
        found = await self._queue.get()
        self._room.release()
        if isinstance(found, ConnectionLost):
            raise found
        return found

    async def close(self) -> None:
        os.close(self._output)

    def _write(self, message: bytes) -> None:
        rest = memoryview(message)
        while rest:
            rest = rest[os.write(self._output, rest) :]

    def _read(self) -> None:
        """Read below Python's own buffer: its lock would be held when the process ends."""
        try:
            while arrived := os.read(0, CHUNK):
                for line in self._buffer.feed(arrived):
                    if not self._hand_over(line):
                        return
            end = ConnectionLost("The other side has closed the connection.")
        except ConnectionLost as error:
            end = error
        except OSError as error:
            end = ConnectionLost(f"The input cannot be read: {error.strerror}.")
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, end)

    def _hand_over(self, line: bytes) -> bool:
        """Wait until there is room for a line. Return False if the loop has ended."""
        putting = self._put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except (RuntimeError, CancelledError):
            putting.close()
            return False
        return True

    async def _put(self, line: bytes) -> None:
        await self._room.acquire()
        self._queue.put_nowait(line)
