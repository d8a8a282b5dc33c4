"""Scenarios of what lies beside conversations: templates, memos by key, copies for a backend, an import."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from hone import Hone
from hone.cli.main import perform
from hone.core.backend import Backend
from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.ledger import USER, Actor, Author, memory_item
from hone.core.trust import Trust
from hone.features.backends.part import MemoryPart
from hone.features.backends.sqlite import SqliteBackend
from hone.features.imports.plan import TOGETHER
from hone.features.templates.store import Templates
from hone.features.templates.values import Example, Template, WorkKind
from hone.files.documents import FileDocuments
from hone.knowledge import journal
from hone.knowledge.items import Items, KeptMemory, load
from hone.knowledge.keeper import OWNER
from hone.models.scripted import Scripted, rounds
from hone.settings import Settings
from hone.settings.sections import Memory
from tests.backing import closing
from tests.faults.points.scenario import DONE, REFUSED, Deeds, Say, Told, debris, lying, unsound
from tests.features import others
from tests.given import NOON

EXAMPLE = Example("read_file", '{"path":"a"}', "hello\n" * 400, 2_400, Trust.AGENT, Trust.LOCAL)


async def empty(root: Path) -> None:
    (root / "home").mkdir(mode=0o700)


# Templates


@asynccontextmanager
async def shelf(root: Path) -> AsyncIterator[Templates]:
    yield Templates(FileDocuments(root / "home"))


def template(name: str) -> Template:
    return Template(name, WorkKind.FILE, SessionId("5e55"), NOON, "", (), (EXAMPLE,))


templates = Deeds(
    "template",
    empty,
    shelf,
    (
        lambda it: it.add(template("rows")),
        lambda it: it.count("rows", SessionId("ab12")),
        lambda it: it.add(template("columns")),
        lambda it: it.rate("rows", 0.25),
        lambda it: it.delete("columns"),
    ),
    Templates.all,
)


# Memos


@asynccontextmanager
async def memories(root: Path) -> AsyncIterator[Backend]:
    async with closing(SqliteBackend(root / "home" / "memories.db", ManualClock())) as backend:
        yield backend


async def memos(it: Backend) -> object:
    keys = sorted(await it.list_keys("ann", 100))
    found = [await it.retrieve("ann", key) for key in keys]
    asked = sorted(each.key for each in await it.query("ann", "tea"))
    return [(each.key, each.value, dict(each.metadata)) for each in found if each], asked


async def remembered(root: Path) -> None:
    await empty(root)
    async with memories(root) as it:
        await it.store("ann", "old", "likes rain")


backend = Deeds(
    "backend",
    remembered,
    memories,
    (
        lambda it: it.store("ann", "drink", "green tea" + 40 * " and more of it"),
        lambda it: it.store("ann", "food", "bread", {"from": "here"}),
        lambda it: it.store("ann", "drink", "black tea"),
        lambda it: it.delete("ann", "old"),
    ),
    memos,
)


# Copies for a backend

COPIED = Settings(memory=Memory(backend="sqlite", owner="ann"))


@asynccontextmanager
async def mirrored(root: Path) -> AsyncIterator[Hone]:
    async with Hone(
        home=root / "home", settings=COPIED, model=Scripted(rounds("Yes.")), learning="queue"
    ) as hone:
        yield hone


async def noted(hone: Hone, number: int) -> None:
    await hone.keeper.note([(USER, journal.Add(f"Fact number {number}."))], OWNER)


async def copied(hone: Hone, number: int) -> None:
    await noted(hone, number)
    await hone.part(MemoryPart).worker.drain()


async def copies(hone: Hone) -> object:
    """The journal, and what the backend has once all letters are delivered: the very same entries."""
    entries = journal.entries(await hone.keeper.text(USER))
    await hone.part(MemoryPart).worker.drain()
    backend = hone.part(MemoryPart).backing.make("sqlite")
    keys = await backend.list_keys("ann", 100)
    memos = [await backend.retrieve("ann", key) for key in keys]
    values = sorted(memo.value for memo in memos if memo)
    return entries, values == sorted(entries) or values, (await hone.stores.outbox.post()).waiting


outbox = Deeds(
    "outbox",
    empty,
    mirrored,
    (lambda it: noted(it, 1), lambda it: copied(it, 2), lambda it: copied(it, 3)),
    copies,
)


# Items of a backend

AGENT = Author(Actor.AGENT, trust_floor=Trust.AGENT)


async def kept(hone: Hone, key: str, value: str) -> None:
    """As the tool does: recorded, then delivered while somebody waits."""
    items = Items(hone.keeper, hone.clock)
    entry = await items.keep(memory_item("ann", key), KeptMemory(value, Trust.AGENT), AGENT)
    assert entry is not None
    await hone.part(MemoryPart).deliver(entry)


async def taken_back(hone: Hone) -> None:
    await hone.keeper.undo((await hone.ledger.entries())[0].id)
    await hone.part(MemoryPart).worker.drain()


async def held_items(hone: Hone) -> object:
    """What the ledger holds, and whether the backend has the same once all letters are delivered."""
    await hone.part(MemoryPart).worker.drain()
    backend = hone.part(MemoryPart).backing.make("sqlite")
    held: dict[str, str] = {}
    there: dict[str, str] = {}
    for key in ("drink", "food"):
        memory, memo = await load(hone.ledger, memory_item("ann", key)), await backend.retrieve("ann", key)
        held |= {key: memory.value} if memory else {}
        there |= {key: memo.value} if memo else {}
    waiting = (await hone.stores.outbox.post()).waiting
    return held, there == held or there, waiting, len(await hone.ledger.entries())


items = Deeds(
    "items",
    empty,
    mirrored,
    (
        lambda it: kept(it, "drink", "green tea"),
        lambda it: kept(it, "food", "bread"),
        lambda it: kept(it, "drink", "black tea"),
        taken_back,
    ),
    held_items,
)


# An import


@dataclass(frozen=True)
class Import:
    """Conversations of another program, stored a few at a time; each is there as a whole or not at all."""

    name: str = "import"

    async def prepare(self, root: Path) -> None:
        await empty(root)
        there = root / "there" / "projects"
        there.mkdir(parents=True)
        for number in range(2 * TOGETHER):
            (there / f"{number}.jsonl").write_bytes(others.lines(others.claude(f"s{number}")))

    async def rehearse(self, root: Path) -> tuple[dict[str, str], set[str]]:
        assert (await asyncio.to_thread(bring, root))[0] == 0
        return await heads(root), lying(root)

    async def act(self, root: Path, say: Say) -> None:
        code, message = await asyncio.to_thread(bring, root)
        for line in message.splitlines():
            say(f"{REFUSED}{line}")
        if code == 0:
            say(f"{DONE}all")

    async def inspect(self, root: Path, told: Told, expected: tuple[dict[str, str], set[str]]) -> list[str]:
        whole, known = expected
        found = await heads(root)
        wrong = [f"half: {id}" for id, head in found.items() if whole.get(id) != head]
        if told.all(DONE) and found != whole:
            wrong.append(f"lost: {len(whole) - len(found)} conversations")
        code, message = await asyncio.to_thread(bring, root)
        if (code, await heads(root)) != (0, whole):
            wrong.append(f"half: the next import ends with {message}")
        return wrong + debris(root, known) + await unsound(root / "home")


def bring(root: Path) -> tuple[int, str]:
    """Like `hone import`: its exit code, and what it has to say beside the result."""
    there = root / "there" / "projects"
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = perform(["--home", str(root / "home"), "import", "claude-code", str(there), "--yes"])
    return code, err.getvalue().strip()


async def heads(root: Path) -> dict[str, str]:
    async with Hone(home=root / "home", settings=Settings()) as opened:
        found = await opened.sessions.list(None, None)
        ids = [each.header.id for each in found]
        return {id: (await opened.sessions.load(id)).transcript.head for id in ids}
