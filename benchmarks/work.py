"""One measurement in a process of its own: the same work for every side, told as a last line of JSON.

The peer's Python runs this too: nothing but the standard library and `benchmarks.talk` is there for all.
"""

import argparse
import asyncio
import gc
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Protocol

from benchmarks.bare.loop import BareLoop
from benchmarks.talk import spoken


class Talk(Protocol):
    async def send(self, text: str) -> int: ...


class Side(Protocol):
    async def open(self, count: int) -> Talk: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Done:
    """`value` is the figure, `cpu` its processor time in milliseconds per call or turn.

    `other` is a second figure, if one measurement gives two.
    """

    value: float
    cpu: float
    other: float = 0.0


async def iterations(side: Side, count: int, turns: int, calls: int) -> Done:
    """Return milliseconds per tool call of a turn that begins with `count` messages, or for one without
    any."""
    wall, cpu, parts = [], [], max(1, calls)
    for _ in range(turns):
        talk = await side.open(count - 2)
        await talk.send(spoken(0))
        begun, used = time.perf_counter(), time.process_time()
        length = await talk.send(spoken(calls))
        wall.append((time.perf_counter() - begun) * 1000 / parts)
        cpu.append((time.process_time() - used) * 1000 / parts)
        _expect(length, count + 2 + 2 * calls)
    return Done(median(wall), median(cpu))


async def sessions(side: Side, count: int, turns: int, calls: int) -> Done:
    """Return turns per second of `count` concurrent conversations, and the 99th percentile of a turn in
    milliseconds.

    Each has had one turn before, so that its opening is not in the figures.
    """
    talks = [await side.open(0) for _ in range(count)]
    took: list[float] = []

    async def said(talk: Talk, before: int) -> None:
        begun = time.perf_counter()
        _expect(await talk.send(spoken(calls)), (before + 1) * (2 + 2 * calls))
        took.append((time.perf_counter() - begun) * 1000)

    async def converse(talk: Talk) -> None:
        for turn in range(1, turns + 1):
            await said(talk, turn)

    await asyncio.gather(*(said(talk, 0) for talk in talks))
    took.clear()
    begun, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(converse, talks))
    wall, cpu = time.perf_counter() - begun, time.process_time() - used
    slow = sorted(took)[max(0, len(took) * 99 // 100 - 1)]
    return Done(len(took) / wall, cpu * 1000 / len(took), slow)


async def resident(side: Side, count: int, turns: int, calls: int) -> Done:
    """Return the KiB that each further conversation adds to the process, and the memory of a process with
    one."""

    async def begun() -> Talk:
        talk = await side.open(0)
        for _ in range(turns):
            await talk.send(spoken(calls))
        return talk

    talks = [await begun()]
    one, used = _resident(), time.process_time()
    talks += [await begun() for _ in range(count - 1)]
    more, cpu = _resident() - one, time.process_time() - used
    return Done(more / (count - 1), cpu * 1000 / (turns * len(talks)), one)


def _resident() -> float:
    """Return the KiB of memory of this process, after releasing what is no longer needed."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


async def lasting(side: Side, count: int, turns: int, calls: int) -> Done:
    """Return milliseconds per tool call in the last turns of a conversation of `count` messages."""
    talk = await side.open(0)
    wall, cpu = [], []
    for _ in range(max(turns, count // (2 * calls + 2))):
        begun, used = time.perf_counter(), time.process_time()
        await talk.send(spoken(calls))
        wall.append((time.perf_counter() - begun) * 1000 / calls)
        cpu.append((time.process_time() - used) * 1000 / calls)
    return Done(mean(wall[-turns:]), mean(cpu[-turns:]))


JOBS = {
    "iterations": iterations,
    "sessions": sessions,
    "resident": resident,
    "lasting": lasting,
}


def _expect(length: int, wanted: int) -> None:
    if length != wanted:
        raise SystemExit(
            f"the conversation has {length} messages instead of {wanted}: this is another workload"
        )


def open_side(options: argparse.Namespace) -> Side:
    if options.side == "peer":
        from benchmarks.peer.agent import Peer  # noqa: PLC0415  only the peer's environment has it

        return Peer()
    if options.side == "floor":
        return BareLoop(options.url, options.padding)
    from benchmarks.subject import Subject  # noqa: PLC0415  nor Hone

    return Subject(options.home)


async def work(options: argparse.Namespace) -> Done:
    side = open_side(options)
    try:
        return await JOBS[options.job](side, options.count, options.turns, options.calls)
    finally:
        await side.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.work", description=__doc__)
    parser.add_argument("side", choices=("hone", "floor", "peer"))
    parser.add_argument("job", choices=tuple(JOBS))
    parser.add_argument("--url", required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--padding", type=int, default=0)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--calls", type=int, required=True)
    options = parser.parse_args()
    print(json.dumps(asdict(asyncio.run(work(options)))))


if __name__ == "__main__":
    main()
