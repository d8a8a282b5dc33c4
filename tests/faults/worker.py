"""A process beside the tests: `python worker.py [--nobody] HOME FOLDER FORMAT URL [SESSION]`.

It says the name of its session, then sends each line that it reads, and says how that turn ended. After a
conflict it begins again from what is stored. With --nobody it gives up the rights of root first. What keeps
it from its work it says as well.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import get_args

from hone.core.errors import HoneError
from hone.core.loading import import_object
from hone.models.fake_provider.shapes import Format
from hone.models.providers import ADAPTERS
from hone.settings import Settings
from hone.stores.database import Database
from tests.faults.furnish import furnish, provider

NOBODY = 65534


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def work(home: Path, folder: Path, format: Format, url: str, session: str = "") -> None:
    async with furnish(home, folder, provider(format, url), settings=Settings(tries=1)) as hone:
        talk = await (hone.resume(session) if session else hone.session())
        say(talk.id)
        for line in sys.stdin:
            try:
                turn = await talk.send(line.strip())
                said = f"{turn.stop}: {turn.error or turn.text}"
            except HoneError as error:
                said = f"{type(error).__name__}: {error}"
            say(said)
            if "gone on elsewhere" in said:
                talk = await hone.resume(talk.id)
        for notice in hone.notices:
            say(f"notice: {notice}")


def main(*arguments: str) -> None:
    if arguments[0] == "--nobody":
        arguments = arguments[1:]
        if os.geteuid() == 0:
            # Who comes later may not be able to read our own code.
            asyncio.run(Database.in_memory().close())
            for name in ADAPTERS.values():
                import_object(name)
            os.setuid(NOBODY)
    home, folder, format, url, *session = arguments
    wire: Format = next(each for each in get_args(Format) if each == format)
    try:
        asyncio.run(work(Path(home), Path(folder), wire, url, *session))
    except HoneError as error:
        say(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
