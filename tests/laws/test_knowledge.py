"""C2, D3, E5: whatever happens in whatever order, the files are the fold of the ledger after every read.

Random histories: edits by everybody, undo, approval, edits by hand, processes that are killed between any two
of their writes, two keepers of one home.
"""

import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from hone.core.clock import ManualClock
from hone.core.errors import HoneError, Refused
from hone.core.ids import SessionId
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    Change,
    ChangeQuery,
    ChangeState,
    Entry,
    Evidence,
    PublishedFile,
    Target,
    project,
    skill,
)
from hone.core.skill import ARCHIVED, DOCUMENT, PINNED, SkillOrigin
from hone.core.trust import Trust
from hone.files.tree import ANY, FileTree, Over
from hone.knowledge import journal
from hone.knowledge.journal import Add, Remove, ReplaceEntry, lines
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.places import folder_of, is_journal, path_of, places
from hone.knowledge.skills import folder
from hone.knowledge.skills.folder import (
    Archive,
    Create,
    Patch,
    Pin,
    RemoveFile,
    Restore,
    Rewrite,
    Unpin,
    WriteFile,
)
from hone.knowledge.verdicts import KeeperRules
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from tests.conftest import Figures, Tier

JOURNALS = (MEMORY, USER, project("/work/shop"))
SKILLS = ("trip-planning", "slow-queries")
TARGETS = (*JOURNALS, *map(skill, SKILLS))
RESTS = (Evidence(SessionId("5e55"), 1, Trust.OWNER, "0" * 64),)
AGENT = Author(Actor.AGENT, SessionId("5e55"), evidence=RESTS)
MISLED = Author(Actor.AGENT, SessionId("5e55"), evidence=RESTS, trust_floor=Trust.FOREIGN)
WIDE = KeeperRules({"memory": 100_000, "user": 100_000, "project": 100_000}, {})
KEPT = ("hone.db", ".lock")

Files = Mapping[str, bytes]


class Killed(BaseException):
    """The process is gone, between two of its writes."""


class Fuse:
    """Burns down with every write; at the end the process dies, before that write or after it."""

    def __init__(self) -> None:
        self.left = 0
        self.late = False

    def burn(self, *, late: bool) -> None:
        if self.left and late is self.late:
            self.left -= 1
            if not self.left:
                raise Killed


class BurningDisk(FileTree):
    def __init__(self, root: Path, fuse: Fuse) -> None:
        super().__init__(root)
        self._fuse = fuse

    def write(self, path: str, data: bytes, over: Over = ANY) -> PublishedFile:
        self._fuse.burn(late=False)
        made = super().write(path, data, over)
        self._fuse.burn(late=True)
        return made

    def remove(self, path: str, over: Over = ANY) -> bool:
        self._fuse.burn(late=False)
        removed = super().remove(path, over)
        self._fuse.burn(late=True)
        return removed


class BurningLedger(SqliteLedger):
    def __init__(self, database: Database, fuse: Fuse) -> None:
        super().__init__(database)
        self._fuse = fuse

    async def record(
        self, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
    ) -> Sequence[Entry]:
        self._fuse.burn(late=False)
        made = await super().record(changes, contents, at)
        self._fuse.burn(late=True)
        return made

    async def mark_published(self, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
        self._fuse.burn(late=False)
        await super().mark_published(files)
        self._fuse.burn(late=True)


class Walk:
    """One home, two keepers, and a random history."""

    def __init__(self, home: Path, databases: Sequence[Database], random: Random) -> None:
        self.home = home
        self.random = random
        self.fuse = Fuse()
        self.said: list[str] = []
        self.done: Counter[str] = Counter()
        self._databases = databases
        self.keepers = [self._keeper(each) for each in databases]
        self.known: Sequence[Entry] = ()
        self._words = 0

    def _keeper(self, database: Database) -> Keeper:
        ledger, disk = BurningLedger(database, self.fuse), BurningDisk(self.home, self.fuse)
        return Keeper(ledger, disk, ManualClock(), self.said.append, WIDE)

    @property
    def keeper(self) -> Keeper:
        return self.random.choice(self.keepers)

    def word(self) -> str:
        """Never the same twice; now and then of two lines."""
        self._words += 1
        return f"fact {self._words}" + (f"\nmore of {self._words}" if self.random.random() < 0.2 else "")

    async def entries(self) -> Sequence[Entry]:
        """Oldest first."""
        return (await self.keepers[0].ledger.entries())[::-1]

    async def fold(self, target: Target, upto: int | None = None) -> dict[str, bytes]:
        """What the active changes make of a target."""
        held: dict[str, str] = {}
        for entry in (await self.keepers[0].ledger.entries(ChangeQuery(target=target)))[::-1]:
            if entry.change.standing is ChangeState.PENDING:
                continue
            if upto is not None and entry.id > upto:
                break
            for delta in entry.change.deltas:
                assert held.pop(delta.path, None) == delta.before
                held |= {delta.path: delta.after} if delta.after else {}
        contents = await self.keepers[0].ledger.contents(set(held.values()))
        return {path: contents[name] for path, name in held.items()}

    def lying(self) -> dict[str, bytes]:
        found = [each for each in self.home.rglob("*") if not each.name.startswith(KEPT)]
        return {str(each.relative_to(self.home)): each.read_bytes() for each in found if each.is_file()}

    async def check(self) -> None:
        """Everything is read; then the files are the fold, and no entry has changed or gone."""
        wanted: dict[str, bytes] = {}
        for target in TARGETS:
            read = await self.keeper.files(target)
            held = await self.fold(target)
            assert read == held, target
            printed = {path: data for path, data in held.items() if not path.startswith("@")}
            names = places(target, {path: path for path in held})
            wanted |= {place: printed[path] for place, path in names.items()}
        assert self.lying() == wanted
        assert not list(self.home.rglob(".hone-*"))
        entries = await self.entries()
        assert [(each.id, each.change) for each in entries[: len(self.known)]] == [
            (each.id, each.change) for each in self.known
        ]
        self.known = entries

    async def step(self) -> None:
        deeds: dict[Callable[[], Awaitable[None]], int] = {
            self.note: 6,
            self.batch: 2,
            self.shelve: 6,
            self.undo: 5,
            self.answer: 2,
            self.edit_journal: 4,
            self.edit_skill: 2,
            self.die: 3,
        }
        deed = self.random.choices(list(deeds), list(deeds.values()))[0]
        try:
            await deed()
        except Refused:
            self.done["refused"] += 1
        self.done[deed.__name__] += 1
        await self.check()

    async def an_edit(self, target: Target) -> journal.Edit:
        there = journal.entries((await self.fold(target)).get(path_of(target), b"").decode())
        kind = self.random.choice("aaarx") if there else "a"
        match kind:
            case "r":
                return ReplaceEntry(self.random.choice(there), self.word())
            case "x":
                return Remove(self.random.choice(there))
        return Add(self.word())

    def author(self) -> Author:
        return self.random.choice((OWNER, AGENT, AGENT, MISLED))

    async def note(self) -> None:
        target = self.random.choice(JOURNALS)
        await self.keeper.note([(target, await self.an_edit(target))], self.author())

    async def batch(self) -> None:
        """Over two parts: all of it or nothing, whatever happens in the middle."""
        edits = [(target, await self.an_edit(target)) for target in self.random.sample(JOURNALS, 2)]
        edits += [(edits[0][0], Add(self.word()))]
        made = await self.keeper.note(edits, self.author())
        assert {each.change.target for each in made} == {target for target, _ in edits}

    async def shelve(self) -> None:
        name = self.random.choice(SKILLS)
        await self.keeper.edit_skill(
            name, self.a_skill_edit(name, await self.fold(skill(name))), self.author()
        )

    def a_skill_edit(self, name: str, files: Files) -> folder.Edit:
        if not files:
            return Create(self.document(name), SkillOrigin.AGENT)
        line = self.random.choice(lines(files[DOCUMENT].decode())[5:])
        further = [path for path in files if path.startswith("references/")]
        edits: list[folder.Edit] = [
            Patch(line, f"{self.word()}\n"),
            Patch(line, f"{line}{self.word()}\n"),
            Patch(line, f"{line}{self.word()}\n"),
            Rewrite(self.document(name)),
            WriteFile(f"references/{self.random.randint(1, 3)}.md", f"{self.word()}\n".encode()),
            WriteFile("assets/x.bin", self.random.randbytes(20) + b"\xff"),
            RemoveFile(self.random.choice(further or ["references/none.md"])),
            Restore() if ARCHIVED in files else Archive(),
            Unpin() if PINNED in files else Pin(),
        ]
        return self.random.choice(edits)

    def document(self, name: str) -> str:
        body = "".join(f"{self.word()}\n" for _ in range(6))
        return f"---\nname: {name}\ndescription: Do it well.\n---\n\n{body}"

    async def answer(self) -> None:
        waiting = await self.keeper.ledger.pending()
        if waiting:
            entry = self.random.choice(waiting)
            await (self.keeper.approve if self.random.random() < 0.7 else self.keeper.reject)(entry.id)

    async def undo(self) -> None:
        entries = await self.entries()
        if not entries:
            return
        entry = self.random.choice(entries[-12:])
        target = entry.change.target
        now = await self.fold(target)
        before, after = await self.fold(target, entry.id - 1), await self.fold(target, entry.id)
        later = [each for each in entries[entry.id :] if _acts(each, target)]
        await self.keeper.undo(entry.id)
        result = await self.fold(target)
        if not later:
            assert result == before
            self.done["exact undos"] += 1
            return
        self.done["undos below later changes"] += 1
        touched = {delta.path for delta in entry.change.deltas}
        for path in {*now, *result} - touched:
            assert result.get(path) == now.get(path)
        for path in touched:
            if now.get(path) == after.get(path):
                assert result.get(path) == before.get(path)
            else:
                _only_that(*(each.get(path, b"") for each in (before, after, now, result)))

    async def edit_journal(self) -> None:
        target = self.random.choice(JOURNALS)
        path = self.home / "/".join(filter(None, (folder_of(target), path_of(target))))
        now = path.read_text() if path.exists() else ""
        rows = lines(now)
        at = self.random.randrange(len(rows) + 1)
        other = self.random.choice(rows or ["\n"])
        texts = [
            f"{now}- {self.word()}",
            "".join((*rows[:at], f"# Mine {self.word()}\n\n", *rows[at:])),
            "".join(rows[:at] + rows[at + 1 :]),
            now.replace(other, f"- {self.word()}\n", 1),
            "".join(self.random.sample(rows, len(rows))),
            "",
            now,
            await self.an_old(target, path_of(target)),
        ]
        if self.random.random() < 0.1 and path.exists():
            path.unlink()
            return
        await self.by_hand(path, self.random.choice(texts).encode(), target)

    async def edit_skill(self) -> None:
        name = self.random.choice(SKILLS)
        held = await self.fold(skill(name))
        path = self.home / folder_of(skill(name), archived=ARCHIVED in held)
        text = held.get(DOCUMENT, self.document(name).encode()).decode()
        if self.random.random() < 0.2 and DOCUMENT in held:
            await self.by_hand(path / "references/by-hand.md", f"{self.word()}\n".encode(), skill(name))
            return
        old = await self.an_old(skill(name), DOCUMENT) or text
        new = self.random.choice((f"{text}{self.word()}\n", text, old))
        await self.by_hand(path / DOCUMENT, new.encode(), skill(name))

    async def an_old(self, target: Target, path: str) -> str:
        """Some content it has had."""
        entries = await self.keeper.ledger.entries(ChangeQuery(target=target))
        names = [each.after for entry in entries for each in entry.change.deltas if each.path == path]
        name = self.random.choice([each for each in names if each] or [""])
        return (await self.keeper.ledger.contents({name}))[name].decode() if name else ""

    async def by_hand(self, path: Path, data: bytes, target: Target) -> None:
        """What the owner saved is what holds then, to the byte. Where it might come from an older version, a
        line that is newer may be kept, which is said; what the owner wrote is always there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        name = _path(path, self.home, target)
        known = await self.every_line(target, name)
        self.save(path, data)
        self.said.clear()
        now = (await self.keeper.files(target))[name]
        assert path.read_bytes() == now
        if now == data:
            return
        assert any("the version" in each or "both were kept" in each for each in self.said), (data, now)
        assert _lines(data) - known <= _lines(now)
        assert _lines(now) - _lines(data) <= known
        self.done["saves that kept newer lines"] += 1

    async def every_line(self, target: Target, path: str) -> set[str]:
        """All lines that a file has ever had."""
        entries = await self.keeper.ledger.entries(ChangeQuery(target=target))
        deltas = [each for entry in entries for each in entry.change.deltas if each.path == path]
        names = {name for each in deltas for name in (each.before, each.after) if name}
        found = await self.keeper.ledger.contents(names)
        return {line for data in found.values() for line in _lines(data)}

    def save(self, path: Path, data: bytes) -> None:
        if self.random.random() < 0.5:
            path.write_bytes(data)
        else:
            other = path.with_name("editor~")
            other.write_bytes(data)
            os.replace(other, path)

    async def die(self) -> None:
        """A process is killed between two of its writes. Now and then the owner edits what it left."""
        self.fuse.left, self.fuse.late = self.random.randint(1, 7), self.random.random() < 0.5
        before = {target: await self.fold(target) for target in TARGETS}
        deed = self.random.choice(
            (self.note, self.batch, self.shelve, self.undo, self.answer, self.edit_journal)
        )
        acknowledged = False
        try:
            await deed()
            acknowledged = True
        except Killed:
            self.done["kills"] += 1
        finally:
            self.fuse.left = 0
            for keeper in self.keepers:
                keeper.close()
            self.keepers = [self._keeper(each) for each in self._databases]
        if not acknowledged:
            await self.edit_leftovers(before)

    async def edit_leftovers(self, before: Mapping[Target, Files]) -> None:
        target = self.random.choice(JOURNALS)
        path = self.home / "/".join(filter(None, (folder_of(target), path_of(target))))
        if self.random.random() < 0.5 or not path.exists():
            return
        held = (await self.fold(target)).get(path_of(target), b"").decode()
        was = before[target].get(path_of(target), b"").decode()
        word, now = f"- {self.word()}", path.read_text()
        self.save(path, f"{now}{'' if now.endswith(chr(10)) or not now else chr(10)}{word}\n".encode())
        self.said.clear()
        text = await self.keeper.text(target)
        assert word in text
        if not any("took the place" in each for each in self.said):
            for row in {*held.split("\n")} - {*was.split("\n")}:
                assert row in text.split("\n")
        assert len(set(journal.entries(text))) == len(journal.entries(text)), text


def _lines(data: bytes) -> set[str]:
    return {line.strip() for line in data.decode(errors="replace").split("\n")}


def _path(place: Path, home: Path, target: Target) -> str:
    if is_journal(target):
        return path_of(target)
    return str(place.relative_to(home)).partition(target.removeprefix("skill:") + "/")[2]


def _acts(entry: Entry, target: Target) -> bool:
    change = entry.change
    return change.target == target and change.standing is ChangeState.ACTIVE and bool(change.deltas)


def _only_that(before: bytes, after: bytes, now: bytes, result: bytes) -> None:
    """From `after` to `before` was taken back, and nothing of what has made `now` of `after` since. Of lines
    that occur once; those that occur more often may be either."""
    was, became, stood, stands = (
        Counter(line if line.endswith("\n") else f"{line}\n" for line in lines(each.decode()))
        for each in (before, after, now, result)
    )
    for line in was | became | stood | stands:
        counts = [each[line] for each in (was, became, stood, stands)]
        if max(counts) > 1:
            continue
        taken_back, since = was[line] - became[line], stood[line] - became[line]
        wanted = became[line] + (taken_back or since)
        assert stands[line] == wanted, (line, counts)


async def walk(home: Path, seed: int, steps: int) -> Counter[str]:
    async with AsyncExitStack() as stack:
        databases = [Database.open(home / "hone.db") for _ in range(2)]
        for each in databases:
            stack.push_async_callback(each.close)
        it = Walk(home, databases, Random(seed))
        for _ in range(steps):
            await it.step()
        for keeper in it.keepers:
            keeper.close()
        assert await SqliteLedger(databases[0]).unsound() == []
        return it.done + Counter({"changes": await it.keepers[0].ledger.latest()})


async def test_after_every_read_the_files_are_the_fold_of_the_ledger(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    done: Counter[str] = Counter()
    histories = tier.size(short=6, full=200)
    for seed in range(histories):
        home = tmp_path / str(seed)
        home.mkdir(mode=0o700)
        try:
            done += await walk(home, tier.seed * 1_000_003 + seed, steps=40)
        except (AssertionError, HoneError, KeyError) as error:
            error.add_note(f"history {seed} of seed {tier.seed}")
            raise
    assert min(done[each] for each in ("kills", "exact undos", "undos below later changes", "refused")) > 0
    counts = ", ".join(f"{number:,} {name}" for name, number in sorted(done.items()))
    figures(f"{histories} histories, 0 with files that are not the fold of the ledger: {counts}")


# What random histories have found once


@asynccontextmanager
async def one_keeper(home: Path) -> AsyncIterator[Walk]:
    database = Database.open(home / "hone.db")
    it = Walk(home, [database], Random(0))
    yield it
    it.keeper.close()
    await database.close()


async def test_an_old_version_put_back_by_hand_is_the_owners_edit_even_after_all_was_undone(
    home: Path,
) -> None:
    async with one_keeper(home) as it:
        [made] = await it.keeper.note([(MEMORY, Add("one"))], OWNER)
        old = (home / "MEMORY.md").read_bytes()
        await it.keeper.undo(made.id)
        assert not (home / "MEMORY.md").exists()
        await it.by_hand(home / "MEMORY.md", old, MEMORY)
        await it.check()


async def test_what_waits_may_be_done_by_hand(home: Path) -> None:
    async with one_keeper(home) as it:
        await it.keeper.note([(MEMORY, Add("one"))], OWNER)
        await it.keeper.note([(MEMORY, Add("two"))], MISLED)
        await it.by_hand(home / "MEMORY.md", b"- one\n- two\n", MEMORY)
        await it.check()


async def test_an_edit_on_top_of_a_printout_that_was_never_noted_repeats_nothing(home: Path) -> None:
    async with one_keeper(home) as it:
        it.fuse.left, it.fuse.late = 3, False  # recorded, printed, and dead before the note
        with pytest.raises(Killed):
            await it.keeper.note([(MEMORY, Add("one"))], OWNER)
        it.fuse.left = 0
        await it.by_hand(home / "MEMORY.md", b"- one\n- two\n", MEMORY)
        await it.check()


async def test_undo_of_a_new_order_brings_nothing_back_that_was_removed_since(home: Path) -> None:
    async with one_keeper(home) as it:
        await it.by_hand(home / "MEMORY.md", b"- one\n- two\n", MEMORY)
        await it.by_hand(home / "MEMORY.md", b"- two\n- one\n", MEMORY)
        ordered = await it.keeper.ledger.latest()
        await it.keeper.note([(MEMORY, Remove("one"))], OWNER)
        with pytest.raises(Refused, match="has changed since in the same place"):
            await it.keeper.undo(ordered)
        assert await it.keeper.text(MEMORY) == "- two\n"
