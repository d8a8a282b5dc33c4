"""F1, E2: hundreds of conversations over four processes on one home, some killed and started again."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import quantiles

import pytest

from hone import Hone
from hone.core.ids import SessionId
from hone.core.jobs import State
from hone.core.messages import Message, Role, assistant
from hone.core.transcript import Transcript
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.stores.ledger import SqliteLedger
from tests.conftest import Figures, Tier
from tests.faults import soak_worker
from tests.faults.beside import ROOT, integrity
from tests.faults.furnish import furnish, provider
from tests.faults.soak_worker import EVERY, SETTINGS
from tests.rig import faults

PROCESSES = 4
CANARY = re.compile(r"canary-(\d+)-\d+-\d+")
ASKED = "look back over this conversation"
ENDLESS, SECONDS = 10**6, 180.0


@dataclass
class Provider:
    """A model that works with tools, learns from some reviews, and remembers what it was asked."""

    seen: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    next_kill: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def await_calls(self, count: int) -> None:
        """`reached` is set when so many more have come."""
        self.next_kill = self.calls + count
        self.reached.clear()

    def speak(self, messages: Sequence[Message]) -> Message:
        self.calls += 1
        if self.calls >= self.next_kill:
            self.reached.set()
        asked = max(at for at, message in enumerate(messages) if message.role is Role.USER)
        words, since = messages[asked].text, messages[asked + 1 :]
        results = [message.result.text for message in since if message.result]
        if ASKED in words:
            return self._review(messages, results)
        found = CANARY.search(words)
        assert found, words
        self.seen[found[0]] += not results
        return self._work(found[0], found[1], results)

    def _review(self, messages: Sequence[Message], results: Sequence[str]) -> Message:
        said = [found for message in messages if (found := CANARY.search(message.text))]
        if results or int(said[-1][1]) % 10:
            return assistant("Nothing more to save.")
        return assistant(call("memory", action="add", text=f"Lesson from {said[-1][0]}.", evidence=["#1"]))

    def _work(self, words: str, number: str, results: Sequence[str]) -> Message:
        match results:
            case []:
                return assistant("I write.", call("write_file", path=f"{number}.txt", content=words))
            case [_]:
                return assistant("I read.", call("read_file", path=f"{number}.txt"), call("todo"))
        return assistant(f"It says {results[1]}.")


@dataclass
class Soak:
    """The processes and what they have said. A place is the number of a conversation, with its session once
    that is known."""

    home: Path
    folder: Path
    url: str
    turns: int
    sessions: dict[str, SessionId] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    kills: int = 0
    lives: int = 0
    _running: list[Process] = field(default_factory=list)
    _places: list[list[str]] = field(default_factory=list)
    _hearing: list[asyncio.Task[None]] = field(default_factory=list)

    async def begin(self, sessions: int) -> None:
        for at in range(PROCESSES):
            self._places.append([str(number) for number in range(at, sessions, PROCESSES)])
            self._running.append(await self._start(self._places[at]))

    async def _start(self, places: Sequence[str]) -> Process:
        self.lives += 1
        named = [f"{each}:{self.sessions.get(each, '')}" for each in places]
        command = [sys.executable, "-W", "error", str(soak_worker.__file__)]
        words = [str(self.home), str(self.folder), self.url, str(self.lives), str(self.turns), *named]
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        environ = os.environ | {"PYTHONPATH": path}
        process = await asyncio.create_subprocess_exec(
            *command, *words, env=environ, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        self._hearing.append(asyncio.create_task(self._hear(process)))
        return process

    async def _hear(self, process: Process) -> None:
        assert process.stdout
        assert process.stderr
        async for line in process.stdout:
            kind, _, rest = line.decode().rstrip("\n").partition(" ")
            match kind, rest.split(" "):
                case "session", [number, session]:
                    self.sessions[number] = SessionId(session)
                case "ended", [words, seconds]:
                    self.ended[words] = float(seconds)
                case _ if line.endswith(b"\n"):  # the last line of a killed process may be cut
                    self.wrong.append(rest)
        self.wrong += (await process.stderr.read()).decode().splitlines()[-5:]

    async def kill(self, random: Random) -> None:
        """One of those that still talk; its conversations go on in the next process."""
        at = random.choice([at for at, each in enumerate(self._running) if each.returncode is None])
        self._running[at].kill()
        await self._running[at].wait()
        self.kills += 1
        self._running[at] = await self._start(self._places[at])

    def stop(self) -> None:
        """Each ends the turn it is in."""
        for process in self._running:
            assert process.stdin
            process.stdin.close()

    async def finish(self) -> None:
        await self.over()
        assert [process.returncode for process in self._running] == [0] * PROCESSES, self.wrong

    async def over(self) -> None:
        await asyncio.gather(*(process.wait() for process in self._running))
        await asyncio.gather(*self._hearing)

    async def drain(self, asked: asyncio.Event, random: Random) -> None:
        """All processes do what reviews are left; one is killed over it, and the last one does the rest."""
        self.turns, self._running = 0, [await self._start(()) for _ in range(PROCESSES)]
        over = asyncio.create_task(self.over())
        hit = asyncio.create_task(asked.wait())
        await asyncio.wait([over, hit], return_when=asyncio.FIRST_COMPLETED)
        if hit.done() and not over.done():
            random.choice([each for each in self._running if each.returncode is None]).kill()
            self.kills += 1
        hit.cancel()
        await over
        self._running = [await self._start(())]
        await self.over()


def wrongs(number: str, transcript: Transcript, acknowledged: set[str], ended: set[str]) -> list[str]:
    """What is lost, doubled or mixed up in a conversation, and why no provider would take it."""
    said = [found[0] for message in transcript if (found := CANARY.search(message.text))]
    asked = Counter(
        found[0]
        for message in transcript
        if message.role is Role.USER and (found := CANARY.search(message.text))
    )
    answers = Counter(message.text for message in transcript if message.text.startswith("It says "))
    return [
        *(f"lost: {words}" for words in sorted(acknowledged - asked.keys())),
        *(f"lost: the answer to {words}" for words in sorted(ended) if not answers[f"It says {words}."]),
        *(f"doubled: {words}" for words, count in (asked + answers).items() if count > 1),
        *(f"mixed up: {words}" for words in said if not words.startswith(f"canary-{number}-")),
        *(f"invalid: {each}" for each in faults(list(transcript))),
    ]


async def examined(hone: Hone, soak: Soak, provider: Provider) -> list[str]:
    """What the store holds in the end, against what was said, heard and due."""
    wrong = [f"shown: {each}" for each in soak.wrong]
    by: defaultdict[str, set[str]] = defaultdict(set)
    for words in (*provider.seen, *soak.ended):
        by[words.split("-")[1]].add(words)
    jobs = await hone.jobs.jobs()
    wrong += [
        f"lost: review {job.id} is {job.state}: {job.error}" for job in jobs if job.state is not State.DONE
    ]
    for number, session in soak.sessions.items():
        transcript = (await hone.sessions.load(session)).transcript
        ended = by[number] & soak.ended.keys()
        wrong += [f"{session}: {each}" for each in wrongs(number, transcript, by[number], ended)]
        turns = sum(message.text.startswith("It says ") for message in transcript)
        due, made = turns // EVERY, sum(job.session == session for job in jobs)
        wrong += [f"{session}: lost: {due} reviews were due, {made} were made"] if made < due else []
        wrong += [f"{session}: doubled: {due} reviews were due, {made} were made"] if made > due else []
    wrong += [f"doubled: {words}" for words, count in provider.seen.items() if count > 1]
    assert isinstance(hone.ledger, SqliteLedger)
    wrong += [f"unsound: {each}" for each in await hone.ledger.unsound()]
    sane = integrity(hone.home)
    return wrong if sane == "ok" else [*wrong, f"unsound: {sane}"]


@asynccontextmanager
async def staged() -> AsyncIterator[tuple[FakeProvider, Provider]]:
    provider = Provider()
    async with FakeProvider(provider.speak, keep=False) as stage:
        yield stage, provider
    assert stage.invalid == []


@pytest.mark.timeout(1_800)
async def test_many_conversations_over_four_processes_lose_and_double_nothing_and_show_no_error(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    sessions, random = tier.size(short=16, full=200), tier.random()
    between = (600, 2_400) if tier.long else (40, 120)
    async with staged() as (stage, model):
        soak = Soak(home, tmp_path, stage.url, turns=ENDLESS if tier.long else 6)
        await soak.begin(sessions)

        async def disturb(kills: int) -> None:
            for _ in range(kills):
                model.await_calls(random.randint(*between))
                await model.reached.wait()
                await soak.kill(random)

        if tier.long:
            with suppress(TimeoutError):
                await asyncio.wait_for(disturb(ENDLESS), SECONDS)
            soak.stop()
        else:
            await disturb(2)
        await soak.finish()
        model.await_calls(3)
        await soak.drain(model.reached, random)
        async with furnish(home, tmp_path, provider("openai", stage.url), settings=SETTINGS) as hone:
            wrong, jobs = await examined(hone, soak, model), await hone.jobs.jobs()
    lost = sum("lost: " in each for each in wrong)
    worst = quantiles(soak.ended.values(), n=100)[-1]
    figures.tally(
        len(soak.ended),
        got_in=len(wrong) - lost,
        lost=lost,
        note=f"turns of {sessions} conversations over {PROCESSES} processes with {soak.kills} kills, "
        f"{len(jobs)} reviews; 99 of 100 turns within {worst:.2f} s",
    )
    assert not wrong, "\n".join(wrong[:50])
    assert len(soak.sessions) == sessions
