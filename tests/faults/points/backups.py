"""Scenarios of a backup that is written, and of a home that is replaced by one."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hone import Hone
from hone.core.errors import HoneError
from hone.core.holding import Holding
from hone.core.ledger import MEMORY, USER
from hone.features.backups.restoring import RestoreOptions, restore_backup
from hone.features.backups.writing import verify_backup, write_backup
from hone.holdings import all_holdings
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.models.scripted import Scripted, rounds
from hone.settings import Settings
from tests.faults.points.scenario import DONE, Say, Told, lying, unsound

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FILE = "a.tgz"
REPLACE = RestoreOptions(replace=True)


def quiet(*_: object) -> None:
    return


def opened(home: Path) -> Hone:
    return Hone(home=home, settings=Settings(), model=Scripted(rounds("Yes.")), learning="queue")


def holdings() -> Sequence[Holding]:
    return all_holdings(opened(Path("nowhere")).parts("holdings"))


async def furnish(home: Path, fact: str) -> None:
    home.mkdir(mode=0o700)
    async with opened(home) as hone:
        await (await hone.session()).send(f"My fact is {fact}.")
        await hone.keeper.note([(MEMORY, Add(f"{fact} is a fact."))], OWNER)
        await hone.keeper.note([(USER, Add(f"Likes {fact}."))], OWNER)
    (home / "spill").mkdir()
    (home / "spill" / "long").write_text(fact * 10_000)
    (home / "keys.json").write_text("{}")


async def view(home: Path) -> object:
    """All there is to know of a home; nothing if there is none."""
    if not home.exists():
        return None
    async with opened(home) as hone:
        found = await hone.sessions.list(None, None)
        said = [[each.text for each in (await hone.sessions.load(one.header.id)).transcript] for one in found]
        known = [await hone.keeper.text(target) for target in (MEMORY, USER)]
        made = len(await hone.ledger.entries())
    return said, known, made, len((home / "spill" / "long").read_bytes()), (home / "keys.json").exists()


def back_up(home: Path, file: Path, *, force: bool = False) -> None:
    write_backup(home, holdings(), file, NOW, quiet, force=force)


@dataclass(frozen=True)
class BackingUp:
    """The file is there and sound, or not there; the home is as it was."""

    name: str = "backup"

    async def prepare(self, root: Path) -> None:
        await furnish(root / "home", "tea")

    async def rehearse(self, root: Path) -> tuple[object, set[str]]:
        await asyncio.to_thread(back_up, root / "home", root / FILE)
        return await view(root / "home"), lying(root)

    async def act(self, root: Path, say: Say) -> None:
        await asyncio.to_thread(back_up, root / "home", root / FILE)
        say(f"{DONE}written")

    async def inspect(self, root: Path, told: Told, expected: tuple[object, set[str]]) -> list[str]:
        seen, known = expected
        wrong = []
        if told.all(DONE) and not (root / FILE).exists():
            wrong.append("lost: the backup")
        if not told.all(DONE) and (root / FILE).exists() and not told.may_be_there:
            wrong.append("doubled: a backup is there that was refused")
        if (root / FILE).exists():
            wrong += unusable(root / FILE)
        await asyncio.to_thread(back_up, root / "home", root / FILE, force=True)
        wrong += unusable(root / FILE)
        if await view(root / "home") != seen:
            wrong.append("half: the home is not what it was")
        left = lying(root) - known
        return wrong + ([f"debris: {sorted(left)}"] if left else []) + await unsound(root / "home")


def unusable(file: Path) -> list[str]:
    try:
        verify_backup(file, quiet)
    except HoneError as error:
        return [f"half: {error}"]
    return []


@dataclass(frozen=True)
class Restoring:
    """The home is the old one or the new one. If it is the new one, the old one is kept beside it."""

    name: str = "restore"

    async def prepare(self, root: Path) -> None:
        await furnish(root / "home", "tea")
        await asyncio.to_thread(back_up, root / "home", root / FILE)
        shutil.rmtree(root / "home")
        await furnish(root / "home", "coffee")

    async def rehearse(self, root: Path) -> tuple[object, object]:
        old = await view(root / "home")
        await asyncio.to_thread(replace, root)
        new = await view(root / "home")
        assert old != new
        return old, new

    async def act(self, root: Path, say: Say) -> None:
        await asyncio.to_thread(replace, root)
        say(f"{DONE}restored")

    async def inspect(self, root: Path, told: Told, expected: tuple[object, object]) -> list[str]:
        old, new = expected
        found, wrong = await view(root / "home"), list[str]()
        if found not in (old, new):
            return [f"half: {found!r:.2000}"]
        if told.all(DONE) and found != new:
            wrong.append("lost: the restored home")
        if not told.all(DONE) and found == new and not told.may_be_there:
            wrong.append("doubled: the home was replaced, and this was refused")
        await asyncio.to_thread(replace, root)
        if await view(root / "home") != new:
            wrong.append("half: the next restore does not come to the same end")
        beside = [each for each in root.iterdir() if each.name not in ("home", FILE)]
        views = [await view(each) for each in beside if not each.name.startswith(".")]
        if old not in views:
            wrong.append("lost: the home that was replaced")
        wrong += [f"debris: {each.name}" for each in beside if each.name.startswith(".")]
        return wrong + await unsound(root / "home")


def replace(root: Path) -> None:
    restore_backup(root / FILE, root / "home", holdings(), REPLACE, NOW, quiet)
