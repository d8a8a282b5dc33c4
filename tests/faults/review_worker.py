"""A process beside the tests that has imported all it needs and forks a worker for each line of its input.

One that should `talk` goes on with the conversation, and says `due` when that turn has ended; one that should
`finish` only says so. Then it does the reviews that are queued, and says `over`. Between the two it is killed
after so many seconds, or not at all.
"""

import asyncio
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from time import monotonic
from typing import Literal

from msgspec import Struct, json

from hone.models.fake_provider.shapes import Format
from hone.runtime.task_runner import ignore
from tests.faults.furnish import furnish, provider
from tests.faults.points.reviews import SETTINGS

DUE, OVER = b"due\n", b"over\n"
ENDS = ((OVER, 0), (b"", -signal.SIGKILL), (OVER, -signal.SIGKILL))
"""The last one was killed while it closed."""

Deed = Literal["talk", "finish"]


class Order(Struct, frozen=True):
    deed: Deed
    home: str
    folder: str
    format: Format
    url: str
    delay: float | None = None


class Report(Struct, frozen=True):
    """Whether a worker was killed before its reviews were over; and after how many seconds either was."""

    killed: bool
    seconds: float


async def work(order: Order, ears: int, mouth: int) -> None:
    home, folder = Path(order.home), Path(order.folder)
    async with furnish(home, folder, provider(order.format, order.url), settings=SETTINGS) as hone:
        if order.deed == "talk":
            (known,) = await hone.sessions.list()
            await (await hone.resume(known.header.id)).send("second wish")
        os.writev(mouth, [DUE])
        os.read(ears, 1)
        hone.background.attend(ignore)
        await hone.background.drain()
        os.writev(mouth, [OVER])


def fork(order: Order, ears: int, mouth: int) -> int:
    if worker := os.fork():
        os.close(ears)
        os.close(mouth)
        return worker
    try:
        asyncio.run(work(order, ears, mouth))
        os._exit(0)
    finally:
        traceback.print_exc()
        os._exit(1)


def perform(order: Order) -> Report:
    ears, go = os.pipe()
    heard, mouth = os.pipe()
    worker = fork(order, ears, mouth)
    if (said := os.read(heard, len(DUE))) != DUE:
        raise ChildProcessError(f"The worker said {said!r} before its turn had ended.")
    os.write(go, b"\n")
    seconds, status = watch(order, worker, heard)
    said = os.read(heard, len(OVER))
    os.close(go)
    os.close(heard)
    if (said, status) not in ENDS:
        raise ChildProcessError(f"The worker said {said!r} and ended with {status}.")
    return Report(said != OVER, seconds)


def watch(order: Order, worker: int, heard: int) -> tuple[float, int]:
    """The seconds it took to speak, and how it ended."""
    start = monotonic()
    if not select.select([heard], [], [], order.delay)[0]:
        os.kill(worker, signal.SIGKILL)
    seconds = monotonic() - start
    return seconds, os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])


def main() -> None:
    for line in sys.stdin:
        report = perform(json.decode(line, type=Order))
        sys.stdout.write(f"{json.encode(report).decode()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
