"""Scenarios of learning: a turn whose review is due, and a review that another process has left."""

import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec import json

from hone import Hone
from hone.core.jobs import Job, State
from hone.core.ledger import MEMORY, Actor, ChangeQuery, Entry, skill
from hone.core.messages import Message, Role, ToolCall, assistant
from hone.core.skill import DOCUMENT
from hone.core.turn import Stop
from hone.knowledge.journal import entries
from hone.models.scripted import Scripted, call
from hone.runtime.task_runner import ignore
from hone.settings import Settings
from hone.settings.sections import Learning
from tests.faults.points.scenario import DONE, REFUSED, Say, Told, debris, unsound

SETTINGS = Settings(tries=1, learning=Learning(turns=1, iterations=0))
"""Every turn is due for a review."""
WAITING = "waiting: "
LESSON = re.compile(r"Lesson (\d) of try (\d+)\.")


class Learner:
    """Learns one thing in two places from each review it is asked for, and every time in other words."""

    def __init__(self, tries: int = 0) -> None:
        self.tries = tries

    def __call__(self, messages: Sequence[Message]) -> Message:
        asked = [message.text for message in messages if message.role is Role.USER]
        if "look back over this conversation" not in asked[-1]:
            return assistant("Done.")
        if messages[-1].role is Role.TOOL:
            return assistant(*failed(messages)) if failed(messages) else assistant("Saved.")
        self.tries += 1
        number = sum("wish" in words.splitlines()[-1] for words in asked[:-1])
        lesson = f"Lesson {number} of try {self.tries}."
        document = f"---\nname: lesson-{number}\ndescription: {lesson}\n---\n\n{lesson}\n"
        return assistant(
            call("memory", action="add_anyway", text=lesson, evidence=["#1"]),
            call(
                "skill_manage",
                action="create_anyway",
                name=f"lesson-{number}",
                text=document,
                evidence=["#1"],
            ),
        )


def failed(messages: Sequence[Message]) -> list[ToolCall]:
    """What the last reply asked for in vain."""
    last = max(at for at, message in enumerate(messages) if message.role is Role.ASSISTANT)
    results = [message.result for message in messages[last:]]
    vain = {result.call for result in results if result and result.failed}
    return [
        call(each.name, **json.decode(each.arguments)) for each in messages[last].calls if each.id in vain
    ]


@asynccontextmanager
async def opened(root: Path) -> AsyncIterator[Hone]:
    """Each process learns in its own words."""
    model = Scripted(Learner(100 * os.getpid()))
    async with Hone(home=root / "home", folder=root / "folder", settings=SETTINGS, model=model) as hone:
        yield hone


async def learn(hone: Hone) -> None:
    hone.background.attend(ignore)
    await hone.background.drain()


@dataclass(frozen=True)
class Review:
    """Of a conversation that has one reviewed turn already: a second one, and its review."""

    name: str = "review"
    turns: int = 2

    async def prepare(self, root: Path) -> None:
        (root / "folder").mkdir()
        async with opened(root) as hone:
            await (await hone.session()).send("a wish")
            if self.turns > 1:
                await learn(hone)

    async def rehearse(self, root: Path) -> None:
        return None

    async def act(self, root: Path, say: Say) -> None:
        async with opened(root) as hone:
            if self.turns > 1:
                [known] = await hone.sessions.list()
                turn = await (await hone.resume(known.header.id)).send("second wish")
                say(f"{DONE}turn" if turn.stop is Stop.ANSWERED else f"{REFUSED}{turn.error}")
            await learn(hone)
            for job in await hone.jobs.jobs():
                say(f"{DONE}review {job.id}" if job.state is State.DONE else f"{WAITING}{job.error}")

    async def inspect(self, root: Path, told: Told, expected: None) -> list[str]:
        wrong = []
        async with opened(root) as hone:
            [talk] = await hone.sessions.list()
            said = [message.text for message in (await hone.sessions.load(talk.header.id)).transcript]
            answered, wished = said.count("Done."), sum("wish" in words for words in said)
            if "turn" in told.all(DONE) and answered < self.turns:
                wrong.append("lost: a turn")
            done = [f"review {job.id}" for job in await hone.jobs.jobs() if job.state is State.DONE]
            wrong += [f"lost: {each}" for each in told.all(DONE) if each not in ("turn", *done)]
            await learn(hone)
            jobs = await hone.jobs.jobs()
            left = [f"lost: review {job.id} is {job.state}: {job.error}" for job in jobs]
            wrong += [line for line, job in zip(left, jobs, strict=True) if job.state is not State.DONE]
            most = wished if told.all(REFUSED) else answered  # words are reviewed even if their answer failed
            if not answered <= len(jobs) <= most:
                wrong.append(f"lost: {len(jobs)} reviews for {answered} answers to {wished} wishes")
            learned = await hone.ledger.entries(ChangeQuery(actor=Actor.REVIEW))
            wrong += await astray(hone, jobs, learned)
        return wrong + debris(root, printed(self.turns)) + await unsound(root / "home")


def printed(turns: int) -> set[str]:
    lessons = {f"home/skills/lesson-{number}" for number in range(1, turns + 1)}
    known = {"home", "folder", "home/MEMORY.md", "home/skills", *lessons}
    return known | {f"{lesson}/{DOCUMENT}" for lesson in lessons}


async def astray(hone: Hone, jobs: Sequence[Job], learned: Sequence[Entry]) -> list[str]:
    """Each review wrote both its halves once, of the same try, and nobody else wrote anything."""
    wrong = []
    if sorted(entry.id for entry in learned) != sorted(id for job in jobs for id in job.changes):
        wrong.append("doubled: something was written that belongs to no review")
    text = await hone.keeper.text(MEMORY)
    if (hone.home / "MEMORY.md").read_text() != text:
        wrong.append("unsound: MEMORY.md is not what the ledger says")
    told = [match.groups() for match in map(LESSON.fullmatch, entries(text)) if match]
    for number in range(1, len(jobs) + 1):
        tries = [made for lesson, made in told if lesson == str(number)]
        if len(tries) != 1:
            wrong.append(f"{'doubled' if tries else 'lost'}: lesson {number} is there {len(tries)} times")
            continue
        files = await hone.keeper.files(skill(f"lesson-{number}"))
        printed = hone.home / "skills" / f"lesson-{number}" / DOCUMENT
        if files.get(DOCUMENT) != printed.read_bytes():
            wrong.append("unsound: a skill is not what the ledger says")
        if f"Lesson {number} of try {tries[0]}." not in printed.read_text():
            wrong.append(f"doubled: lesson {number} is put together from two tries")
    return wrong
