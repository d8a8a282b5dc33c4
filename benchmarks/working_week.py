"""`python -m benchmarks.working_week`: what provenance on disk costs in a scripted week, and per command."""

import argparse
import asyncio
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from msgspec import Struct

from benchmarks.workdays import DAYS, Site, Talk, facts, owner_works, prepare, resolve_site, talks
from hone import Hone
from hone.core.clock import SystemClock
from hone.core.ledger import ChangeState
from hone.core.messages import Message, Role, assistant
from hone.core.permissions import Answer, Question
from hone.core.trust import Trust
from hone.files.watching import FolderWatch
from hone.models.http import Http
from hone.models.scripted import Scripted, call
from hone.settings import Settings
from hone.settings.sections import Learning, Memory
from hone.tools.web import web_tools

COUNT = 50_000
ROOMY = Settings(memory=Memory(50_000, 50_000, 50_000), learning=Learning(turns=0, iterations=0))


class Conversation(Struct, frozen=True):
    """The outcome of one: `foreign` at its end; `waits`: the fact it heard is pending."""

    day: int
    kind: str
    outward: bool
    foreign: bool
    waits: bool
    learned: bool
    """Its own lesson, from what it read, is known without a question."""


class Week(Struct, frozen=True):
    conversations: tuple[Conversation, ...]
    questions: tuple[int, ...]
    """Questions to the owner, by day."""

    @property
    def waiting(self) -> int:
        return sum(each.waits for each in self.conversations)


async def live(home: Path, folder: Path, days: int = DAYS) -> Week:
    """Play the week. Each conversation is new, and to Hone each day is a separate process."""
    prepare(folder)
    remaining, questions = iter(facts()), []
    done: list[Conversation] = []
    with Site() as site:
        for day in range(1, days + 1):
            asked: list[Question] = []
            async with open_hone(home, folder, asked) as (hone, mind):
                done += [await have(hone, mind, day, talk) for talk in talks(day, site.url, remaining)]
            questions.append(len(asked))
            owner_works(folder, day)
    return Week(tuple(done), tuple(questions))


class Mind:
    """A script that makes the calls of a conversation, then notes what was said and what was learned."""

    def __init__(self) -> None:
        self.replies: Sequence[Message] = ()

    def __call__(self, messages: Sequence[Message]) -> Message:
        spoken = sum(message.role is Role.ASSISTANT for message in messages)
        return self.replies[min(spoken, len(self.replies) - 1)]


@asynccontextmanager
async def open_hone(home: Path, folder: Path, asked: list[Question]) -> AsyncIterator[tuple[Hone, Mind]]:
    """Open a Hone with a page reader that reaches our docs, and an owner who says yes and counts
    questions."""

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return Answer.ONCE

    clock, mind = SystemClock(), Mind()
    http = Http(clock, admit=lambda *_: None, resolve=resolve_site)
    tools = web_tools(http, clock=clock)
    async with Hone(
        home=home, folder=folder, model=Scripted(mind), tools=tools, ask=ask, settings=ROOMY
    ) as hone:
        hone.folders.trust(folder)
        yield hone, mind
    await http.close()


async def have(hone: Hone, mind: Mind, day: int, talk: Talk) -> Conversation:
    """Hold one conversation. Its own lesson rests on its last result, if there is one."""
    fact, number = talk.fact, 2 * len(talk.calls) + 1
    note = call("memory", action="add", target=fact.target, text=fact.entry, evidence=[fact.said])
    lesson = f"On day {day}, a conversation that {talk.kind} ended with message {number}."
    own = call("memory", action="add_anyway", target="project", text=lesson, evidence=[f"#{number}"])
    mind.replies = [*map(assistant, talk.calls), assistant(note), assistant(own), assistant("Done.")]
    before = await hone.ledger.latest()
    session = await hone.session()
    await session.send(f"{fact.said} {talk.words}")
    trust = session.transcript.trust
    await hone.release(session)
    made = [entry.change for entry in await hone.ledger.entries() if entry.id > before]
    states = {change.author.call: change.standing for change in made}
    foreign, active = trust is Trust.FOREIGN, ChangeState.ACTIVE
    waits, learned = states[note.id] is not active, states[own.id] is active
    return Conversation(day, talk.kind, talk.outward, foreign, waits, learned)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=COUNT, help="files of the folder that is compared")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="hone-week-") as scratch:
        week = asyncio.run(live(Path(scratch, "home"), Path(scratch, "work")))
    print("\n".join(told(week)))
    print()
    with TemporaryDirectory(prefix="hone-week-") as scratch:
        print("\n".join(compared(Path(scratch), options.files)))


def told(week: Week) -> Iterator[str]:
    every = week.conversations
    yield f"{len(every)} conversations in {len(week.questions)} days, each with a fact that the owner states"
    yield f"stated facts that wait: {week.waiting} of {len(every)} ({100 * week.waiting / len(every):.0f} %)"
    inward = [each for each in every if not each.outward]
    foreign = [each for each in inward if each.foreign]
    yield f"foreign by what they read on disk: {len(foreign)} of {len(inward)} that reached no network"
    for kind, count in Counter(each.kind for each in foreign).items():
        yield f"  {kind}: {count} of {sum(each.kind == kind for each in inward)}"
    own = [each for each in every if not each.learned]
    yield f"what the agent learned by itself and waits: {len(own)} of {len(every)}"
    yield f"questions to the owner by day: {', '.join(map(str, week.questions))}"


def compared(folder: Path, count: int) -> Iterator[str]:
    """Time the comparison of a large folder, as around each command of a foreign conversation."""
    for number in range(count):
        place = folder / f"{number // 1_000:02}" / f"{number // 50 % 20:02}"
        if number % 50 == 0:
            place.mkdir(parents=True)
        (place / f"{number % 50:02}.txt").write_text("A line that nobody has changed.\n")
    begun = time.perf_counter()
    watch = FolderWatch(folder)
    first = time.perf_counter() - begun
    samples = [compare(folder, count, watch) for _ in range(20)]
    watch.close()
    yield f"{count:,} files: watched in {1e3 * first:.0f} ms, once"
    yield f"{count:,} files: compared in {1e3 * median(samples):.2f} ms after a command that changed 20"
    shutil.rmtree(folder, ignore_errors=True)


def compare(folder: Path, count: int, watch: FolderWatch) -> float:
    """Return the seconds of the comparison, without those of the change itself."""
    for number in range(0, count, count // 20):
        path = folder / f"{number // 1_000:02}" / f"{number // 50 % 20:02}" / f"{number % 50:02}.txt"
        path.write_text(f"Changed at {time.perf_counter()}.\n")
    begun = time.perf_counter()
    found = watch.drain()
    assert len(found.paths) >= 20
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
