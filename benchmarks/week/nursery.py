"""Start Hone's commands as real processes without the cost of a start: a process with everything imported
forks for each of them."""

import fcntl
import os
import pickle
import select
import signal
import socket
import sys
import termios
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.week import program
from benchmarks.week.world import WorldClock, open_web
from hone.cli import main as command
from hone.registry import list_commands

LARGEST = 1 << 20
PATIENCE = 60.0


class Order(Struct, frozen=True):
    """What to run: a command of Hone's, or our program if there is no command."""

    arguments: tuple[str, ...]
    environ: Mapping[str, str]
    folder: str
    at_terminal: bool = False
    talk: program.Task | None = None


class Nursery:
    """Fork before any thread is started."""

    def __init__(self, clock: WorldClock) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = os.fork()
        if not self._process:
            self._line.close()
            _forked(lambda: _serve(theirs, clock))
        theirs.close()

    def start(self, order: Order, stdin: int, stdout: int, stderr: int) -> "Child":
        socket.send_fds(self._line, [pickle.dumps(order)], [stdin, stdout, stderr])
        return Child(self, int(self._line.recv(64)))

    def reap(self, process: int) -> int:
        """Return the exit code of a process that has ended, or will very soon."""
        self._line.send(pickle.dumps(process))
        return int(self._line.recv(64))

    def close(self) -> None:
        self._line.close()
        os.waitpid(self._process, 0)


class Child:
    def __init__(self, nursery: Nursery, process: int) -> None:
        self._nursery = nursery
        self._process = process

    def signal(self, number: int) -> None:
        os.kill(self._process, number)

    def wait(self, patience: float = PATIENCE) -> int:
        """Return the exit code. A process that does not end in time is killed, which is an error."""
        handle = os.pidfd_open(self._process)
        try:
            ended = select.select([handle], [], [], patience)[0]
        finally:
            os.close(handle)
        if not ended:
            self.signal(signal.SIGKILL)
        code = self._nursery.reap(self._process)
        if not ended:
            raise TimeoutError(f"process {self._process} did not end within {patience:.0f} seconds")
        return code


def _serve(line: socket.socket, clock: WorldClock) -> int:
    """Fork for each order; report exit codes on request."""
    clock.install()
    open_web()
    for place, _ in list_commands().values():
        import_module(place.partition(":")[0])
    while True:
        data, handles, *_ = socket.recv_fds(line, LARGEST, 3)
        if not data:
            return 0
        asked: Order | int = pickle.loads(data)
        if isinstance(asked, int):
            _, status = os.waitpid(asked, 0)
            line.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        process = os.fork()
        if not process:
            line.close()
            _forked(partial(_obey, asked, handles, clock))
        for handle in handles:
            os.close(handle)
        line.send(str(process).encode())


def _forked(act: Callable[[], int]) -> None:
    """Be the forked process until its end."""
    code = 1
    try:
        code = act()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  nothing of the parent's may run here
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(code)


def _obey(order: Order, handles: Sequence[int], clock: WorldClock) -> int:
    os.setsid()
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        os.close(handle)
    if order.at_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
    os.environ.clear()
    os.environ.update(order.environ)
    os.chdir(order.folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if order.talk is not None:
        return program.run(order.talk, clock, Path(order.folder))
    return command.perform(order.arguments)


def _stream(number: int) -> Any:
    return os.fdopen(number, "r" if not number else "w", encoding="utf-8", errors="replace", closefd=False)
