"""Writes to the journal through the agent's own tool, by one process and by two at once, and what is lost."""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

from benchmarks.bench import ROOT, Bench, Command, Sample, Take, alternate, environment, lodged, row
from benchmarks.figures import Row, Side
from hone import Hone
from hone.core.ledger import MEMORY, USER, Actor, Author, Change, ChangeKind, Delta
from hone.core.messages import ToolCall, digest, user
from hone.core.tool_context import ToolContext
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.knowledge.journal import SetText
from hone.knowledge.keeper import OWNER
from hone.knowledge.places import path_of
from hone.runtime.task_runner import ignore
from hone.settings import Settings
from hone.settings.sections import Memory

WRITES = 50
"""For all processes together: as many as the journal has room for."""
NOWHERE = "http://127.0.0.1:9"
"""No model is called."""


def journal(bench: Bench) -> Iterator[Row]:
    for writers, name in ((1, "one process"), (2, "two processes at once")):
        count = (10 if bench.quick else WRITES) // writers
        takes: dict[Side, Take] = {"hone": partial(written, bench, None, writers, count)}
        if bench.peer:
            takes["peer"] = partial(written, bench, bench.peer, writers, count)
        found = alternate(bench, bench.runs, takes, warm=bench.quick)
        yield row(f"journal: writes by {name}", "writes/s", None, found, lead=1)
        lost: dict[Side, tuple[float, ...]] = {
            side: (sum(each.other for each in some),) for side, some in found.items()
        }
        tried = writers * count * bench.runs
        yield Row(
            f"journal: lost of {tried:,} by {name}", "lost", lost["hone"], aim=0, peer=lost.get("peer", ())
        )


def written(bench: Bench, peer: Path | None, writers: int, count: int) -> Sample:
    """Start all writers at the same moment; the last one to finish ends the measurement."""
    home = bench.folder()
    environ = environment(home, NOWHERE) | (lodged(peer, home, NOWHERE) if peer else {})
    module = f"benchmarks.{'peer.' if peer else ''}journal"
    commands: list[Command] = [
        [peer or sys.executable, "-m", module, str(home), str(count), f"writer {number}"]
        for number in range(writers)
    ]
    told = together(commands, environ)
    taken = (home / ("memories/MEMORY.md" if peer else "MEMORY.md")).read_text(encoding="utf-8")
    kept = set(map(str.strip, taken.replace("- ", "").replace("§", "").splitlines()))
    said = [text for each in told for text in each["acknowledged"]]
    if len(said) != writers * count:
        raise SystemExit(f"{len(said)} of {writers * count} entries were taken: this is another workload")
    wall, cpu = max(each["wall"] for each in told), sum(each["cpu"] for each in told)
    return Sample(len(said) / wall, cpu * 1000 / len(said), other=len(set(said) - kept))


def together(commands: Sequence[Command], environ: dict[str, str]) -> list[dict[str, Any]]:
    """Start the writers together: each reports that it is ready, and waits for a word."""
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen(command, env=environ, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        for command in commands
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    return [json.loads(writer.communicate()[0]) for writer in writers]


async def furnish(hone: Hone, entries: int, changes: int) -> None:
    """Make a journal with this many entries, and this many changes of another part."""
    if entries:
        facts = "".join(f"- Fact number {number} is about thing {7 * number}.\n" for number in range(entries))
        await hone.keeper.note([(MEMORY, SetText(facts))], OWNER)
    bodies = {digest(each): each for each in (b"- Likes tea.\n", b"- Likes rain.\n")}
    names = [None, *islice(cycle(bodies), changes)]
    made = [
        Change(USER, ChangeKind.ADD, (Delta(path_of(USER), *pair),), Author(Actor.AGENT))
        for pair in pairwise(names)
    ]
    await hone.ledger.record(made, bodies, datetime.now(UTC))


async def write(home: Path, count: int, name: str, entries: int = 0, changes: int = 0) -> dict[str, Any]:
    wide = Memory(memory=1_000_000) if entries else Memory()
    settings = Settings(model="openai/scripted", memory=wide)
    texts = [f"{name} noted that item {number} is done." for number in range(count)]
    async with Hone(home=home, folder=home, settings=settings, learning="queue") as hone:
        if entries or changes:
            await furnish(hone, entries, changes)
        session = await hone.session()
        chain = Transcript(session.agent.prefix.digest).then(user(name), Trust.OWNER, datetime.now(UTC))
        context = ToolContext(session.agent, chain, ignore, header=session.header)
        memory = session.agent.toolbox["memory"]

        async def add(text: str) -> bool:
            arguments = {"action": "add_anyway", "text": text, "evidence": [name]}
            outcome = await memory.run(ToolCall("call", "memory", json.dumps(arguments)), context)
            return not outcome.failed

        await add(f"{name} noted that it begins.")  # does not count
        await asyncio.to_thread(ready)
        begun, used = time.perf_counter(), time.process_time()
        taken = [text for text in texts if await add(text)]
        await hone.keeper.settle()  # the file has all of them
        return {
            "wall": time.perf_counter() - begun,
            "cpu": time.process_time() - used,
            "acknowledged": taken,
        }


def ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journal", description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("name")
    parser.add_argument("--entries", type=int, default=0, help="of the journal before the first write")
    parser.add_argument("--changes", type=int, default=0, help="in the ledger before the first write")
    options = parser.parse_args()
    before = (options.entries, options.changes)
    print(json.dumps(asyncio.run(write(options.home, options.count, options.name, *before))))


if __name__ == "__main__":
    main()
