"""A process that moves a home and kills itself before a given step, as often as it is told to."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hone.features.moving.service import move_data
from hone.features.moving.values import MovePlan
from hone.stores.postgres.database import Rows
from tests.stores.postgres_worker import NOW

NAMES = ("os.rename", "os.remove", "os.link")
"""What changes a name on the disk."""


def die_before(step: int) -> None:
    """End by SIGKILL before so many more statements, commits and changes of names."""
    left = step

    def tick() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    send, transact, read = Rows.execute, Rows.transaction, Rows.stream

    def execute(rows: Rows, query: str, **values: Any) -> Any:
        tick()
        return send(rows, query, **values)

    def stream(rows: Rows, query: str, types: Any, **values: Any) -> Any:
        tick()
        return read(rows, query, types, **values)

    @contextmanager
    def transaction(rows: Rows) -> Iterator[None]:
        with transact(rows):
            yield
            tick()  # before it is committed

    patch = pytest.MonkeyPatch()
    patch.setattr(Rows, "execute", execute)
    patch.setattr(Rows, "stream", stream)
    patch.setattr(Rows, "transaction", transaction)
    sys.addaudithook(lambda event, _: tick() if event in NAMES else None)


def serve(home: str, url: str, owner: str, way: str) -> None:
    """Move once for each number on the standard input, in a child that dies before this step."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            die_before(int(line))
            move_data(MovePlan(Path(home), url, way == "back", NOW, False, owner), lambda *_: None)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "ended" if status == 0 else "failed", flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
