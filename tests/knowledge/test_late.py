"""C1, C2: what an agent notes counts at once, and its file follows; nobody's words are lost in between."""

import asyncio
import errno
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.ledger import (
    MEMORY,
    Actor,
    Author,
    ChangeKind,
    ChangeQuery,
    Evidence,
    PublishedFile,
    Target,
)
from hone.core.trust import Trust
from hone.core.value import replace
from hone.files.tree import FileTree
from hone.knowledge.journal import Add, entries
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.verdicts import DEFAULTS, KeeperRules
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger

SESSION = SessionId("5e55")
AGENT = Author(Actor.AGENT, SESSION, evidence=(Evidence(SESSION, 1, Trust.OWNER, "0" * 64),))
LATE = replace(DEFAULTS, lag=3_600)


class Counting(SqliteLedger):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.published, self.marked = 0, asyncio.Event()

    async def mark_published(self, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
        self.published += 1
        await super().mark_published(files)
        self.marked.set()


@asynccontextmanager
async def keeping(home: Path, rules: KeeperRules = LATE) -> AsyncIterator[tuple[Keeper, Counting]]:
    """A keeper that ends without publishing, as if it were killed."""
    database = Database.open(home / "hone.db")
    ledger = Counting(database)
    keeper = Keeper(ledger, FileTree(home), ManualClock(), lambda _: None, rules)
    try:
        yield keeper, ledger
    finally:
        keeper.close()
        await database.close()


async def note(keeper: Keeper, *texts: str, author: Author = AGENT) -> None:
    for text in texts:
        await keeper.note([(MEMORY, Add(text, anyway=True))], author)


async def test_notes_in_quick_succession_are_published_once(home: Path) -> None:
    async with keeping(home) as (keeper, ledger):
        await note(keeper, "One.", "Two.", "Three.")
        assert not (home / "MEMORY.md").exists()
        await keeper.settle()
        assert (home / "MEMORY.md").read_text() == "- One.\n- Two.\n- Three.\n"
        assert ledger.published == 1


async def test_the_file_follows_by_itself(home: Path) -> None:
    async with keeping(home, replace(DEFAULTS, lag=0.001)) as (keeper, ledger):
        await note(keeper, "One.")
        async with asyncio.timeout(20):
            await ledger.marked.wait()
        assert (home / "MEMORY.md").read_text() == "- One.\n"


async def test_whoever_reads_or_writes_next_publishes_what_a_killed_process_noted(home: Path) -> None:
    async with keeping(home) as (keeper, _):
        await note(keeper, "One.", "Two.")
    async with keeping(home) as (keeper, _):
        assert entries(await keeper.text(MEMORY)) == ("One.", "Two.")
        assert (home / "MEMORY.md").read_text() == "- One.\n- Two.\n"
        await note(keeper, "Three.")
    async with keeping(home) as (keeper, _):
        await note(keeper, "Four.", author=OWNER)
        assert (home / "MEMORY.md").read_text() == "- One.\n- Two.\n- Three.\n- Four.\n"


@pytest.mark.parametrize("next_is_a_note", [True, False])
async def test_an_edit_of_a_file_that_is_behind_takes_nothing_back(home: Path, next_is_a_note: bool) -> None:
    async with keeping(home) as (keeper, ledger):
        await note(keeper, "One.", "Two.", "Last on the disk.")
        await keeper.settle()
        await note(keeper, "Three.")
        seen = (home / "MEMORY.md").read_text()
        (home / "MEMORY.md").write_text(seen.replace("Two.", "By hand."))
        await (note(keeper, "Four.") if next_is_a_note else keeper.settle())
        await keeper.settle()
        expected = {"One.", "By hand.", "Last on the disk.", "Three."} | (
            {"Four."} if next_is_a_note else set()
        )
        assert set(entries((home / "MEMORY.md").read_text())) == expected
        edits = await ledger.entries(ChangeQuery(kinds=(ChangeKind.EDIT,)))
        assert [each.change.author.actor for each in edits] == [Actor.OWNER]


async def test_two_processes_take_turns_and_nothing_is_lost(home: Path) -> None:
    async with keeping(home) as (one, _), keeping(home) as (other, _):
        for number in range(4):
            await note(one, f"One {number}.")
            await note(other, f"Other {number}.")
        await one.settle()
        await other.settle()
        told = [f"{name} {number}." for number in range(4) for name in ("One", "Other")]
        assert list(entries((home / "MEMORY.md").read_text())) == told


async def test_what_the_owner_changes_is_in_the_file_at_once(home: Path) -> None:
    async with keeping(home) as (keeper, _):
        await note(keeper, "One.")
        await note(keeper, "Two.", author=OWNER)
        assert (home / "MEMORY.md").read_text() == "- One.\n- Two.\n"


async def test_who_finds_the_lock_taken_waits_for_it(home: Path) -> None:
    async with keeping(home) as (keeper, _), asyncio.timeout(20):
        with FileTree(home).lock():
            waiting = asyncio.create_task(note(keeper, "One."))
            done, _ = await asyncio.wait([waiting], timeout=0.1)
            assert not done
        await waiting
        assert entries(await keeper.text(MEMORY)) == ("One.",)


async def test_an_old_version_that_could_not_be_removed_goes_with_the_next_look(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    async with keeping(home) as (keeper, _):
        await note(keeper, "One.", author=OWNER)
        with monkeypatch.context() as patched:
            patched.setattr("hone.files.atomic.os.unlink", refuse)
            await note(keeper, "Two.", author=OWNER)
        assert [*home.glob(".hone-*.tmp")]
    async with keeping(home) as (keeper, _):
        assert entries(await keeper.text(MEMORY)) == ("One.", "Two.")
        assert not [*home.glob(".hone-*.tmp")]
