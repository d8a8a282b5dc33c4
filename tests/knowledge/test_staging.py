"""E2: what a review stages only it can see; settled, it is what the same edits would have made."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.clock import ManualClock
from hone.core.errors import Conflict, HoneError, Missing, StoreError
from hone.core.ids import SessionId
from hone.core.ledger import (
    MEMORY,
    START,
    USER,
    Actor,
    Author,
    Change,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Delta,
    Entry,
    Evidence,
    Ledger,
    skill,
)
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, SkillOrigin
from hone.core.trust import Trust
from hone.files.tree import FileTree
from hone.knowledge.folding import Files
from hone.knowledge.journal import Add, Remove, ReplaceEntry, entries
from hone.knowledge.keeper import MET, OWNER, Keeper
from hone.knowledge.skills.folder import Archive, Create, Edit, Patch, WriteFile
from hone.knowledge.staging import StagedLedger
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from tests.given import NOON
from tests.reference.ledger import InMemoryLedger
from tests.tier import fewer

SESSION = SessionId("5e55")
RESTS = (Evidence(SESSION, 1, Trust.OWNER, "0" * 64),)
REVIEW = Author(Actor.REVIEW, SESSION, evidence=RESTS)
MISLED = Author(Actor.REVIEW, SESSION, evidence=RESTS, trust_floor=Trust.FOREIGN)
NAME = "trip-planning"
TARGETS = (MEMORY, USER, skill(NAME))
PLAN = f"---\nname: {NAME}\ndescription: Plan a trip day by day.\n---\n\none\ntwo\nthree\n"


@dataclass(frozen=True)
class Deed:
    """What a review, the foreground or the owner may do."""

    target: str
    edit: Add | ReplaceEntry | Remove | Edit
    misled: bool = False

    async def do(self, keeper: Keeper, author: Author) -> bool:
        author = MISLED if self.misled and author is REVIEW else author
        try:
            if self.target == NAME:
                await keeper.edit_skill(NAME, self.edit, author)  # type: ignore[arg-type]
            else:
                target = MEMORY if self.target == "memory" else USER
                await keeper.note([(target, self.edit)], author)  # type: ignore[list-item]
        except HoneError:
            return False
        return True


words = st.sampled_from(["one", "two", "three", "four"])
notes = st.builds(Add, words) | st.builds(ReplaceEntry, words, words) | st.builds(Remove, words)
shelvings: st.SearchStrategy[Edit] = (
    st.builds(Patch, words, words)
    | st.just(Create(PLAN, SkillOrigin.AGENT))
    | st.just(Archive())
    | st.builds(WriteFile, st.sampled_from(["references/a.md", "scripts/b.sh"]), words.map(str.encode))
)
deeds = st.builds(Deed, st.sampled_from(["memory", "user"]), notes, st.booleans()) | st.builds(
    Deed, st.just(NAME), shelvings, st.booleans()
)


@asynccontextmanager
async def house(home: Path, ledger: Ledger | None = None) -> AsyncIterator[Keeper]:
    home.mkdir(exist_ok=True)
    database = None if ledger else Database.open(home / "hone.db")
    kept = SqliteLedger(database) if database else ledger
    assert kept
    keeper = Keeper(kept, FileTree(home), ManualClock(), lambda _: None)
    yield keeper
    keeper.close()
    if database:
        await database.close()


async def furnished(keeper: Keeper) -> None:
    await keeper.note([(MEMORY, Add("one")), (USER, Add("two"))], OWNER)
    await keeper.edit_skill(NAME, Create(PLAN, SkillOrigin.AGENT), REVIEW)


async def finish(keeper: Keeper, changes: Sequence[Change], contents: Mapping[str, bytes]) -> Sequence[Entry]:
    return await keeper.ledger.record(changes, contents, NOON)


async def settle(keeper: Keeper, staged: StagedLedger) -> Sequence[Entry]:
    return await keeper.commit(staged, lambda changes, contents: finish(keeper, changes, contents))


async def held(keeper: Keeper) -> list[Files]:
    return [dict(await keeper.files(target)) for target in TARGETS]


def printed(home: Path) -> dict[str, bytes]:
    kept = [path for path in home.rglob("*") if path.is_file() and not path.name.startswith(("hone.db", "."))]
    return {str(path.relative_to(home)): path.read_bytes() for path in kept}


async def law(path: Path, steps: Sequence[Deed]) -> None:
    async with house(path / "a", InMemoryLedger()) as keeper, house(path / "b", InMemoryLedger()) as direct:
        await furnished(keeper)
        await furnished(direct)
        before, files, latest = await held(keeper), printed(path / "a"), await keeper.ledger.latest()
        apart, staged = keeper.stage()
        for step in steps:
            assert await step.do(apart, REVIEW) == await step.do(direct, REVIEW), step
            assert await held(apart) == await held(direct)
        assert await held(keeper) == before
        assert (printed(path / "a"), await keeper.ledger.latest()) == (files, latest)
        made = await settle(keeper, staged)
        assert await held(keeper) == await held(direct)
        assert printed(path / "a") == printed(path / "b")
        wanted = [entry.change for entry in reversed(await direct.ledger.entries(ChangeQuery(after=latest)))]
        assert [entry.change for entry in made] == wanted


@fewer(30)
@given(st.lists(deeds, max_size=6))
def test_settled_on_what_it_saw_it_is_what_the_same_edits_make_and_before_it_is_nothing(
    steps: list[Deed],
) -> None:
    with TemporaryDirectory() as path:
        asyncio.run(law(Path(path), steps))


async def meet(path: Path, steps: Sequence[Deed], others: Sequence[Deed]) -> None:
    async with house(path / "a") as keeper:
        await furnished(keeper)
        apart, staged = keeper.stage()
        done = [await step.do(apart, REVIEW) for step in steps]
        view = await held(apart)
        for other in others:
            await other.do(keeper, OWNER)
        assert await held(apart) == view
        made = await settle(keeper, staged)
        assert len(made) <= sum(done)
        for entry in made:
            change = entry.change
            assert change.standing is ChangeState.ACTIVE or change.cause
            assert not (change.cause == MET and change.confirmed)
        ledger = keeper.ledger
        assert isinstance(ledger, SqliteLedger)
        assert not await ledger.unsound()
        for target, files in zip(TARGETS, await held(keeper), strict=True):
            assert await ledger.held(target) == {name: digest(data) for name, data in files.items()}


@settings(max_examples=settings().max_examples // 4)  # each one opens a database
@given(st.lists(deeds, max_size=4), st.lists(deeds, max_size=4))
def test_whatever_the_owner_does_meanwhile_the_ledger_is_sound_and_nothing_is_forced(
    steps: list[Deed], others: list[Deed]
) -> None:
    with TemporaryDirectory() as path:
        asyncio.run(meet(Path(path), steps, others))


async def test_what_meets_a_later_change_waits_whole_and_the_rest_takes_effect(home: Path) -> None:
    async with house(home) as keeper:
        await furnished(keeper)
        apart, staged = keeper.stage()
        await apart.note([(MEMORY, ReplaceEntry("one", "uno"))], REVIEW)
        await apart.edit_skill(NAME, Patch("two", "due"), REVIEW)
        await keeper.note([(MEMORY, ReplaceEntry("one", "eins"))], OWNER)
        met, patched = await settle(keeper, staged)
        assert (met.change.standing, met.change.cause) == (ChangeState.PENDING, MET)
        assert patched.change.standing is ChangeState.ACTIVE
        assert entries(await keeper.text(MEMORY)) == ("eins",)
        assert "one\ndue\nthree" in (home / "skills" / NAME / DOCUMENT).read_text()


async def test_if_the_end_cannot_be_recorded_nothing_is(home: Path) -> None:
    async def gone(_: Sequence[Change], __: Mapping[str, bytes]) -> Sequence[Entry]:
        raise StoreError("It was cancelled.")

    async with house(home) as keeper:
        await furnished(keeper)
        apart, staged = keeper.stage()
        await apart.note([(MEMORY, Add("four"))], REVIEW)
        before = (await held(keeper), printed(home), await keeper.ledger.latest())
        with pytest.raises(StoreError):
            await keeper.commit(staged, gone)
        assert (await held(keeper), printed(home), await keeper.ledger.latest()) == before


async def test_what_is_recorded_there_is_recorded_whole_or_not_at_all() -> None:
    staged = StagedLedger(InMemoryLedger())
    one = digest(b"one")
    good = Change(MEMORY, ChangeKind.ADD, (Delta("MEMORY.md", None, one),), REVIEW)
    bad = Change(USER, ChangeKind.ADD, (Delta("USER.md", one, None),), REVIEW)
    with pytest.raises(Conflict):
        await staged.record([good, bad], {one: b"one"}, NOON)
    assert (staged.changes, await staged.held(MEMORY)) == ([], {})
    with pytest.raises(Missing):
        await staged.contents([one])
    (entry,) = await staged.record([good], {one: b"one"}, NOON)
    assert (entry.id, await staged.held(MEMORY)) == (START, {"MEMORY.md": one})
