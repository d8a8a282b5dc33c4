"""F6: a backup while others talk, learn, edit and delete holds everything that was acknowledged before it."""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hone import Hone
from hone.cli.doctor import examine
from hone.cli.options import Options
from hone.core.holding import Holding
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, skill
from hone.core.skill import DOCUMENT
from hone.features.backups.restoring import RestoreOptions, restore_backup
from hone.features.backups.writing import write_backup
from hone.holdings import all_holdings
from hone.knowledge.journal import entries
from hone.models.scripted import Scripted, echo
from tests.conftest import Figures, Tier
from tests.faults import backup_worker
from tests.faults.backup_worker import DEEDS, NAME, SETTINGS
from tests.faults.beside import ROOT

STEPS = 15
"""Steps that each process takes around one backup."""

Told = dict[str, list[str]]
"""What a process said, by its first word."""


@dataclass
class Worker:
    """A process beside the tests, and all that it has said so far."""

    process: Process
    told: Told = field(default_factory=lambda: defaultdict(list))
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        assert self.process.stdout
        async for line in self.process.stdout:
            word, _, rest = line.decode().rstrip("\n").partition(" ")
            if word == "idle":
                self.idle.set()
            else:
                self.told[word].append(rest)
                self.begun.set()
        self.idle.set()
        self.begun.set()

    def order(self, steps: int) -> None:
        self.idle.clear()
        self.begun.clear()
        assert self.process.stdin
        self.process.stdin.write(f"{steps}\n".encode())


async def start(deed: str, home: Path) -> Worker:
    command = (sys.executable, "-W", "error", backup_worker.__file__, deed, str(home))
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environ)
    return Worker(process)


def merged(workers: list[Worker]) -> Told:
    return {word: list(rest) for worker in workers for word, rest in worker.told.items()}


async def missing(home: Path, before: Told, after: Told) -> list[str]:
    """What of the things acknowledged before is gone, although nobody has removed it."""
    lost: list[str] = []
    async with Hone(home=home, settings=SETTINGS, model=Scripted(echo), learning="queue") as hone:
        texts: dict[str, set[str]] = {}
        for line in before.get("said", []):
            id, _, words = line.partition(" ")
            if id not in texts:
                stored = await hone.sessions.load(SessionId(id))
                texts[id] = {message.text.strip() for message in stored.transcript}
            lost += [] if words in texts[id] else [f"said {words}"]
        known = set(entries(await hone.keeper.text(MEMORY)))
        wanted = set(before.get("learned", [])) - set(after.get("removing", []))
        lost += [f"learned {each}" for each in wanted - known]
        counted = max(map(int, before.get("counted", ["0"])))
        document = (await hone.keeper.files(skill(NAME))).get(DOCUMENT, b"Counted: 0.").decode()
        found = int(document.rpartition("Counted: ")[2].rstrip(".\n"))
        lost += [] if found >= counted else [f"counted {counted}, found {found}"]
        there = {each.header.id for each in await hone.sessions.list(None, None)}
        lost += [f"kept {id}" for id in {*before.get("kept", [])} - {*after.get("deleting", [])} - there]
        lost += [f"deleted {id} is back" for id in {*before.get("deleted", [])} & there]
    return lost


async def unsound(home: Path) -> list[str]:
    """What the doctor finds, and files that it takes for edited by hand: nobody has edited any."""
    checks = [each async for each in examine(Options(home=home), deep=True)]
    return [line for well, line in checks if not well or "changed by hand" in line]


def holdings(home: Path) -> tuple[Holding, ...]:
    return all_holdings(Hone(home=home, settings=SETTINGS).parts("holdings"))


@pytest.mark.timeout(3_600)
async def test_a_backup_under_load_restores_to_a_sound_home_that_lacks_nothing(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    home, file, new = tmp_path / "home", tmp_path / "a.tgz", tmp_path / "new"
    home.mkdir(mode=0o700)
    tried, acknowledged, wrong, lost, at = 0, 0, list[str](), list[str](), list[int]()
    workers = [await start(deed, home) for deed in DEEDS]
    async with asyncio.TaskGroup() as tasks:
        for worker in workers:
            tasks.create_task(worker.listen())
        for draw in tier.draws(short=2, full=100):
            for worker in workers:
                worker.order(STEPS)
            for worker in workers:
                await worker.begun.wait()
            before = merged(workers)
            now = datetime.now(UTC)
            await asyncio.to_thread(
                write_backup, home, holdings(home), file, now, lambda *_: None, force=True
            )
            for worker in workers:
                await worker.idle.wait()
            options = RestoreOptions()
            await asyncio.to_thread(restore_backup, file, new, holdings(home), options, now, lambda *_: None)
            gone = await missing(new, before, merged(workers))
            ill = await unsound(new)
            lost, wrong, tried = lost + gone, wrong + ill, tried + 1
            acknowledged += sum(map(len, before.values()))
            at += [draw.index] if gone or ill else []
            shutil.rmtree(new)
        for worker in workers:
            assert worker.process.stdin
            worker.process.stdin.close()
    note = f"backups under load, restored; {acknowledged:,} acknowledged before them"
    figures.tally(tried, got_in=len(wrong), lost=len(lost), note=note, at=at)
    assert [await worker.process.wait() for worker in workers] == [0, 0, 0, 0]
    assert (wrong, lost) == ([], [])
