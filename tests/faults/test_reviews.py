"""E2: a review is applied exactly once, whenever the process that does it is killed."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random

from hone import Hone
from hone.core.jobs import Job, State
from hone.core.ledger import MEMORY, Actor, Entry, skill
from hone.core.messages import Message, Role, assistant
from hone.core.skill import DOCUMENT
from hone.memory.journal import entries
from hone.models.scripted import call
from hone.models.stage import Stage
from hone.models.stage.shapes import Format
from hone.runtime.session import ignore
from hone.stores.ledger import SqliteLedger
from tests.conftest import Figures, Tier, requires
from tests.faults import review_worker
from tests.faults.beside import DATABASE, ROOT, integrity, rest
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS
from tests.faults.review_worker import SETTINGS

WRITES = (
    *("write", "pwrite64", "fdatasync", "fsync", "ftruncate", "flock", "utimensat", "rename", "renameat"),
    *("renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
)
OTHERS = ("openat", "read", "pread64", "close", "futex", "sendto", "recvfrom", "epoll_wait", "fcntl", "mmap")
LINE = re.compile(r"(\d+) +(\w+)\(")
DUE = 'writev(1, [{iov_base="due'
SOME = 60
DEEDS = ("talk", "finish")
LESSON = re.compile(r"Lesson (\d) of try (\d+)\.")

Point = tuple[str, int]


class Learner:
    """Learns one thing in two places from each review it is asked for, and every time in other words."""

    def __init__(self) -> None:
        self.tries = 0

    def __call__(self, messages: Sequence[Message]) -> Message:
        asked = [message.text for message in messages if message.role is Role.USER]
        if "look back over this conversation" not in asked[-1]:
            return assistant("Done.")
        if messages[-1].role is Role.TOOL:
            return assistant("Saved.")
        self.tries += 1
        number = sum("wish" in words.splitlines()[-1] for words in asked[:-1])
        lesson = f"Lesson {number} of try {self.tries}."
        document = f"---\nname: lesson-{number}\ndescription: {lesson}\n---\n\n{lesson}\n"
        return assistant(
            call("memory", action="add", text=lesson, evidence=["#1"]),
            call(
                "skill_manage",
                action="create_anyway",
                name=f"lesson-{number}",
                text=document,
                evidence=["#1"],
            ),
        )


@dataclass
class Scene:
    """A home with a conversation whose reviews are due; the worker's turn adds one."""

    home: Path
    folder: Path
    format: Format
    stage: Stage
    learner: Learner
    due: int = 1

    def open(self) -> Hone:
        return furnish(self.home, self.folder, provider(self.format, self.stage.url), settings=SETTINGS)

    async def prepare(self) -> None:
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()
        async with self.open() as hone:
            session = await hone.session()
            for _ in range(self.due):
                await session.send("a wish")

    async def start(self, deed: str, *under: str) -> Process:
        command = [*under, sys.executable, "-W", "error", review_worker.__file__, deed]
        command += [str(self.home), str(self.folder), self.format, self.stage.url]
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environ)


@dataclass
class Tally:
    kills: int = 0
    due: int = 0
    tries: int = 0
    wrong: list[str] = field(default_factory=list)

    def count(self, word: str) -> int:
        return sum(each.startswith(word) for each in self.wrong)

    def __str__(self) -> str:
        words = ", ".join(f"{self.count(word)} {word}" for word in ("lost", "doubled", "unsound", "debris"))
        return f"{self.kills} kills, {self.due} reviews due, {words} ({self.tries} begun)"


async def aftermath(scene: Scene, tally: Tally) -> None:
    """What the next process makes of it."""
    async with scene.open() as hone:
        hone.background.attend(ignore)
        await hone.background.drain()
        jobs = list(reversed(await hone.jobs.jobs()))
        learned = await hone.library.keeper.ledger.entries(actor=Actor.REVIEW)
        wrong = [*missing(jobs, scene), *await astray(hone, jobs, learned)]
        assert isinstance(hone.library.keeper.ledger, SqliteLedger)
        wrong += [f"unsound: {each}" for each in await hone.library.keeper.ledger.unsound()]
        (talk,) = await hone.sessions.list()
        said = [message.text for message in (await hone.sessions.load(talk.header.id)).transcript]
        if said.count("Done.") != scene.due or talk.messages != 2 * scene.due:
            wrong.append(f"unsound: the conversation is {said}")
    sane = integrity(scene.home)
    wrong += [] if sane == "ok" else [f"unsound: {sane}"]
    tally.due += scene.due
    tally.tries += scene.learner.tries
    tally.wrong += [f"{each} (kill {tally.kills}, {scene.home.name})" for each in wrong + debris(scene)]


def missing(jobs: Sequence[Job], scene: Scene) -> list[str]:
    found = [f"lost: review {job.id} is {job.state}: {job.error}" for job in jobs if job.state != State.DONE]
    return found if len(jobs) == scene.due else [*found, f"lost: {len(jobs)} of {scene.due} reviews queued"]


async def astray(hone: Hone, jobs: Sequence[Job], learned: Sequence[Entry]) -> list[str]:
    """Each review wrote both its halves once, of the same try, and nobody else wrote anything."""
    wrong = []
    if sorted(entry.id for entry in learned) != sorted(id for job in jobs for id in job.changes):
        wrong.append("doubled: something was written that belongs to no review")
    text = await hone.library.keeper.text(MEMORY)
    if (hone.home / "MEMORY.md").read_text() != text:
        wrong.append("unsound: MEMORY.md is not what the ledger says")
    told = [match.groups() for match in map(LESSON.fullmatch, entries(text)) if match]
    for number in range(1, len(jobs) + 1):
        tries = [made for lesson, made in told if lesson == str(number)]
        if len(tries) != 1:
            wrong.append(f"{'doubled' if tries else 'lost'}: lesson {number} is there {len(tries)} times")
            continue
        files = await hone.library.keeper.files(skill(f"lesson-{number}"))
        printed = hone.home / "skills" / f"lesson-{number}" / DOCUMENT
        if files.get(DOCUMENT) != printed.read_bytes():
            wrong.append("unsound: a skill is not what the ledger says")
        if f"Lesson {number} of try {tries[0]}." not in printed.read_text():
            wrong.append(f"doubled: lesson {number} is put together from two tries")
    return wrong


def debris(scene: Scene) -> list[str]:
    wanted = {*DATABASE, ".lock", "MEMORY.md", "skills", "locks"}
    wanted |= {f"skills/lesson-{number}" for number in range(1, scene.due + 1)}
    wanted |= {f"skills/lesson-{number}/{DOCUMENT}" for number in range(1, scene.due + 1)}
    lying = {str(path.relative_to(scene.home)) for path in scene.home.rglob("*")}
    lying |= {path.name for path in scene.folder.iterdir()}
    return [f"debris: {sorted(lying - wanted)}"] if lying - wanted else []


def traced(strace: str, log: Path, names: Sequence[str], *more: str) -> list[str]:
    calls = ",".join(f"?{name}" for name in (*names, "writev"))
    return [strace, "-f", "-qq", "-o", str(log), "-e", f"trace={calls}", *more]


async def rehearse(strace: str, scene: Scene, deed: str, names: Sequence[str]) -> list[Point]:
    """The calls that are made from the turn's end on, each by its number in its thread."""
    log = scene.folder.with_suffix(f".{deed}")
    worker = await scene.start(deed, *traced(strace, log, names))
    assert await rest(worker) == ["due", "over"]
    made: Counter[tuple[str, str]] = Counter()
    points: set[Point] = set()
    due = False
    for line in log.read_text().splitlines():
        if match := LINE.match(line):
            thread, name = match.groups()
            due = due or DUE in line
            made[thread, name] += 1
            if due and name != "writev":
                points.add((name, made[thread, name]))
    return sorted(points)


def thinned(points: Sequence[Point], random: Random) -> list[Point]:
    """Of the calls that are made hundreds of times, such as writing a page, some; of the others, all."""
    many = {name for name, count in Counter(name for name, _ in points).items() if count > SOME}
    drawn = [random.sample([each for each in points if each[0] == name], SOME) for name in sorted(many)]
    return [each for each in points if each[0] not in many] + [each for some in drawn for each in some]


async def kill(strace: str, scene: Scene, deed: str, point: Point) -> bool:
    """True if it was killed after the turn had ended."""
    name, when = point
    inject = ["-e", f"inject={name}:signal=SIGKILL:when={when}"]
    log = scene.folder.with_suffix(".log")
    worker = await scene.start(deed, *traced(strace, log, [name], *inject))
    said = await rest(worker)
    return worker.returncode == -signal.SIGKILL and "due" in said


async def stored(scene: Scene) -> int:
    """How many turns were answered: their reviews are due, whoever was killed."""
    async with scene.open() as hone:
        (talk,) = await hone.sessions.list()
        transcript = (await hone.sessions.load(talk.header.id)).transcript
        return sum(message.text == "Done." for message in transcript)


class Range:
    """Scenes for one test, and what came of them."""

    def __init__(self, path: Path, names: Sequence[str], random: Random) -> None:
        self.strace = requires("strace")
        self.tally = Tally()
        self._path, self._names, self._random = path, names, random
        self._scenes = 0

    @asynccontextmanager
    async def scene(self, due: int = 1) -> AsyncIterator[Scene]:
        self._scenes += 1
        learner, name = Learner(), f"{self._scenes}-{self._names[0]}"
        async with Stage(learner) as stage:
            format = FORMATS[self._scenes % 2]
            home, folder = self._path / f"home{name}", self._path / f"folder{name}"
            scene = Scene(home, folder, format, stage, learner, due)
            await scene.prepare()
            yield scene
        assert stage.invalid == []

    async def points(self) -> dict[str, list[Point]]:
        found = {}
        for deed in DEEDS:
            async with self.scene() as scene:
                found[deed] = await rehearse(self.strace, scene, deed, self._names)
        return found

    async def shoot(self, wanted: int) -> int:
        """Kills the process of the turn or the next one, and sometimes one more. Each point in its turn,
        in any order. How many there are."""
        points = await self.points()
        targets = [(deed, point) for deed in DEEDS for point in thinned(points[deed], self._random)]
        self._random.shuffle(targets)
        for deed, point in cycle(targets):
            async with self.scene() as scene:
                self.tally.kills += await kill(self.strace, scene, deed, point)
                if self._random.random() < 0.3:
                    second = self._random.choice(points["finish"])
                    self.tally.kills += await kill(self.strace, scene, "finish", second)
                scene.due = await stored(scene)
                await aftermath(scene, self.tally)
            if self.tally.kills >= wanted:
                return len(targets)
        raise AssertionError("there is nothing to kill at")


async def test_a_review_killed_at_any_write_is_applied_exactly_once(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    field = Range(tmp_path, WRITES, tier.random())
    points = await field.shoot(tier.size(short=6, full=300))
    figures(f"at a write ({points} points): {field.tally}")
    assert not field.tally.wrong, "\n".join(field.tally.wrong)


async def test_a_review_killed_at_any_other_moment_is_applied_exactly_once(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    field = Range(tmp_path, OTHERS, tier.random())
    points = await field.shoot(tier.size(short=4, full=100))
    figures(f"at another call ({points} points): {field.tally}")
    assert not field.tally.wrong, "\n".join(field.tally.wrong)


async def test_of_several_processes_on_one_queue_each_review_is_done_by_one(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    field = Range(tmp_path, WRITES, tier.random())
    for _ in range(tier.size(short=1, full=10)):
        async with field.scene(due=6) as scene:
            workers = [await scene.start("finish") for _ in range(3)]
            said = await asyncio.gather(*map(rest, workers))
            assert said == [["due", "over"]] * 3
            await aftermath(scene, field.tally)
    figures(f"three processes: {field.tally}")
    assert not field.tally.wrong, "\n".join(field.tally.wrong)
    assert field.tally.tries == field.tally.due
