"""The only way out of a sandbox without network: a port inside it, at which Hone itself answers."""

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path

PORT = 3128
"""Nothing else listens in a network with a single command."""
_INSIDE = Path(__file__).with_name("listening.py").read_text("utf-8")
_REPORT = 3
"""The descriptor that the supervisor claims, whatever it was before."""


class Gateway:
    """Created before a command, for that command. Close it when the command has started, or has failed to."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        self.channel = _move_up(theirs.detach())

    def wrap(self, python: str, argv: Sequence[str]) -> tuple[str, ...]:
        """Return a command that opens the port and then becomes the given one."""
        bare = os.path.realpath(python)
        return (bare, "-I", "-S", "-c", _INSIDE, str(self.channel), str(PORT), *argv)

    async def accept(self) -> socket.socket:
        """Return the listener that the command opened. Raises OSError if the command ended before that."""
        self._release()
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._ours, arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(self._ours)
        _, files, *_ = socket.recv_fds(self._ours, 1, 1)
        if not files:
            raise ConnectionError("the command ended before it could listen")
        listener = socket.socket(fileno=files[0])
        listener.setblocking(False)
        return listener

    def close(self) -> None:
        self._release()
        self._ours.close()

    def _release(self) -> None:
        """Close our copy of the command's end, so that the command's exit is noticed."""
        if self.channel >= 0:
            os.close(self.channel)
            self.channel = -1


def _move_up(file: int) -> int:
    """Return the same descriptor with a number that the supervisor leaves alone."""
    if file > _REPORT:
        return file
    moved = _move_up(os.dup(file))
    os.close(file)
    return moved
