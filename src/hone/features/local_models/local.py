"""A model on this machine: start the engine in a separate process and connect the chat adapter to it."""

import asyncio
import json
import os
import secrets
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Rejected, Unreachable
from hone.core.model import Model, Piece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.value import replace
from hone.features.local_models.weights import ModelFiles
from hone.models.endpoint import Endpoint, excerpt
from hone.models.http import LOCAL, Http
from hone.models.openai import OpenAIChat

PROVIDER = "local"
BOUNDS = replace(LOCAL, settable=False)
"""A busy machine processes a few tokens per second."""
STARTING, ENDING = 120.0, 5.0
_ENGINE = str(Path(__file__).with_name("engine.py"))
_PASSED = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "SYSTEMROOT", "TMPDIR")
"""The engine's environment variables: none of them is a key."""


class _Running(Struct, frozen=True):
    process: Process
    chat: Model


class Local:
    """Starts with the first request, restarts after the engine has died, and ends with `close`."""

    def __init__(self, files: ModelFiles, clock: Clock) -> None:
        self.files = files
        self._clock = clock
        self._http = Http(clock, BOUNDS)
        self._starting = asyncio.Lock()
        self._running: _Running | None = None

    @property
    def pid(self) -> int | None:
        return self._running.process.pid if self._running else None

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        running = await self._serving()
        try:
            async with aclosing(running.chat.stream(prefix, transcript)) as pieces:
                async for piece in pieces:
                    yield piece
        except Unreachable:
            await self._end(running.process)
            raise

    async def close(self) -> None:
        running, self._running = self._running, None
        if running:
            await self._end(running.process)
        await self._http.close()

    async def _serving(self) -> _Running:
        async with self._starting:
            if self._running is None or self._running.process.returncode is not None:
                self._running = await self._start()
            return self._running

    async def _start(self) -> _Running:
        """Start the engine in a separate session, so that Ctrl-C at the terminal stops the answer and not the
        engine."""
        key = secrets.token_hex(16)
        with tempfile.TemporaryFile() as complaints:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", _ENGINE),
                env={name: os.environ[name] for name in _PASSED if name in os.environ},
                stdin=PIPE,
                stdout=PIPE,
                stderr=complaints,
                start_new_session=True,
            )
            try:
                address = await self._hand_over(process, key)
            except BaseException:
                await self._end(process)
                raise
            if not address:
                await self._end(process)
                complaints.seek(0)
                raise Rejected(f"The local engine did not start: {_last(complaints.read(), key)}.")
        endpoint = Endpoint(PROVIDER, f"{address}/v1/chat/completions", {"authorization": f"Bearer {key}"})
        return _Running(process, OpenAIChat(self._http, self._clock, endpoint))

    async def _hand_over(self, process: Process, key: str) -> str:
        """Tell the engine what to serve. Return its address, or nothing if it died."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._order(key))
        try:
            async with self._clock.timeout(STARTING):
                return (await process.stdout.readline()).decode().strip()
        except TimeoutError:
            raise Rejected(f"The local engine was not ready after {STARTING:.0f} seconds.") from None

    def _order(self, key: str) -> bytes:
        files = self.files
        order = {
            "weights": str(files.weights),
            "window": files.window,
            "engine": str(files.engine) if files.engine else "",
            "threads": files.threads,
            "key": key,
        }
        return json.dumps(order).encode() + b"\n"

    async def _end(self, process: Process) -> None:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with self._clock.timeout(ENDING):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _last(said: bytes, key: str) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return excerpt(lines[-1], (key,)) if lines else "it did not say why"
