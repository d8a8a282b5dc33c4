"""Another process on the same home: `python knowledge_worker.py [--nobody] DEED HOME ARGUMENTS…`.

It says `done …` when a change was acknowledged, and else what it was told. With --nobody it gives up the
rights of root first.
"""

import asyncio
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import hone
from hone.core.clock import SystemClock
from hone.core.errors import HoneError
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, Actor, Author, Evidence, skill
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.files.tree import FileTree
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.skills.folder import Create, Patch, WriteFile
from hone.knowledge.verdicts import KeeperRules
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger

NOBODY = 65534
NAME = "trip-planning"
TARGETS = (MEMORY, USER, skill(NAME))
WIDE = KeeperRules({"memory": 1_000_000, "user": 1_000_000, "project": 1_000_000}, {})
RESTS = (Evidence(SessionId("5e55"), 1, Trust.FOREIGN, "0" * 64),)
MISLED = Author(Actor.AGENT, SessionId("5e55"), evidence=RESTS, trust_floor=Trust.FOREIGN)
HEAD = f"---\nname: {NAME}\ndescription: Plan a trip day by day.\n---\n\n"


@asynccontextmanager
async def kept(home: Path, said: Callable[[str], None] = lambda _: None) -> AsyncIterator[Keeper]:
    database = Database.open(home / "hone.db")
    keeper = Keeper(SqliteLedger(database), FileTree(home), SystemClock(), said, WIDE)
    try:
        yield keeper
    finally:
        keeper.close()
        await database.close()


async def furnished(keeper: Keeper, lines: int = 6) -> None:
    """Five changes: an entry each for two parts, a skill of two files, and an entry that waits."""
    await keeper.note([(MEMORY, Add("first"))], OWNER)
    await keeper.note([(USER, Add("Likes tea."))], OWNER)
    body = "".join(f"line {number:03}: open\n" for number in range(lines))
    await keeper.edit_skill(NAME, Create(HEAD + body, SkillOrigin.AGENT), OWNER)
    await keeper.edit_skill(NAME, WriteFile("references/style.md", b"Short.\n"), OWNER)
    await keeper.note([(MEMORY, Add("Mind the zebra."))], MISLED)


def say(line: str) -> None:
    """With a system call that nothing else makes, so that the others can be counted."""
    os.writev(sys.stdout.fileno(), [f"{line}\n".encode()])


async def tell(text: str, deed: Awaitable[object]) -> None:
    try:
        await deed
    except HoneError as error:
        say(f"{type(error).__name__}: {error}".replace("\n", " "))
    else:
        say(f"done {text}")


async def add(keeper: Keeper, name: str, count: str) -> None:
    for number in range(int(count)):
        text = f"{name} {number}"
        await tell(text, keeper.note([(MEMORY, Add(text))], OWNER))


async def patch(keeper: Keeper, name: str, *numbers: str) -> None:
    for number in numbers:
        line = f"line {int(number):03}: "
        await tell(f"{line}{name}", keeper.edit_skill(NAME, Patch(f"{line}open", f"{line}{name}"), OWNER))


async def obey(keeper: Keeper) -> None:
    """Does what it reads line by line: an entry to add, a line to patch, or nothing: then it shows all."""
    for line in map(str.strip, sys.stdin):
        if line.isdigit():
            await patch(keeper, "obeyed", line)
        elif line:
            await tell(line, keeper.note([(MEMORY, Add(line))], OWNER))
        else:
            files = [await keeper.files(target) for target in TARGETS]
            say(repr([sorted(each.items()) for each in files]))


async def fill(home: Path) -> None:
    """On a small disk of its own, with a little more room every time: an entry, and what it was told."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(home)], check=True)
    ballast = home / "ballast"
    async with kept(home) as keeper:
        await furnished(keeper)
    for pages in range(24):
        said: list[str] = []
        ballast.write_bytes(bytes(_room(home) - pages * 4096))
        text = f"with room for {pages} pages. " + "x" * 9_000
        try:
            async with kept(home, said.append) as keeper:
                await tell(str(pages), keeper.note([(MEMORY, Add(text))], OWNER))
        except HoneError as error:
            say(f"{type(error).__name__}: {error}")
        say(f"  said: {' '.join(said)}")
        ballast.unlink()
        async with kept(home) as keeper:
            read = await keeper.text(MEMORY)
            found = "there" if text in read else "absent"
            same = "same" if (home / "MEMORY.md").read_text() == read else "other"
            assert isinstance(keeper.ledger, SqliteLedger)
            whole = not await keeper.ledger.unsound()
            odd = sorted(each.name for each in home.iterdir())
            say(f"  then: {found} {same} {whole} {odd}")


def _room(home: Path) -> int:
    status = os.statvfs(home)
    return status.f_bavail * status.f_bsize


async def work(home: Path, deed: str, arguments: Sequence[str]) -> None:
    deeds: dict[str, Callable[..., Awaitable[None]]] = {"add": add, "patch": patch, "obey": obey}
    if deed == "fill":
        await fill(home)
    else:
        async with kept(home) as keeper:
            await deeds[deed](keeper, *arguments)


def main(*arguments: str) -> None:
    if arguments[0] == "--nobody":
        arguments = arguments[1:]
        for module in pkgutil.walk_packages(hone.__path__, "hone."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)  # later it may not be able to read our own code
        if os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
    deed, home, *rest = arguments
    asyncio.run(work(Path(home), deed, rest))


if __name__ == "__main__":
    main(*sys.argv[1:])
