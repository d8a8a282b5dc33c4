"""One measurement in a process of its own: the same work for Hone and the floor, told as a line of JSON."""

import argparse
import asyncio
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Protocol

from benchmarks.talk import spoken


class Talk(Protocol):
    async def send(self, text: str) -> int: ...


class Side(Protocol):
    async def open(self, count: int) -> Talk: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Done:
    """`value` is the figure, `cpu` what it took of the processor in milliseconds for each call or turn."""

    value: float
    cpu: float


async def iterations(side: Side, count: int, turns: int, calls: int) -> Done:
    """Milliseconds for each tool call of a turn that begins with `count` messages."""
    wall, cpu = [], []
    for _ in range(turns):
        talk = await side.open(count - 2)
        await talk.send(spoken(0))
        begun, used = time.perf_counter(), time.process_time()
        length = await talk.send(spoken(calls))
        wall.append((time.perf_counter() - begun) * 1000 / calls)
        cpu.append((time.process_time() - used) * 1000 / calls)
        _expect(length, count + 2 + 2 * calls)
    return Done(median(wall), median(cpu))


async def sessions(side: Side, count: int, turns: int, calls: int) -> Done:
    """Turns a second of `count` conversations that begin together; `calls` counts the requests of a turn."""

    async def converse() -> None:
        talk = await side.open(0)
        for turn in range(1, turns + 1):
            _expect(await talk.send(spoken(calls - 1)), turn * 2 * calls)

    await converse()
    begun, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(converse() for _ in range(count)))
    wall, cpu = time.perf_counter() - begun, time.process_time() - used
    return Done(count * turns / wall, cpu * 1000 / (count * turns))


async def lasting(side: Side, count: int, turns: int, calls: int) -> Done:
    """Milliseconds for each tool call in the last turns of a conversation of `count` messages."""
    talk = await side.open(0)
    wall, cpu = [], []
    for _ in range(max(turns, count // (2 * calls + 2))):
        begun, used = time.perf_counter(), time.process_time()
        await talk.send(spoken(calls))
        wall.append((time.perf_counter() - begun) * 1000 / calls)
        cpu.append((time.process_time() - used) * 1000 / calls)
    return Done(mean(wall[-turns:]), mean(cpu[-turns:]))


JOBS = {"iterations": iterations, "sessions": sessions, "lasting": lasting}


def _expect(length: int, wanted: int) -> None:
    if length != wanted:
        raise SystemExit(
            f"the conversation has {length} messages instead of {wanted}: this is another workload"
        )


def open_side(options: argparse.Namespace) -> Side:
    if options.side == "floor":
        from benchmarks.bare.loop import BareLoop

        return BareLoop(options.url, options.padding)
    from benchmarks.subject import Subject

    return Subject(options.home)


async def work(options: argparse.Namespace) -> Done:
    side = open_side(options)
    try:
        return await JOBS[options.job](side, options.count, options.turns, options.calls)
    finally:
        await side.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.work", description=__doc__)
    parser.add_argument("side", choices=("hone", "floor"))
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
