"""One of the processes of the soak: `python soak_worker.py HOME FOLDER URL LIFE TURNS NUMBER[:SESSION]…`.

It holds a conversation for each number, goes on with a session that is stored, and does reviews beside them.
It says which session is whose and how each turn ended. Each ends after so many turns (0: at once), or when
the input of the process does; what is left of the reviews is done by a life that has no turns.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from hone import Hone
from hone.core.errors import HoneError, Missing
from hone.core.events import Event, Notice
from hone.core.turn import Stop
from hone.runtime.session import Session
from hone.runtime.task_runner import ignore
from hone.settings import Settings
from hone.settings.sections import Learning, Memory, PriceSettings
from tests.faults.furnish import furnish, provider

EVERY = 5
"""Turns of a conversation until it is reviewed."""
SETTINGS = Settings(
    learning=Learning(turns=EVERY, iterations=0, after_exit="off"),  # so that it is known how many are due
    memory=Memory(memory=1_000_000),
    prices={"stage/scripted": PriceSettings(input=0.0, output=0.0)},
)
"""Nothing is spent, so that no day's budget keeps a review waiting."""


def say(*words: str) -> None:
    line = " ".join(words).replace("\n", " ")
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def words_of(number: str, life: str, turn: int) -> str:
    """Said once, whoever was killed meanwhile."""
    return f"canary-{number}-{life}-{turn}"


async def begun(hone: Hone, known: str) -> Session:
    with suppress(Missing):
        return await hone.resume(known) if known else await hone.session()
    return await hone.session()


async def talk(hone: Hone, place: str, life: str, turns: int, over: asyncio.Event) -> None:
    number, _, known = place.partition(":")
    session = await begun(hone, known)
    say("session", number, session.id)

    def emit(event: Event) -> None:
        if isinstance(event, Notice):
            say("wrong", number, event.text)

    for turn in range(turns):
        if over.is_set():
            return
        words, since = words_of(number, life, turn), perf_counter()
        try:
            ended = await session.send(words, emit)
        except HoneError as error:
            say("wrong", words, f"{type(error).__name__}: {error}")
            continue
        if (ended.stop, ended.text) == (Stop.ANSWERED, f"It says {words}."):
            say("ended", words, str(perf_counter() - since))
        else:
            say("wrong", words, str(ended.stop), ended.error or ended.text)


def listen(over: asyncio.Event) -> None:
    """The loop is told when the input ends."""
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if not os.read(sys.stdin.fileno(), 1):
            loop.remove_reader(sys.stdin)
            over.set()

    loop.add_reader(sys.stdin, heard)


async def work(home: str, folder: str, url: str, life: str, turns: str, *places: str) -> None:
    over = asyncio.Event()
    listen(over)
    async with furnish(Path(home), Path(folder), provider("openai", url), settings=SETTINGS) as hone:
        if places:
            hone.background.attend(ignore)
            await asyncio.gather(*(talk(hone, place, life, int(turns), over) for place in places))
        else:
            await hone.background.drain()
    for notice in hone.notices:
        say("wrong", notice)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
