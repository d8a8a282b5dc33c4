"""C1, C3: editors save old buffers while reviews write. No lesson and no word of the owner's is lost, and
what the owner removed stays removed.

Each race is one order of the steps of an editor, a review, a reader and an undo, down to the single system
calls of a save.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, ChangeId, ChangeState, Evidence, skill
from hone.core.skill import DOCUMENT, SkillOrigin
from hone.core.trust import Trust
from hone.files.tree import FileTree
from hone.knowledge.journal import Add, lines
from hone.knowledge.keeper import Keeper
from hone.knowledge.skills.folder import Create, Patch
from hone.knowledge.verdicts import KeeperRules
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from tests.conftest import Figures, Tier

SESSION = SessionId("5e55")
WIDE = KeeperRules({"memory": 100_000, "user": 100_000, "project": 100_000}, {})
ROOT = Path(__file__).parents[2]
NAME, STEPS = "trip-planning", "# Steps\n"
PLAN = f"---\nname: {NAME}\ndescription: Plan a trip day by day.\n---\n\n{STEPS}"
SYLLABLES = ("ba", "du", "fe", "gi", "ko", "lu", "mo", "ne", "pa", "ri", "so", "tu", "va", "we", "xi", "yo")

Save = Callable[[Path, str], Iterator[None]]


def in_place(file: Path, text: str) -> Iterator[None]:
    """As nano and Visual Studio Code save."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    yield
    data = text.encode()
    os.write(handle, data[: len(data) // 2])
    yield
    os.write(handle, data[len(data) // 2 :])
    yield
    os.close(handle)


def rename_over(file: Path, text: str) -> Iterator[None]:
    """As sed, gedit and the JetBrains editors save."""
    other = file.with_name("sedAb12Cd")
    other.write_text(text)
    yield
    os.replace(other, file)


def with_swap_file(file: Path, text: str) -> Iterator[None]:
    """As vim saves: a probe of the folder, the old file set aside as a backup, a new one in its place."""
    swap, probe, backup = (file.with_name(name) for name in (f".{file.name}.swp", "4913", f"{file.name}~"))
    swap.write_bytes(b"b0VIM 9.0")
    probe.write_text("")
    yield
    probe.unlink()
    is_there = file.exists()
    if is_there:
        os.rename(file, backup)
    yield
    yield from in_place(file, text)
    yield
    if is_there:
        backup.unlink()
    swap.unlink()


SAVES: tuple[Save, ...] = (in_place, rename_over, with_swap_file)


@dataclass
class Editor:
    """One buffer. It knows what it has read and what its owner has written and removed."""

    file: Path
    save: Save
    random: Random
    buffer: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    """Lines that the owner wrote, and that were saved."""
    removed: set[str] = field(default_factory=set)
    """Lines that the owner had before the eyes, removed, and saved the file without."""

    def read(self) -> None:
        self.buffer = lines(self.file.read_text()) if self.file.exists() else []
        self.last = list(self.buffer)

    def own(self) -> list[int]:
        """The lines that can be edited: a skill's head stays as it is."""
        start = self.buffer.index(STEPS) + 1 if STEPS in self.buffer else 0
        return list(range(start, len(self.buffer)))

    def change(self, word: str) -> None:
        line, there = f"- {word}\n", self.own()
        # An emptied file removes everything, whatever the editor had read.
        kind = self.random.choice("aacrr") if there[1:] else "a"
        at = self.random.choice(there) if there else len(self.buffer)
        match kind:
            case "r":
                self.buffer.pop(at)
            case "c":
                self.buffer[at] = f"{self.buffer[at].rstrip()} {word}\n"
            case _:
                self.buffer.insert(at + 1, line)

    def saving(self) -> Iterator[None]:
        text = "".join(self.buffer)
        yield from self.save(self.file, text)
        before, after = set(self.last), set(self.buffer)
        self.written = (self.written | (after - before)) - (before - after)
        self.removed = (self.removed | (before - after)) - after
        self.last = list(self.buffer)


class Race:
    def __init__(
        self, home: Path, keeper: Keeper, said: list[str], random: Random, *, is_skill: bool
    ) -> None:
        self.keeper = keeper
        self.said = said
        self.random = random
        self.is_skill = is_skill
        self.target = skill(NAME) if self.is_skill else MEMORY
        place = home / f"skills/{NAME}/{DOCUMENT}" if self.is_skill else home / "MEMORY.md"
        self.editor = Editor(place, random.choice(SAVES), random)
        self.lessons: dict[str, ChangeId] = {}
        self.undone: set[str] = set()
        self.messages = 0

    def author(self) -> Author:
        """Each lesson rests on another message."""
        self.messages += 1
        rests = Evidence(SESSION, self.messages, Trust.OWNER, f"{self.messages:064}")
        return Author(Actor.AGENT, SESSION, evidence=(rests,))

    def word(self) -> str:
        """Words that resemble no others."""
        words = ["".join(self.random.choices(SYLLABLES, k=3)) for _ in range(4)]
        return " ".join(words)

    async def start(self) -> None:
        if self.is_skill:
            await self.keeper.edit_skill(NAME, Create(PLAN, SkillOrigin.AGENT), self.author())
        for _ in range(self.random.randint(0, 3)):
            await self.learn()
        self.editor.read()

    async def learn(self) -> None:
        line = f"- {self.word()}\n"
        if self.is_skill:
            made = await self.keeper.edit_skill(NAME, Patch(STEPS, f"{STEPS}{line}"), self.author())
        else:
            [made] = await self.keeper.note([(MEMORY, Add(line[2:].strip()))], self.author())
        assert made.change.standing is ChangeState.ACTIVE
        self.lessons[line] = made.id

    async def review(self) -> None:
        """Learn in a staged ledger, while whatever else may happen before it is committed."""
        if self.is_skill:
            await self.learn()
            return
        line = f"- {self.word()}\n"
        staged, ledger = self.keeper.stage()
        await staged.note([(MEMORY, Add(line[2:].strip()))], self.author())
        clock = ManualClock()
        [made] = await self.keeper.commit(
            ledger, lambda changes, contents: self.keeper.ledger.record(changes, contents, clock.now())
        )
        assert made.change.standing is ChangeState.ACTIVE
        self.lessons[line] = made.id

    async def undo(self) -> None:
        """The owner takes a lesson back by command."""
        there = (await self.text()).keys()
        known = self.editor.removed | self.undone
        standing = [line for line in self.lessons if line in there and line not in known]
        if standing and not self.is_skill:
            line = self.random.choice(standing)
            await self.keeper.undo(self.lessons[line])
            self.undone.add(line)

    async def look(self) -> None:
        await self.keeper.files(self.target)

    async def text(self) -> Counter[str]:
        files = await self.keeper.files(self.target)
        return Counter(lines(files.get(DOCUMENT if self.is_skill else "MEMORY.md", b"").decode()))

    async def others(self) -> None:
        """Something that happens between two steps of the editor, or nothing."""
        deeds = (self.learn, self.review, self.look, self.look, self.undo, None, None, None)
        if deed := self.random.choice(deeds):
            await deed()

    async def run(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            await self.others()
            if self.random.random() < 0.3:
                self.editor.read()
            await self.others()
            for _ in range(self.random.randint(1, 2)):
                self.editor.change(self.word())
            if self.editor.buffer == self.editor.last:
                continue
            for _ in self.editor.saving():
                await self.others()
            await self.others()

    async def judge(self) -> "Judged":
        now = await self.text()
        assert await self.text() == now
        editor, said = self.editor, " ".join(self.said)
        removed = [line for line in editor.removed if line not in editor.written]
        changed = {line for line in self.lessons if any(line.strip() in each for each in now)}
        back = [line for line in removed if line in now]
        return Judged(
            lessons=len(self.lessons),
            lost=[line for line in self.lessons if line not in changed | editor.removed | self.undone],
            words=len(editor.written),
            unsaid=[line for line in editor.written if line not in now],
            removals=len(removed),
            back=len(back),
            silently=[line for line in back if line[2:].strip() not in said and "were kept" not in said],
            revived=[line for line in self.undone if line in now and line not in editor.written],
            double=[line for line, count in now.items() if count > 1 and line.startswith("- ")],
        )


@dataclass(frozen=True)
class Judged:
    lessons: int
    lost: Sequence[str]
    words: int
    unsaid: Sequence[str]
    removals: int
    back: int
    silently: Sequence[str]
    """Lines that the owner removed and that came back without a notice."""
    revived: Sequence[str]
    double: Sequence[str]

    @property
    def faults(self) -> Sequence[str]:
        return (*self.lost, *self.unsaid, *self.silently, *self.revived, *self.double)


async def race(home: Path, random: Random) -> Judged:
    home.mkdir(mode=0o700)
    said: list[str] = []
    database = Database.open(home / "hone.db")
    keeper = Keeper(SqliteLedger(database), FileTree(home), ManualClock(), said.append, WIDE)
    try:
        it = Race(home, keeper, said, random, is_skill=random.random() < 0.3)
        await it.start()
        await it.run()
        return await it.judge()
    finally:
        keeper.close()
        await database.close()


async def test_in_500_races_of_editors_and_reviews_no_lesson_and_no_word_is_lost(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    found: dict[int, Judged] = {}
    for draw in tier.draws(short=24, full=500):
        found[draw.index] = await race(tmp_path / str(draw.index), draw.random)
    wrong = {index: each.faults for index, each in found.items() if each.faults}
    total = {
        name: sum(getattr(each, name) for each in found.values())
        for name in ("lessons", "words", "removals", "back")
    }
    figures.tally(
        len(found),
        got_in=sum(len(each.revived) + len(each.double) for each in found.values()),
        lost=sum(len(each.lost) + len(each.unsaid) for each in found.values()),
        note=f"races with {total['lessons']} lessons, {total['words']} lines of the owner's and "
        f"{total['removals']} removals by hand ({total['back']} kept and said)",
        at=wrong,
    )
    assert not wrong


WORKER = """
import asyncio, sys
from pathlib import Path
from tests.faults.test_editors import learn_on
asyncio.run(learn_on(Path(sys.argv[1]), int(sys.argv[2])))
"""


async def learn_on(home: Path, count: int) -> None:
    """Learn lessons in a separate process, and print each one that was acknowledged."""
    database = Database.open(home / "hone.db")
    keeper = Keeper(SqliteLedger(database), FileTree(home), ManualClock(), lambda _: None, WIDE)
    it = Race(home, keeper, [], Random(count), is_skill=False)
    for _ in range(count):
        await it.learn()
        print(list(it.lessons)[-1], end="", flush=True)
    keeper.close()
    await database.close()


async def test_a_process_that_learns_and_an_editor_that_saves_at_any_moment_lose_nothing(
    home: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=12, full=150)
    editor = Editor(home / "MEMORY.md", in_place, Random(tier.seed))
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-c", WORKER, str(home), str(count)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, cwd=ROOT)
    assert process.stdout
    lessons: list[str] = []
    saves = 0
    while line := await process.stdout.readline():
        lessons.append(line.decode())
        if editor.random.random() < 0.3:
            editor.read()
        editor.buffer.append(f"- owner {saves} {'x' * saves}\n")
        editor.save = SAVES[saves % len(SAVES)]
        for _ in editor.saving():
            pass
        saves += 1
    assert await process.wait() == 0
    database = Database.open(home / "hone.db")
    keeper = Keeper(SqliteLedger(database), FileTree(home), ManualClock(), lambda _: None, WIDE)
    now = lines(await keeper.text(MEMORY))
    keeper.close()
    await database.close()
    lost = [line for line in (*lessons, *editor.written) if line not in now]
    figures.tally(len(lessons) + len(editor.written), lost=len(lost), note=f"lines, in {saves} saves")
    assert len(lessons) == count
    assert not lost
