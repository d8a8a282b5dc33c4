"""D3, D5: a skill that came from elsewhere is corrected in a copy; pins and requests of the owner count."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.errors import Refused
from hone.core.ledger import ChangeState, Entry, skill
from hone.core.messages import user
from hone.core.ports import Header
from hone.core.skill import DOCUMENT, SkillOrigin
from hone.core.tool import Outcome
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills import bundled
from hone.knowledge.skills.document import keep_fields, parse, write_document
from hone.knowledge.skills.facts import facts
from hone.knowledge.skills.folder import Create, Install, Pin, Rewrite, Uninstall
from hone.knowledge.tools import knowledge_tools
from hone.models.scripted import Scripted, rounds
from tests.given import NOON
from tests.tools.calls import EMPTY, called

NAME = "release-notes"
LINE = "Keep each change to one line."
BODY = "---\nname: {}\ndescription: {}\n---\n\nSteps.\n"


class Desk:
    """The tools of a home, called by a review or in the foreground after the owner said something."""

    def __init__(self, hone: Hone) -> None:
        self.hone = hone
        self.tools = {tool.spec.name: tool for tool in knowledge_tools(hone.library, "/work/shop")}

    async def call(self, said: str, origin: Origin, /, **arguments: object) -> Outcome:
        talk = Transcript(EMPTY.transcript.head).then(user(said), Trust.OWNER, self.hone.clock.now())
        context = replace(
            EMPTY, transcript=talk, header=replace(Header(EMPTY.header.id, NOON), origin=origin)
        )
        tool = self.tools["skill_manage"]
        return await tool.run(called(tool, evidence=["#1"], **arguments), context)

    async def latest(self) -> Entry:
        return await self.hone.ledger.entry(await self.hone.ledger.latest())

    async def files(self, name: str = NAME) -> dict[str, bytes]:
        return dict(await self.hone.library.files(name))


@asynccontextmanager
async def desk(home: Path) -> AsyncIterator[Desk]:
    async with Hone(home=home, model=Scripted(rounds("Yes."))) as hone:
        yield Desk(hone)


def first_line(files: dict[str, bytes]) -> str:
    return parse(files[DOCUMENT].decode()).body.split("\n")[0]


@pytest.mark.parametrize("origin", [Origin.USER, Origin.REVIEW])
async def test_correcting_a_skill_that_comes_with_hone_makes_a_copy_that_takes_its_place(
    home: Path, origin: Origin
) -> None:
    async with desk(home) as it:
        original = await it.files()
        head = first_line(original)
        patch = {"action": "patch", "name": NAME, "find": head, "text": f"{LINE}\n{head}"}
        made = await it.call("Release notes should have one line per change.", origin, **patch)
        assert not made.failed, made.text
        copy = await it.files()
        assert LINE in copy[DOCUMENT].decode()
        known = facts(copy)
        assert known.origin is SkillOrigin.AGENT
        assert known.source.startswith(f"copied from bundled {NAME} at ")
        assert [each.name for each in await it.hone.library.listed()].count(NAME) == 1
        again = {**patch, "find": LINE, "text": "Keep each change to one short line."}
        assert not (await it.call("One short line.", origin, **again)).failed
        undone = (await it.latest()).id
        await it.hone.keeper.undo(undone)
        await it.hone.keeper.edit_skill(NAME, Uninstall(), OWNER)
        assert await it.files() == original
        assert bundled.files(NAME)[DOCUMENT] == original[DOCUMENT]
        refused = await it.call("Release notes should have one line per change.", origin, **again)
        assert refused.failed


async def test_a_copy_that_was_undone_does_not_come_back(home: Path) -> None:
    async with desk(home) as it:
        head = first_line(await it.files())
        lesson = "Group every change below the heading of the component that it touches, and sort them."
        patch = {"action": "patch", "name": NAME, "find": head, "text": f"{lesson}\n{head}"}
        said = "Group changes by component."
        assert not (await it.call(said, Origin.REVIEW, **patch)).failed
        await it.hone.keeper.undo(await it.hone.ledger.latest())
        reworded = {
            **patch,
            "text": f"Sort changes, and group them below the heading of their component.\n{head}",
        }
        for each in (patch, reworded):
            made = await it.call(said, Origin.REVIEW, **each)
            waiting = (await it.latest()).change.standing is ChangeState.PENDING
            assert made.failed or waiting
        assert lesson not in (await it.files())[DOCUMENT].decode()


async def test_an_installed_skill_is_corrected_in_a_copy_and_can_be_installed_again(home: Path) -> None:
    text = write_document("night-trains", "Book night trains.", "Look at the map.")
    async with desk(home) as it:
        install = Install({DOCUMENT: text.encode()}, "/srv/skills")
        await it.hone.keeper.edit_skill("night-trains", install, OWNER)
        patch = {"action": "patch", "name": "night-trains", "find": "the map", "text": "the new map"}
        assert not (await it.call("Look at the new map.", Origin.REVIEW, **patch)).failed
        known = facts(await it.files("night-trains"))
        assert known.source.startswith("copied from installed /srv/skills at ")
        assert known.origin is SkillOrigin.AGENT
        await it.hone.keeper.edit_skill("night-trains", install, OWNER)
        assert facts(await it.files("night-trains")).origin is SkillOrigin.INSTALLED
        assert (await it.files("night-trains"))[DOCUMENT] == text.encode()


async def test_a_pin_binds_the_agent_unless_the_owner_asks_for_the_change(home: Path) -> None:
    name, text = "trip-planning", BODY.format("trip-planning", "Plan a trip day by day.")
    patch = {"action": "patch", "name": name, "find": "Steps.", "text": "Book the train."}
    async with desk(home) as it:
        await it.hone.keeper.edit_skill(name, Create(text, SkillOrigin.USER), OWNER)
        await it.hone.keeper.edit_skill(name, Pin(), OWNER)
        assert "pinned" in (await it.call("Book the train.", Origin.USER, **patch)).text
        assert (await it.latest()).change.standing is ChangeState.PENDING
        assert (await it.call("Book the train.", Origin.REVIEW, **patch)).failed
        asked = await it.call("Please update the trip-planning skill: book the train.", Origin.USER, **patch)
        assert not asked.failed
        assert b"Book the train." in (await it.files(name))[DOCUMENT]


@pytest.mark.parametrize(
    ("said", "origin"),
    [
        ("Save this as a skill, please.", SkillOrigin.USER),
        ("Mach daraus bitte einen Skill.", SkillOrigin.USER),
        ("Please keep this procedure for next time.", SkillOrigin.USER),
        ("Plan the trip to Graz.", SkillOrigin.AGENT),
        ("Do you have a skill for that?", SkillOrigin.AGENT),
    ],
)
async def test_a_skill_that_the_owner_asked_for_is_the_owners(
    home: Path, said: str, origin: SkillOrigin
) -> None:
    text = BODY.format("trip-planning", "Plan a trip day by day.")
    async with desk(home) as it:
        made = await it.call(said, Origin.USER, action="create", name="trip-planning", text=text)
        assert not made.failed, made.text
        assert facts(await it.files("trip-planning")).origin is origin


async def test_advice_never_points_at_what_is_pinned(home: Path) -> None:
    name, text = "trip-planning", BODY.format("trip-planning", "Plan a trip day by day.")
    create = {"action": "create", "name": "trips-planning", "text": text.replace(name, "trips-planning")}
    async with desk(home) as it:
        await it.hone.keeper.edit_skill(name, Create(text, SkillOrigin.USER), OWNER)
        assert "Patch one of them" in (await it.call("Plan.", Origin.REVIEW, **create)).text
        await it.hone.keeper.edit_skill(name, Pin(), OWNER)
        refusal = (await it.call("Plan.", Origin.REVIEW, **create)).text
        assert "Patch" not in refusal
        assert "create_anyway" in refusal


EXTRA = (
    "license: Apache-2.0\n",
    "version: 1.2.0\n",
    "compatibility: Needs git and a network.\n",
    "metadata:\n  author: somebody\n  tags: a, b\n",
    "metadata: {author: somebody, origin: elsewhere}\n",
    "allowed-tools: [Read, Grep, Write]\n",
    "allowed-tools:\n  - Read\n  - Grep\n",
)


@given(st.lists(st.sampled_from(EXTRA), unique_by=lambda each: each.partition(":")[0], max_size=5))
def test_the_formats_optional_keys_are_accepted_and_kept_when_a_document_is_written_anew(
    extra: Sequence[str],
) -> None:
    old = f"---\nname: a\ndescription: b\n{''.join(extra)}---\n\nSteps.\n"
    new = "---\nname: a\ndescription: Better.\n---\n\nBetter steps.\n"
    kept = parse(keep_fields(old, new))
    assert kept.extra == parse(old).extra
    assert (kept.description, kept.body) == ("Better.", "Better steps.")
    changed = new.replace("description: Better.\n", "description: Better.\nlicense: MIT\n")
    assert parse(keep_fields(old, changed)).extra == {**parse(old).extra, "license": "MIT"}
    assert keep_fields("no document", new) == new


async def test_the_owner_may_call_a_skill_anything(home: Path) -> None:
    text = BODY.format("docker", "All about it.")
    async with desk(home) as it:
        with pytest.raises(Refused, match="does not say what is done"):
            await it.hone.keeper.edit_skill("docker", Create(text, SkillOrigin.AGENT), OWNER)
        await it.hone.keeper.edit_skill("docker", Create(text, SkillOrigin.USER), OWNER)
        await it.hone.keeper.edit_skill("docker", Rewrite(text.replace("Steps", "More steps")), OWNER)
        assert skill("docker") in await it.hone.ledger.held_below("skill:")
