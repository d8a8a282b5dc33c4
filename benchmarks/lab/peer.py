"""The peer as a learner in the lab: its process, and how the learner calls its tools."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from benchmarks.bench import environment, lodged
from hone.core.clock import ManualClock
from hone.core.messages import ToolCall
from hone.features.lab.dialect import Note, skill_name
from hone.features.lab.learner import PROFILES, Learner, Profile
from hone.features.lab.owner import CallCost, Talk, WorldOwner
from hone.features.lab.play import Played
from hone.features.lab.provider import LearnerCall, LearnerProvider
from hone.features.lab.pupil import APART
from hone.features.lab.request import MadeCall
from hone.features.lab.world import World, build
from hone.models.scripted import call

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-peer" / "bin" / "python"
REVIEW = "Review the conversation above"
SETTINGS = {
    "as installed": "",
    "review after each turn": "memory: {nudge_interval: 1}\nskills: {creation_nudge_interval: 1}\n",
    "learning off": (
        "memory: {memory_enabled: false, user_profile_enabled: false, nudge_interval: 0}\n"
        "skills: {creation_nudge_interval: 0}\n"
    ),
}
"""The content of its config.yaml."""


class PeerDialect:
    """The peer's tools."""

    def is_review(self, words: str) -> bool:
        return words.lstrip().startswith(REVIEW)

    def note(self, note: Note, action: str) -> ToolCall:
        target = "user" if note.target == "user" else "memory"
        more = {"old_text": note.old} if action == "replace" else {}
        return call("memory", action=action, target=target, content=note.text, **more)

    def teach(self, note: Note, document: str, action: str) -> ToolCall:
        return call("skill_manage", action=action, name=skill_name(note), content=document)

    def malformed(self, note: Note) -> ToolCall:
        return call("memory", action="save", target="owner", content=note.text)

    def view(self, skill: str) -> ToolCall:
        return call("skill_view", name=skill)

    def has_failed(self, attempt: MadeCall) -> bool:
        return '"success": true' not in attempt.result

    def offers_anyway(self, _: MadeCall) -> bool:
        return False


class PeerTalk:
    def __init__(self, process: "PeerProcess", provider: LearnerProvider) -> None:
        self.id = uuid4().hex
        self._process = process
        self._provider = provider
        self._begun = len(provider.exchanges)

    @property
    def system(self) -> str:
        own = (each for each in self._provider.exchanges[self._begun :] if not each.review)
        return next((each.system for each in own), "")

    async def send(self, words: str) -> Sequence[ToolCall]:
        before = len(self._provider.exchanges)
        await self._process.ask({"say": words})
        made: list[LearnerCall] = self._provider.exchanges[before:]
        return [call for each in made if not each.review for call in each.calls]


class PeerProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, told: dict[str, str]) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        await self._process.stdin.drain()
        while line := await self._process.stdout.readline():
            if line.startswith(b'{"done"'):
                return
        raise SystemExit("The peer has ended.")


class PeerPupil:
    def __init__(self, process: PeerProcess, provider: LearnerProvider, clock: ManualClock) -> None:
        self._process = process
        self._provider = provider
        self._clock = clock

    async def open(self) -> PeerTalk:
        await self._process.ask({"open": ""})
        return PeerTalk(self._process, self._provider)

    async def leave(self, _: Talk) -> None:
        self._clock.advance(APART)

    async def spent(self) -> Sequence[CallCost]:
        return [CallCost(each.review, each.usage) for each in self._provider.exchanges]


@asynccontextmanager
async def start_peer(root: Path, world: World, url: str, settings: str) -> AsyncIterator[PeerProcess]:
    """Start the peer in a new home, at work in a new folder."""
    home, work, pages = root / "home", root / "work", root / "pages.json"
    for folder in (home, work):
        folder.mkdir()
    pages.write_text(json.dumps({visit.page.url: visit.page.text for visit in world.every if visit.page}))
    environ = environment(root) | lodged(PYTHON, home, url.removesuffix("/v1"), settings)
    environ |= {"PYTHONPATH": str(ROOT), "TERMINAL_CWD": str(work)}
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        "-m",
        "benchmarks.peer.lab",
        pages,
        cwd=work,
        env=environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=(root / "errors").open("wb") if os.environ.get("LAB_ERRORS") else asyncio.subprocess.DEVNULL,
    )
    try:
        yield PeerProcess(process)
    finally:
        process.kill()
        await process.wait()


async def play_peer(world: World, profile: Profile, root: Path, settings: str) -> Played:
    """Play a world with the peer, as `play` does with Hone."""
    clock, learner = ManualClock(), Learner(world, profile, PeerDialect())
    async with (
        LearnerProvider(learner, clock) as provider,
        start_peer(root, world, provider.url, settings) as process,
    ):
        owner = WorldOwner(world, PeerPupil(process, provider, clock), root / "work")
        visits = [await owner.visit(each) for each in world.visits]
        exam = [await owner.visit(each, corrects=False) for each in world.exam]
    return Played(world.seed, tuple(visits), tuple(exam), learner.work)


PeerJob = tuple[str, str, int]
"""Takes a learner, the peer's settings by name, and a seed."""


def play_job(job: PeerJob) -> Played:
    learner, settings, seed = job
    with TemporaryDirectory(prefix="hone-lab-") as folder:
        return asyncio.run(play_peer(build(seed), PROFILES[learner], Path(folder), SETTINGS[settings]))
