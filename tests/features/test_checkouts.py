"""J1, C1: pull, edit and push lose nothing that two people write, and nothing that is learned meanwhile."""

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from hone.core.clock import ManualClock
from hone.core.errors import Refused
from hone.core.ledger import MEMORY, USER, Change, Entry, Ledger, project, skill
from hone.core.skill import SkillOrigin
from hone.features.checkouts.bases import ManifestBases
from hone.features.checkouts.service import Checkout
from hone.files.tree import FileTree
from hone.knowledge import places
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.served import ServedKnowledge
from hone.knowledge.skills.folder import Archive, Create, Patch, Restore
from hone.knowledge.verdicts import KeeperRules
from tests.conftest import Figures, Tier
from tests.contract import kinds
from tests.given import NOON

RULES = KeeperRules({"memory": 100_000, "user": 100_000, "project": 100_000}, {})
WAYS = "---\nname: ways\ndescription: Ways to do it.\n---\n\nBegin here.\n\nEnd there.\n"
STEPS = ("learn", "patch", "edit", "edit skill", "remove", "pull", "push", "overtaken push", "killed")


class Overtaken:
    """A ledger in which somebody else's change is recorded right before one of ours, now and then."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.before: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._ledger, name)

    async def record(
        self, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
    ) -> Sequence[Entry]:
        if self.before is not None:
            work, self.before = self.before, None
            await work()
        return await self._ledger.record(changes, contents, at)


class World:
    """Two checkouts, a machine that learns, and what must be known in the end."""

    def __init__(self, root: Path, ledger: Ledger, random: Random) -> None:
        self.random = random
        clock = ManualClock(NOON)
        self.overtaken = Overtaken(ledger)
        self.learner = Keeper(ledger, ServedKnowledge(ledger, root / "home"), clock, _ignore, RULES)
        self.ledger = ledger
        self.folders = [root / name for name in ("one", "two")]
        served = ServedKnowledge(self.overtaken, root / "home")  # type: ignore[arg-type]
        keeper = Keeper(self.overtaken, served, clock, _ignore, RULES)  # type: ignore[arg-type]
        self.checkouts = [
            Checkout(keeper, FileTree(folder), ManifestBases(folder, ledger, "a database"))
            for folder in self.folders
        ]
        self.written: set[str] = set()
        self.removed: set[str] = set()
        self.count = 0
        self.problems: list[str] = []

    def word(self) -> str:
        self.count += 1
        token = f"token{self.count}x{self.random.randrange(10**6)}"
        self.written.add(token)
        return token

    async def begin(self) -> None:
        await self.learner.edit_skill("ways", Create(WAYS, SkillOrigin.USER), OWNER)
        for checkout in self.checkouts:
            await checkout.pull()

    async def learn(self) -> None:
        target = self.random.choice((MEMORY, USER))
        await self.learner.note([(target, Add(f"Learned {self.word()} there."))], OWNER)

    async def patch(self) -> None:
        edit = Patch("End there.", f"Learned {self.word()} there.\n\nEnd there.")
        await self.learner.edit_skill("ways", edit, OWNER)

    def edit(self, folder: Path) -> None:
        place = folder / self.random.choice(("MEMORY.md", "USER.md"))
        text = place.read_text() if place.exists() else ""
        rows = text.splitlines(keepends=True)
        rows.insert(self.random.randint(0, len(rows)), f"- Edited {self.word()} here.\n")
        place.write_text("".join(rows))

    def edit_skill(self, folder: Path) -> None:
        place = folder / "skills" / "ways" / "SKILL.md"
        text = place.read_text()
        place.write_text(text.replace("Begin here.", f"Begin here.\n\nEdited {self.word()} here.", 1))

    def remove(self, folder: Path) -> None:
        """Take out a line of the journal, as somebody who no longer wants it."""
        place = folder / "MEMORY.md"
        rows = place.read_text().splitlines(keepends=True) if place.exists() else []
        if rows:
            gone = rows.pop(self.random.randrange(len(rows)))
            self.removed |= {each for each in self.written if each in gone}
            place.write_text("".join(rows))

    async def push(self, at: int, *, overtaken: bool = False) -> None:
        if overtaken:
            self.overtaken.before = self.random.choice((self.learn, self.patch))
        report = await self.checkouts[at].push()
        self.problems += report.problems

    async def step(self, name: str) -> None:
        at = self.random.randrange(2)
        match name:
            case "learn":
                await self.learn()
            case "patch":
                await self.patch()
            case "edit":
                self.edit(self.folders[at])
            case "edit skill":
                self.edit_skill(self.folders[at])
            case "remove":
                self.remove(self.folders[at])
            case "pull":
                self.problems += (await self.checkouts[at].pull()).problems
            case "push":
                await self.push(at)
            case "overtaken push":
                await self.push(at, overtaken=True)
            case "killed":
                await self.killed(at)

    async def killed(self, at: int) -> None:
        """Push or pull, and lose the note of what was done."""
        manifest = self.folders[at] / ".hone-checkout.json"
        kept = manifest.read_bytes()
        await (self.checkouts[at].push() if self.random.random() < 0.5 else self.checkouts[at].pull())
        manifest.write_bytes(kept)

    async def known(self) -> str:
        texts = [await self.learner.text(each) for each in (MEMORY, USER)]
        files = await self.learner.files(skill("ways"))
        return "\n".join((*texts, *(each.decode() for each in files.values())))


def _ignore(_: str) -> None:
    """Nobody listens."""


async def play(kind: str, random: Random, steps: int) -> tuple[int, int]:
    """Return how many words were written and how many of them are lost."""
    stores = kinds.reference() if kind == "inmemory" else kinds.postgres(kinds.new_owner())
    with tempfile.TemporaryDirectory() as root:
        world = World(Path(root), stores.ledger, random)
        await world.begin()
        for _ in range(steps):
            await world.step(random.choice(STEPS))
        for at in (0, 1, 0):
            world.problems += (await world.checkouts[at].pull()).problems
            await world.push(at)
        assert world.problems == []
        known = await world.known()
        lost = {each for each in world.written - world.removed if each not in known}
        twice = {each for each in world.written if known.count(each) > 1}
        assert twice == set()
        return len(world.written), len(lost)


async def test_nothing_is_lost_between_two_checkouts_and_what_is_learned_meanwhile(
    tier: Tier, figures: Figures
) -> None:
    """Whoever pulls, edits, pushes or is killed in between: every word that nobody removed is known once."""
    written = lost = 0
    for draw in tier.draws(short=12, full=400):
        made, missing = await play("inmemory", draw.random, 25)
        written, lost = written + made, lost + missing
    for draw in tier.draws(short=1, full=40):
        made, missing = await play("postgres", draw.random, 25)
        written, lost = written + made, lost + missing
    figures.tally(written, lost=lost, note="words of two checkouts and of what was learned meanwhile")
    assert lost == 0


class Person:
    """An owner with a checkout, on a ledger."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.folder = root / "files"
        served = ServedKnowledge(ledger, root / "home")
        self.keeper = Keeper(ledger, served, ManualClock(NOON), _ignore, RULES)
        bases = ManifestBases(self.folder, ledger, "postgresql://db/hone")
        self.checkout = Checkout(self.keeper, FileTree(self.folder), bases)


async def test_the_checkout_of_another_owner_of_the_same_database_is_refused(tmp_path: Path) -> None:
    """The address is the same, and so are the numbers of changes: the changes themselves are not."""
    stores = [kinds.postgres(kinds.new_owner()) for _ in range(2)]
    ann, bob = (Person(tmp_path / name, each.ledger) for name, each in zip("ab", stores, strict=True))
    for at, person in enumerate((ann, bob)):
        clock = ManualClock(NOON + timedelta(seconds=at))
        keeper = Keeper(person.keeper.ledger, None, clock, _ignore, RULES)
        await keeper.note([(MEMORY, Add(f"Fact of person {at}."))], OWNER)
    await ann.checkout.pull()
    (ann.folder / "MEMORY.md").write_text("- Only for Ann.\n")
    bases = ManifestBases(ann.folder, bob.keeper.ledger, "postgresql://db/hone")
    taken = Checkout(bob.keeper, FileTree(ann.folder), bases)
    for work in (taken.push, taken.pull):
        with pytest.raises(Refused, match="is a checkout of other data"):
            await work()
    assert await bob.keeper.text(MEMORY) == "- Fact of person 1.\n"
    assert (ann.folder / "MEMORY.md").read_text() == "- Only for Ann.\n"
    elsewhere = ManifestBases(ann.folder, ann.keeper.ledger, "postgresql://another/place")
    report = await Checkout(ann.keeper, FileTree(ann.folder), elsewhere).push()
    assert [each.place for each in report.actions] == ["MEMORY.md"], "the same data in another place is hers"


async def test_projects_are_edited_too_and_a_skill_that_is_put_away_leaves_unless_it_was_edited(
    tmp_path: Path,
) -> None:
    stores = kinds.reference()
    one = Person(tmp_path, stores.ledger)
    shop = project("/home/ann/shop")
    await one.keeper.note([(shop, Add("The shop sells tea."))], OWNER)
    for name in ("ways", "paths"):
        text = WAYS.replace("name: ways", f"name: {name}")
        await one.keeper.edit_skill(name, Create(text, SkillOrigin.USER), OWNER)
    await one.checkout.pull()
    place = one.folder / places.place_of(shop)
    place.write_text(place.read_text() + "- It closes at six.\n")
    unknown = one.folder / "projects" / "else-12345678" / "MEMORY.md"
    unknown.parent.mkdir()
    unknown.write_text("- Whose is this?\n")
    report = await one.checkout.push()
    assert [each.place for each in report.actions] == [places.place_of(shop)]
    assert ["belongs to no project that is known" in each for each in report.problems] == [True]
    assert await one.keeper.text(shop) == "- The shop sells tea.\n- It closes at six.\n"
    edited = one.folder / "skills" / "paths" / "SKILL.md"
    edited.write_text(edited.read_text() + "More.\n")
    for name in ("ways", "paths"):
        await one.keeper.edit_skill(name, Archive(), OWNER)
    report = await one.checkout.pull()
    assert not (one.folder / "skills" / "ways").exists()
    assert edited.read_text().endswith("More.\n")
    assert any("your version stays" in each for each in report.notices)
    report = await one.checkout.push()
    assert any("hone skills restore paths" in each for each in report.problems)
    await one.keeper.edit_skill("paths", Restore(), OWNER)
    report = await one.checkout.push()
    assert [each.place for each in report.actions] == ["skills/paths/SKILL.md"], "its base is still known"
    assert (await one.keeper.files(skill("paths")))["SKILL.md"].endswith(b"More.\n")
