"""A process beside the tests: `python review_worker.py DEED HOME FOLDER FORMAT URL`.

`talk` goes on with the conversation and says `due` when that turn has ended; `finish` only says so. After the
next line of the input both do the reviews that are queued, and say `over`.
"""

import asyncio
import os
import sys
from pathlib import Path

from hone.models.stage.shapes import Format
from hone.runtime.session import ignore
from hone.settings import Learning, Settings
from tests.faults.furnish import furnish, provider

SETTINGS = Settings(tries=1, learning=Learning(turns=1, iterations=0))
"""Every turn is due for a review."""


def say(line: str) -> None:
    """With a system call that nothing else makes, so that the others can be counted up to there."""
    os.writev(sys.stdout.fileno(), [f"{line}\n".encode()])


async def work(deed: str, home: Path, folder: Path, format: Format, url: str) -> None:
    async with furnish(home, folder, provider(format, url), settings=SETTINGS) as hone:
        if deed == "talk":
            (known,) = await hone.sessions.list()
            await (await hone.resume(known.header.id)).send("second wish")
        say("due")
        sys.stdin.readline()
        hone.background.attend(ignore)
        await hone.background.drain()
        say("over")


def main(deed: str, home: str, folder: str, format: str, url: str) -> None:
    wire: Format = "openai" if format == "openai" else "anthropic"
    asyncio.run(work(deed, Path(home), Path(folder), wire, url))


if __name__ == "__main__":
    main(*sys.argv[1:])
