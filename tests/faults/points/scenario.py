"""What is played, disturbed and inspected: work that says what was acknowledged as soon as it is."""

import shutil
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from hone.learning.lookback import LEFT
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from tests.faults.beside import BESIDE, DATABASE, integrity
from tests.faults.house import unplain

T = TypeVar("T")
Say = Callable[[str], None]

REFUSED, DONE, NOTICE = "refused: ", "done ", "notice: "
KILLED = -9
DOUBTS = ("whether this was kept shows when the disk works again", "a power cut may take that back")
"""Said where nobody can know: the disk took it, and then failed to keep it for good."""
UNKEPT = "not kept"
"""Said where a home cannot be written: then nothing is promised."""
STANDING = {*DATABASE, *BESIDE, ".lock", "locks"}


class Told(Struct, frozen=True):
    """All that a process said, how it ended, and what it wrote to standard error."""

    lines: list[str]
    status: int
    errors: str

    def all(self, beginning: str) -> list[str]:
        return [line.removeprefix(beginning) for line in self.lines if line.startswith(beginning)]

    @property
    def is_kept(self) -> bool:
        return not any(UNKEPT in line for line in self.lines)

    @property
    def may_be_there(self) -> bool:
        """Whether what was not acknowledged may have taken effect all the same."""
        return self.status == KILLED or any(doubt in line for line in self.lines for doubt in DOUBTS)

    def wrong(self) -> list[str]:
        """What a user could not make sense of. A kill excuses nothing that was said before it."""
        found = [f"unplain: {why}" for line in self.all(REFUSED) + self.all(NOTICE) for why in unplain(line)]
        if self.status not in (0, KILLED):
            found.append(f"uncaught: it ended with {self.status}")
        if errors := self.errors.replace(LEFT, "").strip():
            found.append(f"uncaught: {errors[-2_000:]}")
        return found


class Scenario(Protocol):
    """`prepare`, `rehearse`, `act` and `inspect` run each in a process of its own, on a folder of their own
    below which everything lies. `inspect` gets what `rehearse` gave, and names what is lost, doubled, half
    done, lying about or unsound, with that word first."""

    @property
    def name(self) -> str: ...

    async def prepare(self, root: Path) -> None: ...

    async def rehearse(self, root: Path) -> Any: ...

    async def act(self, root: Path, say: Say) -> None: ...

    async def inspect(self, root: Path, told: Told, expected: Any) -> list[str]: ...


@dataclass(frozen=True)
class Deeds(Generic[T]):
    """Steps one after another, each acknowledged. Whatever happens, the home is as after one of them, and the
    next process goes on from there to the very same end."""

    name: str
    furnish: Callable[[Path], Awaitable[None]]
    open: Callable[[Path], AbstractAsyncContextManager[T]]
    steps: Sequence[Callable[[T], Awaitable[object]]]
    view: Callable[[T], Awaitable[object]]
    """All there is to know, without times and ids."""

    async def prepare(self, root: Path) -> None:
        await self.furnish(root)

    async def rehearse(self, root: Path) -> list[object]:
        views = []
        async with self.open(root) as it:
            views.append(await self.view(it))
            for step in self.steps:
                await step(it)
                views.append(await self.view(it))
        assert all(view not in views[:at] for at, view in enumerate(views)), "two steps leave the same"
        return [*views, lying(root)]

    async def act(self, root: Path, say: Say) -> None:
        async with self.open(root) as it:
            for number, step in enumerate(self.steps):
                await step(it)
                say(f"{DONE}{number}")

    async def inspect(self, root: Path, told: Told, expected: list[Any]) -> list[str]:
        *views, known = expected
        done = len(told.all(DONE))
        async with self.open(root) as it:
            found = await self.view(it)
            if found not in views:
                return [f"half: {found!r:.2000}"]
            wrong, at = [], views.index(found)
            if at < done:
                wrong.append(f"lost: {done} steps were acknowledged, {at} are there")
            if at > done + told.may_be_there:
                wrong.append(f"doubled: {done} steps were acknowledged, {at} are there ({told.lines[-1:]})")
            for step in self.steps[at:]:
                await step(it)
            if await self.view(it) != views[-1]:
                wrong.append("half: the next process does not come to the same end")
        return wrong + debris(root, known) + await unsound(root / "home")


async def copy_furnished(name: str, root: Path, furnish: Callable[[Path], Awaitable[None]]) -> None:
    """Furnish one home for all runs of a scenario, and copy it."""
    kept = root.with_name(f"{name}.kept")
    if not kept.exists():
        draft = root.with_name(f"{name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        await furnish(draft)
        draft.rename(kept)
    shutil.copytree(kept, root, dirs_exist_ok=True)


def lying(root: Path) -> set[str]:
    """All that is there, but what is always there."""
    return {str(each.relative_to(root)) for each in root.rglob("*") if each.name not in STANDING}


def debris(root: Path, known: Set[str]) -> list[str]:
    # The mark of a killed process goes with the next one that changes a file.
    found = {each for each in lying(root) - known if not each.startswith("home/provenance/")}
    return [f"debris: {sorted(found)}"] if found else []


async def unsound(home: Path) -> list[str]:
    """Why the database is not what it should be."""
    if not (home / "hone.db").exists():
        return []
    database = Database.open(home / "hone.db")
    try:
        found = list(await SqliteLedger(database).unsound())
    finally:
        await database.close()
    sane = integrity(home)
    return [f"unsound: {each}" for each in found + ([] if sane == "ok" else [sane])]
