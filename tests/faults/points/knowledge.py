"""Scenarios of what is known: the journal, skills, undo, approval, the archive, a curator's plan."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hone.core.clock import SystemClock
from hone.core.curation import UNNUMBERED, CuratorRun, CuratorRuns
from hone.core.ids import SessionId
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeQuery,
    Entry,
    Evidence,
    Target,
    skill,
)
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.features.curator.consolidation import moves, read
from hone.files.tree import FileTree
from hone.knowledge.folding import Batch
from hone.knowledge.journal import Add, Edit, Remove, ReplaceEntry
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.skills.document import write_document
from hone.knowledge.skills.folder import Archive, Create, Patch, Restore, WriteFile
from hone.knowledge.verdicts import KeeperRules, LearningMode
from hone.stores.curator_runs import SqliteCuratorRuns
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from tests.faults.beside import DATABASE
from tests.faults.points.scenario import Deeds

NAME = "trip-planning"
MERGED = ("trip-planning", "night-trains", "rail-journeys")
"""Two skills that become a third one."""
PLAN = """{"merge": [{"into": "rail-journeys", "sources": ["trip-planning", "night-trains"],
"description": "Plan journeys by rail.", "body": "# Steps\\nPack, then book.", "reason": "one task"}]}"""
TARGETS = (MEMORY, USER, *map(skill, MERGED), skill("bread-baking"))
LIMITS = {"memory": 2_200, "user": 1_375, "project": 2_200}
FOREIGN = (Evidence(SessionId("5e55"), 1, Trust.FOREIGN, "0" * 64),)
MISLED = Author(Actor.AGENT, SessionId("5e55"), evidence=FOREIGN, trust_floor=Trust.FOREIGN)
AGENT = Author(
    Actor.AGENT, SessionId("5e55"), evidence=(Evidence(SessionId("5e55"), 1, Trust.OWNER, "0" * 64),)
)
RESTS = (Evidence(SessionId("c0de"), 2, Trust.AGENT, "0" * 64),)
CURATOR = Author(Actor.CURATOR, SessionId("c0de"), evidence=RESTS)


@dataclass(frozen=True)
class Kept:
    home: Path
    keeper: Keeper
    curator_runs: CuratorRuns

    async def view(self) -> object:
        """Every file as it is printed, and every change in its order."""
        for target in TARGETS:
            await self.keeper.files(target)
        files = {
            str(each.relative_to(self.home)): each.read_bytes() if each.is_file() else None
            for each in self.home.rglob("*")
            if each.name not in {*DATABASE, ".lock"}
        }
        made = [
            (each.change.target, each.change.kind, each.change.standing)
            for each in await self.keeper.ledger.entries()
        ]
        return files, made, len(await self.curator_runs.runs())

    async def apply(self) -> Sequence[Entry]:
        """A curator's plan, with the round it comes from."""
        shelf = {name: await self.keeper.files(skill(name)) for name in MERGED[:2]}
        batch = Batch(moves(read(PLAN), shelf, (), {}), CURATOR)

        async def close(
            changes: Sequence[Change], contents: Mapping[str, bytes], refused: Sequence[str]
        ) -> Sequence[Entry]:
            assert not refused
            round = CuratorRun(SystemClock().now(), "by hand")
            return (await self.curator_runs.complete(round, UNNUMBERED, changes, contents))[1]

        return await self.keeper.arrange([batch], close)

    async def latest(self) -> ChangeId:
        [entry] = await self.keeper.ledger.entries(ChangeQuery(limit=1))
        return entry.id


@asynccontextmanager
async def kept(root: Path, merges: LearningMode = LearningMode.AUTO, lag: float = 0) -> AsyncIterator[Kept]:
    home = root / "home"
    database = Database.open(home / "hone.db")
    rules = KeeperRules(LIMITS, {}, merges=merges, lag=lag)
    keeper = Keeper(SqliteLedger(database), FileTree(home), SystemClock(), lambda _: None, rules)
    try:
        yield Kept(home, keeper, SqliteCuratorRuns(database))
    finally:
        keeper.close()
        await database.close()


async def shelved(it: Kept) -> None:
    """Three changes: two skills, one of them with two files."""
    for name in MERGED[:2]:
        text = write_document(name, f"About {name}.", f"# Steps\nOf {name}.")
        await it.keeper.edit_skill(name, Create(text, SkillOrigin.AGENT), OWNER)
    await it.keeper.edit_skill(NAME, WriteFile("references/more.md", b"Short.\n"), OWNER)


async def furnished(root: Path) -> None:
    """The skills, then three changes more: an entry each for two parts, and one that waits."""
    (root / "home").mkdir(mode=0o700)
    async with kept(root) as it:
        await shelved(it)
        await it.keeper.note([(MEMORY, Add("first"))], OWNER)
        await it.keeper.note([(USER, Add("Likes tea."))], OWNER)
        await it.keeper.note([(MEMORY, Add("Mind the zebra."))], MISLED)


async def proposed(root: Path) -> None:
    """The skills, and a curator's plan for them that waits."""
    (root / "home").mkdir(mode=0o700)
    async with kept(root, LearningMode.ASK) as it:
        await shelved(it)
        await it.apply()


SHELVED, NOTED, PLANNED, WAITING = map(ChangeId, (3, 4, 4, 6))
BAKING = write_document("bread-baking", "Bake bread.", "# Steps\nKnead, then wait.")

journal = Deeds(
    "journal",
    furnished,
    kept,
    (
        lambda it: it.keeper.note([(MEMORY, Add("second"))], OWNER),
        lambda it: it.keeper.note([(MEMORY, Add("third")), (USER, Add("Likes rain."))], OWNER),
        lambda it: it.keeper.note([(MEMORY, ReplaceEntry("second", "second thoughts"))], OWNER),
        lambda it: it.keeper.note([(MEMORY, Remove("first")), (USER, Remove("Likes tea."))], OWNER),
    ),
    Kept.view,
)


async def published(it: Kept, *edits: tuple[Target, Edit]) -> None:
    """An agent's note, and a moment later its files."""
    await it.keeper.note(edits, AGENT)
    await it.keeper.settle()


late = Deeds(
    "late",
    furnished,
    partial(kept, lag=3_600),
    (
        lambda it: it.keeper.note([(MEMORY, Add("second", anyway=True))], AGENT),
        lambda it: it.keeper.note([(MEMORY, Add("third", anyway=True)), (USER, Add("Likes rain."))], AGENT),
        lambda it: published(it, (MEMORY, ReplaceEntry("second", "second thoughts"))),
        lambda it: it.keeper.note([(MEMORY, Remove("first"))], AGENT),
        lambda it: published(it, (USER, Remove("Likes tea.")), (MEMORY, Add("fourth", anyway=True))),
        lambda it: it.keeper.note([(USER, Add("Likes snow.", anyway=True))], AGENT),
    ),
    Kept.view,
)
skills = Deeds(
    "skill",
    furnished,
    kept,
    (
        lambda it: it.keeper.edit_skill("bread-baking", Create(BAKING, SkillOrigin.AGENT), OWNER),
        lambda it: it.keeper.edit_skill("bread-baking", Patch("Knead, then wait.", "Knead twice."), OWNER),
        lambda it: it.keeper.edit_skill("bread-baking", WriteFile("references/rye.md", b"Rye.\n"), OWNER),
    ),
    Kept.view,
)
undo = Deeds(
    "undo",
    furnished,
    kept,
    (lambda it: it.keeper.undo(SHELVED), lambda it: it.keeper.undo(NOTED)),
    Kept.view,
)
approve = Deeds("approve", furnished, kept, (lambda it: it.keeper.approve(WAITING),), Kept.view)
archive = Deeds(
    "archive",
    furnished,
    kept,
    (
        lambda it: it.keeper.edit_skill(NAME, Archive(), OWNER),
        lambda it: it.keeper.edit_skill(NAME, Restore(), OWNER),
    ),
    Kept.view,
)


async def undone(it: Kept) -> Entry:
    return await it.keeper.undo(await it.latest())


curator = Deeds("curator", furnished, kept, (Kept.apply, undone), Kept.view)
proposal = Deeds("proposal", proposed, kept, (lambda it: it.keeper.approve(PLANNED),), Kept.view)
