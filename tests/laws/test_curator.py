"""E8: whatever lies on the shelf, whatever a model wants and whatever the clock says: nothing is lost.

Random libraries of every origin, random days of use, and plans that are honest, careless or impossible.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from hone.core.curation import CuratorRun
from hone.core.ledger import ChangeState, Entry, skill
from hone.core.skill import ARCHIVED, DOCUMENT, SkillOrigin
from hone.knowledge.folding import Files
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.document import parse
from hone.knowledge.skills.facts import split_facts
from hone.knowledge.skills.folder import Archive, Create, Install, Pin, WriteFile
from tests.curating import NOON, Care, answering, care, document

NAMES = ("trip-planning", "night-trains", "slow-queries", "ferry-tables", "tax-letters", "garden-plans")
NEW = ("rail-journeys", "office-papers")
KINDS = ("agent",) * 8 + ("pinned", "archived", "user", "installed")
HEADINGS = ("Steps", "Pitfalls", "When to use it", "Check")
PATHS = ("references/notes.md", "references/merged/old.md", "scripts/run.sh", "assets/a.bin")


@dataclass(frozen=True)
class Drawn:
    """A skill as it is put on the shelf."""

    kind: str
    project: str
    sections: Mapping[str, str]
    files: Mapping[str, bytes]

    @property
    def body(self) -> str:
        return "\n\n".join(f"## {heading}\n{text}" for heading, text in self.sections.items())


@dataclass(frozen=True)
class World:
    library: Mapping[str, Drawn]
    plan: Any
    days: Sequence[date]
    uses: Mapping[str, Sequence[int]]
    jumps: Sequence[int]


drawn = st.builds(
    Drawn,
    st.sampled_from(KINDS),
    st.sampled_from(("",) * 6 + ("/work/sea",)),
    st.dictionaries(
        st.sampled_from(HEADINGS), st.sampled_from(("One.", "Two.", "```\n# x\n```")), min_size=1
    ),
    st.dictionaries(st.sampled_from(PATHS), st.sampled_from((b"a", b"b\xff", b"#!/bin/sh\n"))),
)


@st.composite
def plans(draw: st.DrawFn, library: Mapping[str, Drawn]) -> dict[str, Any]:
    """Mostly about skills that may be changed, mostly with every section, each skill mostly once."""
    careless = draw(st.sampled_from((False, False, False, True)))
    own = [name for name, each in library.items() if careless or each.kind == "agent"]
    order = draw(st.permutations(own))
    merges, left = [], list(order)
    for into in draw(st.lists(st.sampled_from((*NEW, *NAMES)), min_size=1, max_size=2, unique=True)):
        wanted = draw(st.integers(1, 3))
        sources, left = left[:wanted], left if careless else left[wanted:]
        joined = {key: text for name in sources for key, text in library[name].sections.items()}
        if into in library:
            joined |= library[into].sections
        if careless and joined and draw(st.booleans()):
            joined.pop(next(iter(joined)))
        body = "\n\n".join(f"# {key}\n{text}" for key, text in joined.items())
        fields = {
            "into": into,
            "sources": sources,
            "description": "All of it.",
            "body": body,
            "reason": "one",
        }
        merges.append(fields)
    retired = draw(st.lists(st.sampled_from(left), max_size=1)) if left else []
    return {"merge": merges, "archive": [{"name": name, "reason": "covered"} for name in retired]}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    library = draw(st.dictionaries(st.sampled_from(NAMES), drawn, min_size=2))
    length = draw(st.sampled_from((0, 100, 100)))
    days = [NOON.date() + timedelta(number) for number in range(length)]
    for at, jump in draw(st.lists(st.tuples(st.integers(0, 99), st.integers(-9_000, 9_000)), max_size=3)):
        days[at : at + 2] = [day + timedelta(jump) for day in days[at : at + 2]]
    uses = draw(st.dictionaries(st.sampled_from(NAMES), st.lists(st.integers(0, 99), max_size=3)))
    jumps = draw(st.lists(st.integers(-(10**9), 10**9), max_size=3))
    return World(library, draw(plans(library)), days, uses, jumps)


async def furnish(it: Care, library: Mapping[str, Drawn]) -> None:
    for name, each in library.items():
        text = document(name, each.body)
        if each.kind == "installed":
            await it.keeper.edit_skill(
                name, Install({DOCUMENT: text.encode(), **each.files}, "/there"), OWNER
            )
            continue
        birth = SkillOrigin.USER if each.kind == "user" else SkillOrigin.AGENT
        await it.keeper.edit_skill(name, Create(text, birth, each.project), OWNER)
        for path, data in each.files.items():
            await it.keeper.edit_skill(name, WriteFile(path, data), OWNER)
        if each.kind in ("pinned", "archived"):
            await it.keeper.edit_skill(name, Pin() if each.kind == "pinned" else Archive(), OWNER)


Holdings = Mapping[str, Files]


def kept(before: Holdings, after: Holdings, entries: Sequence[Entry], plan: Any) -> None:
    """No skill is gone; every byte of every file is where it was, and where it was merged to, and linked."""
    touched = {each.change.target: each.change.kind for each in entries}
    merges = {each["into"]: {*each["sources"], each["into"]} & before.keys() for each in plan["merge"]}
    for name, files in before.items():
        there = set(after[name].values())
        assert all(data in there for path, data in split_facts(files)[0].items()), name
        if touched.get(skill(name)) in (None, "age", "archive"):
            assert {path: data for path, data in after[name].items() if path != ARCHIVED} == {
                path: data for path, data in files.items() if path != ARCHIVED
            }
    for target in (each.change.target for each in entries if each.change.kind == "merge"):
        into = target.removeprefix("skill:")
        there, text = set(after[into].values()), after[into][DOCUMENT].decode()
        headings = {line.lstrip("# ") for line in parse(text).body.split("\n") if line.startswith("#")}
        for source in merges[into]:
            for path, data in split_facts(before[source])[0].items():
                assert data in there, (source, path)
            place = next(path for path, data in after[into].items() if data == before[source][DOCUMENT])
            assert f"({place})" in text
            told = parse(before[source][DOCUMENT].decode()).body.split("\n")
            assert {line.lstrip("# ") for line in told if line.startswith("##")} <= headings


async def lived(world: World, home: Path) -> None:
    async with care(home, answering(world.plan)) as it:
        await furnish(it, world.library)
        await it.live(world.days, world.uses)
        it.clock.advance((world.days[-1] - NOON.date()).days * 86_400 if world.days else 0)
        ages = await it.curator.ages()
        for jump in world.jumps:
            it.clock.advance(jump)
            assert await it.curator.ages() == ages  # a clock that jumps ages nothing
        it.clock.advance(-sum(world.jumps))
        before = await it.held()
        protected = {name for name, each in world.library.items() if each.kind != "agent"}

        preview = await it.curator.preview()
        assert await it.held() == before
        round, entries = await worked(it)
        assert [each.change.deltas for each in entries] == [each.change.deltas for each in preview.entries]
        event(
            f"{len({each.change.group for each in entries})} groups, {'refused' if round.error else 'fine'}"
        )
        after = await it.held()
        active = [each for each in entries if each.change.standing is ChangeState.ACTIVE]
        assert {name: after[name] for name in protected} == {name: before[name] for name in protected}
        assert not {each.change.target for each in entries} & {skill(name) for name in protected}
        kept(before, after, active, world.plan)

        assert (await worked(it))[1] == ()  # twice is once
        assert await it.held() == after
        for group in dict.fromkeys(each.change.group for each in active):
            await it.keeper.undo(next(each.id for each in active if each.change.group == group))
        assert await it.held() == before  # and back again


async def worked(it: Care) -> tuple[CuratorRun, tuple[Entry, ...]]:
    found = await it.curator.work(again=True)
    assert found
    return found


@settings(max_examples=settings().max_examples // 2)
@given(worlds())
def test_a_round_loses_nothing_touches_nothing_protected_is_done_once_and_can_be_undone(world: World) -> None:
    with TemporaryDirectory() as home:
        asyncio.run(lived(world, Path(home)))
