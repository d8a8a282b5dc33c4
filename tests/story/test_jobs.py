"""J2: a worker in one home does what other homes and other owners left: reviews, the curator's rounds,
vectors, copies for a memory backend, experiments and imports; each owner within a budget of its own."""

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hone import Hone
from hone.cli.queued import QUEUED
from hone.core.clock import ManualClock
from hone.core.documents import QUEUED as DOCUMENTS
from hone.core.ids import SessionId
from hone.core.jobs import State
from hone.core.ledger import Actor, ChangeState, skill
from hone.core.messages import Message, assistant, user
from hone.core.model import Usage
from hone.core.ports import Header, Spending
from hone.core.skill import ARCHIVED, SkillOrigin
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.features.backends.postgres import PostgresBackend
from hone.features.curator.curator import QUIET
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.queued import QueuedExperiment
from hone.features.experiments.queued import queue as queue_experiment
from hone.features.experiments.subjects import find
from hone.features.experiments.values import Check, LessonKind, Task
from hone.features.imports.plan import survey
from hone.features.imports.queued import queue as queue_import
from hone.features.imports.sources import source_files
from hone.features.recall.part import RecallPart
from hone.knowledge.skills.folder import Create
from hone.learning.budget import tomorrow
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted, call, lines
from hone.runtime.queued import CommandQueue
from hone.settings import Settings
from hone.settings.sections import ProviderSettings, RecallSettings
from hone.web.owners_hone import OwnersHone
from tests import databases
from tests.cli.driving import hone
from tests.curating import LEARNED, document, merge
from tests.doubles.embeddings import EmbeddingServer
from tests.features import others
from tests.stores.postgres_worker import PREFIX

ANNA = "anna"
BODIES = {
    "trip-planning": "# Steps\nPack.",
    "night-trains": "# Trains\nBook early.",
    "old-habit": "# Habit\nDo it.",
}
NAMES = ("trip-planning", "night-trains")
BODY = "# Steps\nPack, then book.\n\n# Trains\nBook early."
PLAN = json.dumps(merge("trip-planning", ["night-trains"], BODY))
CURATES = "Below are the skills you learned for this user"
SAID = "Remember: I deploy on Tuesdays, always."
LESSON = "Deploys happen on Tuesdays."
REQUEST = "Count the rows."
HELD = 4
"""The run of the experiment during which its worker is killed."""
SCRIPTED = 'model = "openai/scripted"\n[learning]\nmodel = "openai/scripted"\n'
SOON = timedelta(seconds=6)
"""How long after the last words the home counts as quiet. A worker has started by then, and looked."""
SETTINGS = """\
model = "openai/scripted"
[learning]
model = "openai/scripted"
merges = "ask"
[memory]
backend = "postgres"
url = "{memory}"
owner = "worker"
[recall]
embedder = "near/letters"
[providers.near]
url = "{near}"
format = "openai"
"""


def answer(messages: Sequence[Message]) -> Message:
    """Review, or curate."""
    if any(CURATES in message.text for message in messages):
        return assistant(PLAN)
    if any(message.result for message in messages):
        return assistant("Saved.")
    return assistant(call("memory", action="add", target="memory", text=LESSON, evidence=["#1"]))


@pytest.fixture
def database() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


@pytest.fixture
def memory() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


class Makers:
    """The Hones in which work is made: of the database's own owner, and of another one. None does any."""

    def __init__(self, root: Path, database: str, clock: ManualClock, **more: object) -> None:
        self._root, self._clock = root, clock
        self._settings = Settings(database=database, **more)  # type: ignore[arg-type]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> dict[str, Hone]:
        model = Scripted(lines("Yes."))
        folder = self._root / "work"
        folder.mkdir(exist_ok=True)
        own = Hone(
            home=self._root / "maker",
            model=model,
            folder=folder,
            settings=self._settings,
            clock=self._clock,
            learning="queue",
        )
        await self._stack.enter_async_context(own)
        assert own.stores.open_owner
        home = self._root / ANNA
        home.mkdir(exist_ok=True)
        other = OwnersHone(home, own, own.stores.open_owner(ANNA, home), learning="queue")
        self._stack.push_async_callback(other.close, wait=False)
        return {"": own, ANNA: other}

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()


def prepare(home: Path, text: str) -> Path:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "hone.toml").write_text(text)
    return home


def environment(home: Path, database: str, provider: FakeProvider) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HONE_HOME": str(home),
        "HONE_LOCAL": "false",
        "HONE_DATABASE": database,
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "OPENAI_API_KEY": "sk-test",
        "LANG": "C.UTF-8",
    }


@asynccontextmanager
async def worker(env: dict[str, str]) -> AsyncIterator[Process]:
    """A real one. It ends in order, and has said nothing strange."""
    command = (sys.executable, "-m", "hone", "worker", "--concurrency", "2")
    process = await asyncio.create_subprocess_exec(*command, env=env, stdout=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
    assert b"Traceback" not in err, err.decode()
    print(out.decode(), err.decode())


async def until(happened: Callable[[], Awaitable[object]]) -> None:
    """The worker is another process."""
    async with asyncio.timeout(60):
        while not await happened():  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def learn(hone: Hone, *names: str) -> None:
    for name in names:
        await hone.library.keeper.edit_skill(
            name, Create(document(name, BODIES[name]), SkillOrigin.AGENT), LEARNED
        )


async def use(hone: Hone, since: datetime, days: int) -> None:
    """Have a conversation that has a reply on each of these days."""
    header = Header(SessionId("life"), since)
    line = Transcript(PREFIX.digest).then(user("hello"), Trust.OWNER, since)
    await hone.sessions.start(header, PREFIX, line.nodes)
    for day in range(days):
        at = since + timedelta(days=day)
        line = line.then(assistant(f"day {day}"), Trust.AGENT, at)
        await hone.sessions.append(
            header.id, line.nodes[-1:], Spending(at, "test/model", Origin.USER, Usage(1, 0))
        )


async def test_a_worker_does_what_other_homes_and_other_owners_left(
    tmp_path: Path, database: str, memory: str
) -> None:
    now = datetime.now(UTC)
    clock = ManualClock(now - timedelta(days=100))
    with EmbeddingServer() as near:
        providers = {"near": ProviderSettings(url=near.url, format="openai")}
        chosen = RecallSettings(embedder="near/letters")
        async with Makers(tmp_path, database, clock) as makers, FakeProvider(answer) as provider:
            await learn(makers[ANNA], "old-habit")
            await use(makers[ANNA], clock.now(), 99)
            spoken = now - QUIET + SOON
            clock.advance((spoken - clock.now()).total_seconds())
            for hone in makers.values():
                await learn(hone, *NAMES)
                await (await hone.session()).send(SAID)
                assert not await hone.jobs.waiting(), "a look is no review yet"
            text = SETTINGS.format(memory=memory, near=near.url)
            async with worker(environment(prepare(tmp_path / "worker", text), database, provider)):
                for hone in makers.values():
                    await until(hone.stores.curator_runs.runs)
                readers = Makers(tmp_path, database, clock, recall=chosen, providers=providers)
                async with readers as seeing:
                    for hone in seeing.values():
                        embedder = await hone.part(RecallPart).embedder()
                        assert embedder
                        await until(lambda: covered(hone, embedder.id))  # noqa: B023
                backend = PostgresBackend(memory, clock, is_cloud=False)
                for name in ("worker", ANNA):
                    await until(lambda: kept(backend, name))  # noqa: B023
                await backend.close()
            for hone in makers.values():
                [job] = await hone.jobs.jobs()
                assert (job.state, len(job.changes)) == (State.DONE, 1)
                [run] = await hone.stores.curator_runs.runs()
                assert run.at >= spoken + QUIET, "nobody had used Hone for two hours"
                waits = [entry.change.target for entry in await hone.ledger.pending()]
                assert waits == [skill(name) for name in NAMES], "its plan waits for the owner"
                post = await hone.stores.outbox.post()
                assert (post.waiting, post.refused) == (0, 0)
            [run] = await makers[ANNA].stores.curator_runs.runs()
            archived = [await makers[ANNA].ledger.entry(id) for id in run.changes]
            done = [each.change for each in archived if each.change.standing is ChangeState.ACTIVE]
            assert [each.target for each in done] == [skill("old-habit")]
            assert ARCHIVED in await makers[ANNA].ledger.held(skill("old-habit"))


class Trials:
    """Answers runs of the experiment, and holds back the fourth answer until it is let go."""

    def __init__(self) -> None:
        self.gate, self.reached, self.count = asyncio.Event(), asyncio.Event(), 0
        self.gate.set()

    def __call__(self, messages: Sequence[Message]) -> Message:
        if REQUEST not in messages[-1].text:
            return answer(messages)
        self.count += 1
        if self.count == HELD:
            self.gate.clear()
            self.reached.set()
        return assistant("There are 42 rows.")


async def test_a_queued_experiment_and_imports_outlive_their_worker_and_are_done_once(
    tmp_path: Path, database: str
) -> None:
    trials, clock = Trials(), ManualClock(datetime.now(UTC))
    async with (
        Makers(tmp_path, database, clock) as makers,
        FakeProvider(trials, gate=trials.gate) as provider,
    ):
        own, anna = makers[""], makers[ANNA]
        await learn(own, "trip-planning")
        task = Task("rows", SessionId("x"), clock.now(), str(tmp_path / "work"), REQUEST, Check(text="42"))
        own.part(ExperimentsPart).studies.add(task)
        env = environment(prepare(tmp_path / "cli", SCRIPTED), database, provider)
        given = ("rows", "--skill", "trip-planning", "--pairs", "3", "--all-pairs", "--queue")
        for _ in range(2):
            done = await hone("experiment", "run", *given, env=env)
            assert done.out == QUEUED.format(number=1) + "\n", "queued once"
        path = others.write(tmp_path / "there", "claude-code", turns=2)
        done = await hone("import", "claude-code", str(path), "--queue", "--yes", env=env)
        assert QUEUED.format(number=2) in done.out
        files = source_files("claude-code", path)
        plan = await survey(anna.sessions, "claude-code", files, lambda _: None, foreign=True)
        assert queue_import(anna, "claude-code", plan, foreign=True).number == 1
        shutil.rmtree(tmp_path / "there")
        assert [each.header.id for each in await own.sessions.list()] == []

        first, second = (
            environment(prepare(tmp_path / name, SCRIPTED), database, provider) for name in ("w1", "w2")
        )
        async with worker(first) as process:
            async with asyncio.timeout(60):
                await trials.reached.wait()
            process.kill()
            await process.wait()
            trials.gate.set()
        async with worker(second):
            for each in makers.values():
                await until(lambda: is_idle(each))  # noqa: B023
        study = next(iter(own.part(ExperimentsPart).studies.studies("rows")))
        assert (len(study.runs), study.whole) == (6, True)
        assert trials.count == 7, "one was broken off, and none is run again that was finished"
        charged = await own.sessions.spending(origins=(Origin.CURATOR,))
        assert len(charged) == 6, "they count toward the budget of the day"
        for each, trust in ((own, Trust.OWNER), (anna, Trust.FOREIGN)):
            [found] = await each.sessions.list()
            assert len((await each.sessions.load(found.header.id)).transcript) == found.messages > 2
            assert (await each.sessions.load(found.header.id)).transcript.nodes[0].trust is trust
            names = each.documents.names(DOCUMENTS)
            assert not [name for name in names if "/" in name], "nothing that was imported is left behind"
        told = (await hone("worker", "status", env=env)).out
        assert "Command 1, experiment rows, skill trip-planning: undecided, " in told
        assert "Command 2, import of 1 conversation from claude-code: " in told


async def is_idle(hone: Hone) -> bool:
    return not CommandQueue(hone.documents, hone.clock).waiting()


async def test_what_one_owner_has_spent_stops_nobody_elses_work(tmp_path: Path, database: str) -> None:
    trials, clock = Trials(), ManualClock(datetime.now(UTC))
    async with (
        Makers(tmp_path, database, clock) as makers,
        FakeProvider(trials, gate=trials.gate) as provider,
    ):
        own, anna = makers[""], makers[ANNA]
        for each in makers.values():
            session = await each.session()
            await session.send(SAID)
            await each.jobs.enqueue(session.id, 2, frozenset({"memory"}), "by hand", clock.now())
        await learn(anna, "trip-planning")
        task = Task("rows", SessionId("x"), clock.now(), str(tmp_path / "work"), REQUEST, Check(text="42"))
        anna.part(ExperimentsPart).studies.add(task)
        subject = await find(anna, tmp_path / "work", LessonKind.SKILL, "trip-planning")
        wanted = QueuedExperiment(
            *("rows", LessonKind.SKILL, "trip-planning", subject.lesson.digest, "openai/scripted", 3),
            early=True,
        )
        await queue_experiment(anna, task, subject, wanted)
        spent = Spending(clock.now(), "m", Origin.REVIEW, Usage(1, cost=5.0))
        line = (await anna.sessions.load(session.id)).transcript
        nodes = line.then(assistant("More."), Trust.AGENT, clock.now()).nodes
        await anna.sessions.append(session.id, nodes[-1:], spent)
        async with worker(environment(prepare(tmp_path / "worker", SCRIPTED), database, provider)):
            await until(own.ledger.entries)
            await until(lambda: has_stopped(anna))
        [job] = await anna.jobs.jobs()
        assert (job.state, job.tries, job.changes) == (State.QUEUED, 0, ())
        assert "The budget of 1.00 USD a day is spent" in job.error
        [command] = CommandQueue(anna.documents, clock).waiting()
        assert command.due == tomorrow(clock.now())
        assert trials.count == 0
        assert [each.change.author.actor for each in await own.ledger.entries()] == [Actor.REVIEW]


async def has_stopped(hone: Hone) -> bool:
    [command] = CommandQueue(hone.documents, hone.clock).waiting()
    [job] = await hone.jobs.jobs()
    return "budget" in command.said and "budget" in job.error


async def covered(hone: Hone, embedder: str) -> bool:
    found = await hone.stores.vectors.coverage(embedder)
    return found.made > 0 and not found.left


async def kept(backend: PostgresBackend, user: str) -> bool:
    """Whether all copies are there, under the owner's name."""
    keys = await backend.list_keys(user)
    values = [item.value for key in keys if (item := await backend.retrieve(user, key))]
    return LESSON in values and sum("/skill/" in key for key in keys) >= len(NAMES)
