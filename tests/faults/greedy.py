"""A program with one turn: what a provider sends it is measured by its memory. Run by test_memory.py."""

import asyncio
import json
import sys
from pathlib import Path
from typing import cast

from hone import Hone
from hone.core.clock import SystemClock
from hone.models.fake_provider.shapes import Format
from hone.settings import Settings
from tests.faults.furnish import furnish, provider

FORMAT, URL, FOLDER = sys.argv[1:]


def peak() -> float:
    """Return the most memory this process ever took, in MB. `ru_maxrss` would count the parent's, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1000


async def main() -> None:
    server = provider(cast(Format, FORMAT), URL)
    folder = Path(FOLDER)
    hone: Hone = furnish(folder / "home", folder, server, clock=SystemClock(), settings=Settings(tries=1))
    async with hone:
        turn = await hone.run("please do it")
    print(json.dumps({"stop": turn.stop, "error": turn.error, "peak": peak()}))


asyncio.run(main())
