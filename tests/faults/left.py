"""What the tests of leaving share: a model that keeps one wish, and a look at the processes of a home."""

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hone import Hone
from hone.core.jobs import State
from hone.core.ledger import USER, Actor, ChangeQuery
from hone.core.messages import Message, Role, assistant
from hone.core.topics import NAMES
from hone.knowledge.journal import entries
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from tests.processes import has_ended

WISH = "I prefer tabs over spaces."
NOTE = "User prefers tabs over spaces."
ASKED = "look back over this conversation"


def learner(messages: Sequence[Message]) -> Message:
    """Says yes; asked to look back, it keeps the wish if it was said and is not known."""
    asked = next(message for message in reversed(messages) if message.role is Role.USER).text
    if ASKED not in asked:
        return assistant("Yes.")
    heard = any(WISH in message.text for message in messages if message.role is Role.USER)
    if not heard or NOTE in asked:
        return assistant("nothing")
    return assistant(call("memory", action="add", target="user", text=NOTE, evidence=[WISH]))


def processes(home: Path) -> list[int]:
    """Return the processes that run in this home."""
    mark = f"HONE_HOME={home}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            variables = (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is another user's
        if mark in variables and int(place.name) != os.getpid():
            found.append(int(place.name))
    return found


async def gone(home: Path) -> list[int]:
    """Wait until no process runs in this home any more; return those that do not end."""
    while found := processes(home):
        if not await asyncio.to_thread(has_ended, found[0]):
            break
    return found


async def aftermath(home: Path, stage: FakeProvider) -> list[str]:
    """Lets the next process do what is left once its time has come; says what is wrong then."""
    model, place = "openai/scripted", ProviderSettings(f"{stage.url}/v1")
    settings = Settings(model=model, providers={"openai": place})
    async with Hone(home=home, settings=settings, learning="queue") as hone:
        await hone.jobs.promote(datetime.now(UTC) + timedelta(hours=1), NAMES)
        await hone.background.drain()
        wrong = [f"left: {look}" for look in await hone.jobs.looks()]
        jobs = await hone.jobs.jobs()
        wrong += [f"lost: {job.state} {job.error}" for job in jobs if job.state is not State.DONE]
        known = entries(await hone.keeper.text(USER))
        wrong += [] if NOTE in known else ["lost: the lesson"]
        learned = [
            entry
            for entry in await hone.ledger.entries(ChangeQuery(actor=Actor.REVIEW))
            if entry.change.deltas
        ]
        wrong += [f"doubled: {len(learned)} changes"] if len(learned) > 1 or known.count(NOTE) > 1 else []
        wrong += [f"doubled: {len(jobs)} reviews"] if len(jobs) > 1 else []
    return wrong
