"""Run a server as several processes on one port. They share the listening socket, so a stopped or dead
process gets no connection; one that ends unexpectedly is restarted."""

import ctypes
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hone.core.errors import HoneError, SettingsError
from hone.core.visible import visible

MOST = 64
REST = 1.0
"""Seconds between two starts of a process."""
PATIENCE = 60.0
"""Seconds that the first process gets to be ready before the others start."""
READY = b"+"
WANTED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG: end when the parent is gone."""

Ready = Callable[[str, Path], object]
Serve = Callable[[socket.socket, Ready, int], int]
"""Serves until a signal arrives, calls back when it is ready, and returns how many turns were interrupted.
The last argument numbers the process: below their count, and reused when one is restarted."""


@dataclass(slots=True)
class ServerProcess:
    """`pipe` reports that it is ready and, at its end, how many turns it interrupted."""

    pid: int
    pipe: int
    started: float
    index: int = 0
    told: bytes = b""

    @property
    def is_ready(self) -> bool:
        return self.told.startswith(READY)

    @property
    def interrupted(self) -> int:
        return int(self.told[1:] or 0) if self.is_ready else 0

    def hear(self, seconds: float = 0.0) -> None:
        """Read what it has reported by now, or within this many seconds."""
        while select.select([self.pipe], [], [], seconds)[0] and (said := os.read(self.pipe, 100)):
            self.told += said
            seconds = 0.0


def check_database(database: str, home: Path) -> None:
    """Raise SettingsError if several processes could not share their state."""
    if not database:
        raise SettingsError(
            f"Several processes need a PostgreSQL database, and {visible(str(home))} keeps its data in a "
            "file. Move the data, or leave --processes out: hone move --to postgresql://…"
        )


class Supervisor:
    """`serve` runs in each process; the first one reports that it is `ready`. Ends them in order when it is
    told to end."""

    def __init__(self, listener: socket.socket, count: int, serve: Serve, ready: Ready) -> None:
        self._listener = listener
        self._count = count
        self._serve = serve
        self._ready = ready
        self._running: dict[int, ServerProcess] = {}
        self._interrupted = 0

    def run(self) -> tuple[int, int]:
        """Return an exit code, and how many turns were interrupted at the end."""
        signal.pthread_sigmask(signal.SIG_BLOCK, WANTED)
        try:
            first = self._start()
            first.hear(PATIENCE)
            if not first.is_ready:  # it has said why
                return self._finish() or 1, 0
            while len(self._running) < self._count:
                self._start(is_first=False)
            self._watch()
            return self._finish(), self._interrupted
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WANTED)

    def _watch(self) -> None:
        """Wait until a signal asks for the end."""
        due: list[float] = []
        while True:
            wait = max(0.0, min(due) - time.monotonic()) if due else PATIENCE
            found = signal.sigtimedwait(WANTED, wait)
            if found and found.si_signo != signal.SIGCHLD:
                return
            due += [max(each.started + REST, time.monotonic()) for each in self._bury()]
            now = time.monotonic()
            for at in [each for each in due if each <= now]:
                due.remove(at)
                self._start(is_first=False)

    def _bury(self, options: int = os.WNOHANG) -> list[ServerProcess]:
        """Return the processes that have ended."""
        ended = []
        for pid in list(self._running):
            if os.waitpid(pid, options)[0]:
                gone = self._running.pop(pid)
                gone.hear()
                os.close(gone.pipe)
                ended.append(gone)
        return ended

    def _finish(self) -> int:
        """End all in order."""
        for pid in self._running:
            os.kill(pid, signal.SIGTERM)
        self._interrupted = sum(each.interrupted for each in self._bury(0))
        return 0

    def _start(self, *, is_first: bool = True) -> ServerProcess:
        parent, taken = os.getpid(), {each.index for each in self._running.values()}
        index = next(each for each in range(self._count) if each not in taken)
        end, told = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            os.close(end)
            self._become(told, parent, index, is_first=is_first)
        os.close(told)
        self._running[pid] = found = ServerProcess(pid, end, time.monotonic(), index=index)
        return found

    def _become(self, told: int, parent: int, index: int, *, is_first: bool) -> None:
        """Become one of the processes, and never return."""
        code = 1
        try:
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGTERM)
            if os.getppid() != parent:
                return
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WANTED)

            def ready(url: str, home: Path) -> None:
                if is_first:
                    self._ready(url, home)
                    sys.stdout.flush()
                os.write(told, READY)

            os.write(told, str(self._serve(self._listener, ready, index)).encode())
            code = 0
        except HoneError as error:
            print(visible(str(error)), file=sys.stderr)
        except BaseException:  # noqa: BLE001  nobody above would say it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
