"""Another process that works on a home while it is backed up: `python backup_worker.py DEED HOME`.

For each number that it reads it takes so many steps. It says what it is about to remove, and what was
acknowledged as soon as it is; `idle` when it has taken its steps.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path

from hone import Hone
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY
from hone.core.skill import SkillOrigin
from hone.knowledge.journal import Add, Remove
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, Patch
from hone.models.scripted import Scripted, echo
from hone.settings import Settings
from hone.settings.sections import Memory

NAME = "counting"
HEAD = f"---\nname: {NAME}\ndescription: Count how often something was done.\n---\n\n"
SETTINGS = Settings(memory=Memory(memory=100_000))
MESSAGES, ENTRIES, SESSIONS = 6, 20, 4
"""Messages of a session, and how many entries and sessions are kept before the oldest is removed."""


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def talk(hone: Hone) -> AsyncIterator[None]:
    for number in count():
        if number % MESSAGES == 0:
            session = await hone.session()
        words = f"words {number} " + "of some length " * (number % 50)
        await session.send(words)
        say(f"said {session.id} {words.strip()}")
        yield


async def learn(hone: Hone) -> AsyncIterator[None]:
    for number in count():
        await hone.keeper.note([(MEMORY, Add(f"Lesson number {number:06}."))], OWNER)
        say(f"learned Lesson number {number:06}.")
        if number >= ENTRIES:
            oldest = f"Lesson number {number - ENTRIES:06}."
            say(f"removing {oldest}")
            await hone.keeper.note([(MEMORY, Remove(oldest))], OWNER)
        yield


async def edit(hone: Hone) -> AsyncIterator[None]:
    await hone.keeper.edit_skill(NAME, Create(f"{HEAD}Counted: 0.\n", SkillOrigin.USER), OWNER)
    for number in count():
        change = Patch(f"Counted: {number}.", f"Counted: {number + 1}.")
        await hone.keeper.edit_skill(NAME, change, OWNER)
        say(f"counted {number + 1}")
        yield


async def delete(hone: Hone) -> AsyncIterator[None]:
    made: list[SessionId] = []
    while True:
        session = await hone.session()
        await session.send("to be deleted")
        made.append(session.id)
        say(f"kept {session.id}")
        if len(made) > SESSIONS:
            oldest = made.pop(0)
            say(f"deleting {oldest}")
            await hone.sessions.delete(oldest)
            say(f"deleted {oldest}")
        yield


DEEDS: dict[str, Callable[[Hone], AsyncIterator[None]]] = {
    "talk": talk,
    "learn": learn,
    "edit": edit,
    "delete": delete,
}


async def main(deed: str, home: str) -> None:
    async with Hone(
        home=Path(home), settings=SETTINGS, model=Scripted(echo), learning="queue", folder="/"
    ) as hone:
        steps = DEEDS[deed](hone)
        for line in sys.stdin:
            for _ in range(int(line)):
                await anext(steps)
            say("idle")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
