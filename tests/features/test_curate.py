"""E8: the curator's rounds: when one is due, what it does, and what a model can make it do."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hone.core.curation import UNNUMBERED
from hone.core.events import Curated, Event
from hone.core.ids import SessionId
from hone.core.ledger import Actor, Author, ChangeState, Entry, Evidence, skill
from hone.core.messages import Message, Role, assistant
from hone.core.ports import Header
from hone.core.skill import ARCHIVED, DOCUMENT, SkillOrigin
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.features.curator.consolidation import LONGEST
from hone.features.curator.curator import FEW, OFF, SAME, WAITS
from hone.features.curator.reports import Reports
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Archive, Create, Install, Pin, Restore, WriteFile
from hone.knowledge.tools import knowledge_tools
from hone.knowledge.verdicts import DEFAULTS, KeeperRules, LearningMode
from hone.learning.budget import Bounds, spent
from hone.models.scripted import Script, call
from hone.stores.claims import FileClaims
from tests.conftest import Figures, Tier
from tests.curating import ASK, NOON, Care, answering, care, document, merge
from tests.features.test_retention import daily
from tests.reference.documents import InMemoryDocuments
from tests.rig import context

NOTHING = answering({"merge": [], "archive": []})
STEPS = "# Steps\nPack the bag.\n\n## Pitfalls\nMind the rain."
BOTH = "# Steps\nPack the bag, then book.\n\n## Pitfalls\nMind the rain.\n\n# Trains\nBook early."
PLAN = merge("trip-planning", ["night-trains"], BOTH)


async def two(it: Care) -> None:
    await it.learn("trip-planning", STEPS, {"references/bags.md": b"Small ones.\n"})
    await it.learn("night-trains", "# Trains\nBook early.", {"references/bags.md": b"None.\n"})


async def done(it: Care, **options: Any) -> tuple[Entry, ...]:
    found = await it.curator.work(**options)
    assert found
    return found[1]


# What a round does


async def test_a_plan_is_made_in_one_group_and_keeps_every_byte_of_its_sources(home: Path) -> None:
    async with care(home, answering(PLAN)) as it:
        await two(it)
        before = await it.held()
        entries = await done(it)
        after = await it.held()
        assert [(each.change.target, each.change.kind) for each in entries] == [
            (skill("trip-planning"), "merge"),
            (skill("night-trains"), "archive"),
        ]
        assert len({each.change.group for each in entries}) == 1
        assert {each.change.author.actor for each in entries} == {Actor.CURATOR}
        merged = after["trip-planning"]
        assert merged["references/merged/trip-planning.md"] == before["trip-planning"][DOCUMENT]
        assert merged["references/merged/night-trains.md"] == before["night-trains"][DOCUMENT]
        assert merged["references/bags.md"] == b"Small ones.\n"
        assert merged["references/night-trains/bags.md"] == b"None.\n"
        assert b"(references/merged/night-trains.md)" in merged[DOCUMENT]
        assert after["night-trains"] == {**before["night-trains"], ARCHIVED: b"1"}
        await it.keeper.undo(entries[1].id)
        assert await it.held() == before


async def test_what_the_model_wants_waits_for_the_owner_unless_merging_is_set_free(home: Path) -> None:
    async with care(home, answering(PLAN), ASK) as it:
        await two(it)
        before = await it.held()
        entries = await done(it)
        assert {each.change.standing for each in entries} == {ChangeState.PENDING}
        assert await it.held() == before
        assert (await it.curator.preview()).thought.advice.skipped == WAITS
        approved = await it.keeper.approve(entries[0].id)
        assert ARCHIVED in (await it.held())["night-trains"]
        await it.keeper.undo(approved.id)
        assert await it.held() == before


async def test_a_plan_that_was_rejected_is_gone_as_a_whole(home: Path) -> None:
    async with care(home, answering(PLAN), ASK) as it:
        await two(it)
        before, entries = await it.held(), await done(it)
        await it.keeper.reject(entries[1].id)
        assert await it.keeper.ledger.pending() == ()
        assert await it.held() == before


@pytest.mark.parametrize("changed", ["trip-planning", "night-trains"])
async def test_a_skill_that_changed_while_a_plan_waited_refuses_all_of_it(home: Path, changed: str) -> None:
    """A new file is a change, too: it would not be among what is kept."""
    async with care(home, answering(PLAN), ASK) as it:
        await two(it)
        entries = await done(it)
        await it.keeper.edit_skill(changed, WriteFile("references/new.md", b"x"), OWNER)
        before = await it.held()
        for entry in entries:
            with pytest.raises(Exception, match="has changed since"):
                await it.keeper.approve(entry.id)
        assert await it.held() == before


async def test_a_skill_that_changes_while_the_model_thinks_refuses_all_of_it(home: Path) -> None:
    async with care(home, answering(PLAN)) as it:
        await two(it)
        thought = await it.curator._think("by hand", (), again=False)
        await it.keeper.edit_skill("night-trains", Pin(), OWNER)
        before = await it.held()
        round, entries = await it.curator._close(thought, UNNUMBERED)
        assert "night-trains has changed meanwhile" in round.error
        assert (entries, await it.held()) == ((), before)


async def test_what_nobody_used_is_put_away_and_comes_back_when_somebody_does(home: Path) -> None:
    async with care(home, NOTHING) as it:
        await two(it)
        await it.learn("slow-queries", STEPS)
        uses = {"trip-planning": [100], "slow-queries": [40]}
        await it.live(daily(120, NOON.date()), uses)
        ages = {each.name: (each.unused, each.grade) for each in await it.curator.ages()}
        assert ages == {
            "night-trains": (118, "archived"),
            "slow-queries": (78, "stale"),
            "trip-planning": (18, "active"),
        }
        [entry] = await done(it)
        assert (entry.change.target, entry.change.kind) == (skill("night-trains"), "age")
        assert await done(it) == ()
        assert not await it.library.wake("trip-planning")
        assert await it.library.wake("night-trains")
        assert ARCHIVED not in (await it.held())["night-trains"]
        await it.keeper.edit_skill("night-trains", Archive(), OWNER)
        assert not await it.library.wake("night-trains")  # what the owner put away stays away


async def test_a_use_by_the_agent_brings_back_what_aged_and_a_reviewers_look_does_not(home: Path) -> None:
    async with care(home, NOTHING) as it:
        await two(it)
        await it.live(daily(120, NOON.date()))
        await done(it)
        view = next(tool for tool in knowledge_tools(it.library, "/work") if tool.spec.name == "skill_view")
        looked = call("skill_view", name="night-trains")

        async def see(origin: Origin) -> str:
            header = Header(SessionId(origin), NOON, origin=origin)
            return (await view.run(looked, replace(context(), header=header, call=looked))).text

        for origin in (Origin.REVIEW, Origin.CURATOR):
            assert "is archived" in await see(origin)
        assert "Book early." in await see(Origin.USER)
        assert ARCHIVED not in (await it.held())["night-trains"]
        assert "Pack the bag." in await it.library.use(["trip-planning"], SessionId("s"))
        await it.keeper.edit_skill("night-trains", Archive(), OWNER)
        assert "is archived" in await see(Origin.USER)


@pytest.mark.parametrize("into", ["trip-planning", "rail-journeys"])
async def test_a_merged_skill_is_as_young_as_the_youngest_it_was_made_of(home: Path, into: str) -> None:
    """One source was used long ago and changed of late, the other one was made long ago and used of late."""
    async with care(home, answering(merge(into, ["trip-planning", "night-trains"], BOTH))) as it:
        await two(it)
        days = daily(120, NOON.date())
        await it.live(days, {"trip-planning": [2], "night-trains": [100]})
        it.clock.advance(110 * 86_400)
        await it.keeper.edit_skill("trip-planning", WriteFile("references/new.md", b"x"), OWNER)
        it.clock.advance(-100 * 86_400)
        await done(it)
        ages = {each.name: each.unused for each in await it.curator.ages()}
        assert ages == {into: 8}


async def test_ageing_can_be_asked_for_and_asks_once(home: Path) -> None:
    rules = KeeperRules(DEFAULTS.limits, {Actor.CURATOR: LearningMode.ASK})
    async with care(home, NOTHING, rules) as it:
        await two(it)
        await it.live(daily(120, NOON.date()))
        entries = await done(it)
        assert [each.change.standing for each in entries] == [ChangeState.PENDING] * 2
        assert await done(it) == ()
        await it.keeper.approve(entries[0].id)
        assert all(ARCHIVED in files for files in (await it.held()).values())
        assert await it.library.wake("night-trains")


@pytest.mark.parametrize("actor", [LearningMode.OFF, LearningMode.AUTO])
async def test_what_is_switched_off_asks_no_model_and_changes_nothing(
    home: Path, actor: LearningMode
) -> None:
    rules = KeeperRules(DEFAULTS.limits, {Actor.CURATOR: actor}, merges=LearningMode.OFF)
    async with care(home, answering(PLAN), rules) as it:
        await two(it)
        if actor is LearningMode.OFF:
            await it.live(daily(120, NOON.date()))
        before = await it.held()
        assert await done(it) == ()
        assert (it.model.calls, await it.held()) == ([], before)
        assert OFF in (await it.curator.preview()).thought.advice.skipped


async def test_what_is_merged_carries_the_lowest_label(home: Path) -> None:
    """One of the sources rests on foreign text, which the owner let pass: what is made of it waits again."""
    misled = Author(
        Actor.REVIEW,
        SessionId("bad"),
        evidence=(Evidence(SessionId("bad"), 1, Trust.FOREIGN, "0" * 64),),
        trust_floor=Trust.FOREIGN,
    )
    async with care(home, answering(PLAN)) as it:
        await it.learn("trip-planning", STEPS)
        waiting = await it.keeper.edit_skill(
            "night-trains",
            Create(document("night-trains", "# Trains\nBook early."), SkillOrigin.AGENT),
            misled,
        )
        assert waiting.change.standing is ChangeState.PENDING
        await it.keeper.approve(waiting.id)
        entries = await done(it)
        assert {each.change.standing for each in entries} == {ChangeState.PENDING}
        assert {each.change.cause for each in entries} == {"it rests on foreign text"}
        assert {each.change.author.trust_floor for each in entries} == {Trust.FOREIGN}


async def test_a_script_that_comes_along_waits_for_the_owner(home: Path) -> None:
    async with care(home, answering(PLAN)) as it:
        await two(it)
        await it.keeper.edit_skill("night-trains", WriteFile("scripts/book.sh", b"#!/bin/sh\n"), OWNER)
        entries = await done(it)
        assert {each.change.cause for each in entries} == {"it brings or changes a script"}


# When


async def test_a_round_is_due_once_a_week_and_only_when_nobody_has_had_a_turn_for_two_hours(
    home: Path,
) -> None:
    events: list[Event] = []
    async with care(home, NOTHING) as it:
        assert await it.curator.due() == ""  # nothing was learned yet
        await two(it)
        await it.live([NOON.date()])
        it.clock.advance(2 * 3600 - 1)
        assert await it.curator.due() == ""
        it.clock.advance(1)
        assert await it.curator.due() == "it is the first one"
        await it.curator.tend(events.append)
        assert [type(event) for event in events] == [Curated]
        it.clock.advance(timedelta(days=7).total_seconds() - 1)
        assert await it.curator.due() == ""
        it.curator.reports.pause()
        it.clock.advance(1)
        assert await it.curator.due() == ""
        it.curator.reports.resume()
        assert await it.curator.due() == "a week has passed"
        it.clock.advance(-30 * 86_400)
        assert await it.curator.due() == ""  # the last turn lies ahead: nobody knows how quiet it is


async def test_a_worker_hears_when_to_come_back_and_only_if_there_is_a_reason(home: Path) -> None:
    async with care(home, NOTHING) as it:
        assert await it.curator.next() is None, "nothing was learned yet"
        await two(it)
        await it.live([NOON.date()])
        first = NOON + timedelta(hours=2)
        assert await it.curator.next() == first
        it.clock.advance((first - it.clock.now()).total_seconds())
        assert await it.curator.due()
        await it.curator.tend(lambda _: None)
        assert await it.curator.next() is None, "nobody has used it since"
        it.clock.advance(3600)
        await it.learn("bus-routes", STEPS)
        assert await it.curator.next() == first + timedelta(days=7)
        it.clock.advance(timedelta(days=7).total_seconds())
        assert await it.curator.due()
        it.curator.reports.pause()
        assert await it.curator.next() is None


async def test_after_a_round_that_failed_a_worker_comes_back_the_next_day(home: Path) -> None:
    async with care(home, answering("I have merged them.")) as it:
        await two(it)
        await it.curator.work()
        assert await it.curator.next() == it.clock.now() + timedelta(days=1)


def test_a_pause_holds_on_all_machines_that_share_a_database(tmp_path: Path) -> None:
    shared = InMemoryDocuments()
    shared.shared = True
    one, other = (Reports(tmp_path / name / "curator", shared) for name in ("one", "other"))
    one.pause()
    assert other.is_paused
    other.resume()
    assert not one.is_paused


async def test_a_round_that_failed_is_due_again_the_next_day(home: Path) -> None:
    async with care(home, answering("I have merged them.")) as it:
        await two(it)
        found = await it.curator.work()
        assert found
        assert found[0].error.startswith("The answer is no plan")
        it.clock.advance(86_399)
        assert await it.curator.due() == ""
        it.clock.advance(1)
        assert await it.curator.due() == "the last one failed"


async def test_a_model_is_asked_again_only_if_a_learned_skill_has_changed(home: Path) -> None:
    async with care(home, NOTHING) as it:
        assert (await it.curator.preview()).thought.advice.skipped == FEW
        await two(it)
        await done(it)
        await done(it)
        assert len(it.model.calls) == 1
        assert (await it.curator.preview()).thought.advice.skipped == SAME
        await done(it, again=True)
        await it.keeper.edit_skill("night-trains", WriteFile("references/new.md", b"x"), OWNER)
        await done(it)
        await it.keeper.edit_skill("night-trains", Archive(), OWNER)
        await it.keeper.edit_skill("night-trains", Restore(), OWNER)
        await done(it)
        assert len(it.model.calls) == 2


async def test_the_budget_of_learning_holds_for_the_curator(home: Path) -> None:
    async with care(home, NOTHING) as it:
        await two(it)
        await done(it)
        taken = await it.sessions.spending()
        assert {each.origin for each in taken} == {Origin.CURATOR}
        bounds = Bounds(daily_tokens=1)
        assert "tokens a day is spent" in await spent(it.sessions, bounds, it.clock.now())
        it.clock.advance(86_400)
        assert await spent(it.sessions, bounds, it.clock.now()) == ""


async def test_of_two_who_find_a_round_due_one_does_it(home: Path) -> None:
    events: list[Event] = []
    async with care(home, NOTHING) as it:
        await two(it)
        why = await it.curator.due()
        await asyncio.gather(*(it.curator.tend(events.append) for _ in range(5)))
        assert await it.curator.work(why, due=True) is None  # it was due when that was asked
        assert (len(events), len(it.model.calls)) == (1, 1)


async def test_a_model_that_raises_is_a_line_in_the_report(home: Path) -> None:
    def broken(_: object) -> Message:
        raise ZeroDivisionError

    async with care(home, broken) as it:
        await two(it)
        found = await it.curator.work()
        assert found
        assert found[0].error == "It broke off with ZeroDivisionError."


async def test_somebody_else_who_is_at_it_is_left_alone(home: Path) -> None:
    async with care(home, NOTHING) as it:
        async with FileClaims(home).hold("curator"):
            assert await it.curator.work() is None
        assert await it.curator.work()


# What a model can make it do


async def test_a_dry_run_says_what_a_round_would_do_and_changes_nothing(home: Path) -> None:
    async with care(home, answering(PLAN)) as it:
        await two(it)
        before = await it.held()
        preview = await it.curator.preview()
        assert [each.change.kind for each in preview.entries] == ["merge", "archive"]
        assert (await it.held(), await it.keeper.ledger.latest()) == (before, 4)
        assert not list((home / "curator").glob("*")) if (home / "curator").exists() else True
        entries = await done(it)
        assert [each.change.deltas for each in entries] == [each.change.deltas for each in preview.entries]


@pytest.mark.parametrize("dry", [True, False], ids=["dry", "live"])
async def test_in_a_dry_run_as_in_a_live_one_every_tool_that_writes_is_denied(home: Path, dry: bool) -> None:
    text = document("trip-planning", "Do nothing.")
    calls = [
        call("skill_manage", action="edit", name="trip-planning", text=text, evidence=["#1"]),
        call("skill_manage", action="archive", name="night-trains", evidence=["#1"]),
        call("memory", action="add", text="The user likes rain.", evidence=["#1"]),
        call("skill_view", name="night-trains"),
        call("terminal", command="touch /tmp/x"),
    ]

    def obedient(messages: tuple[Message, ...]) -> Message:
        asked = any(message.role is Role.TOOL for message in messages)
        return assistant(json.dumps({"merge": []})) if asked else assistant(*calls)

    async with care(home, obedient) as it:  # type: ignore[arg-type]
        await two(it)
        before = await it.held()
        if dry:
            await it.curator.preview()
        else:
            assert await done(it) == ()
        said = [node.message.result for node in it.model.calls[-1][1].nodes if node.message.result]
        assert [result.failed for result in said] == [True, True, True, False, True]
        assert "skill_manage is not permitted here. Allowed here: skill_view, skills_list." in said[0].text
        assert (await it.held(), await it.keeper.ledger.latest()) == (before, 4)


OWN = ("trip-planning", "night-trains", "slow-queries", "ferry-tables")
PROTECTED = ("home-made-trips", "from-elsewhere", "pinned-trips", "put-away-trips", "code-review")


async def furnished(it: Care) -> None:
    """Four skills that may be changed, and one of each kind that may not."""
    await two(it)
    await it.learn(
        "slow-queries", "# Look\nAt the plan.\n\n# Index\nAdd one.", {"scripts/look.sh": b"#!/bin/sh\n"}
    )
    await it.learn("ferry-tables", "# Trains\nNone.", project="/work/sea")
    await it.keeper.edit_skill(
        "home-made-trips", Create(document("home-made-trips", STEPS), SkillOrigin.USER), OWNER
    )
    files = {DOCUMENT: document("from-elsewhere", STEPS).encode()}
    await it.keeper.edit_skill("from-elsewhere", Install(files, "/there"), OWNER)
    for name, edit in (("pinned-trips", Pin()), ("put-away-trips", Archive())):
        await it.learn(name, STEPS)
        await it.keeper.edit_skill(name, edit, OWNER)


def plain(body: str) -> str:
    return "\n".join(line for line in body.split("\n") if not line.startswith("#"))


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in PLAN["merge"][0].items() if name != field}


LIES: dict[str, Callable[[Random], object]] = {
    "says that it merged": lambda pick: (
        f"I merged {pick.choice(OWN)} into {pick.choice(OWN)}; nothing was lost."
    ),
    "a plan after some words": lambda pick: f"Here it is:\n{json.dumps(PLAN)}",
    "two plans": lambda pick: f"{json.dumps(PLAN)}\n{json.dumps(PLAN)}",
    "a key twice": lambda pick: json.dumps(PLAN)[:-1] + ', "merge": []}',
    "no object": lambda pick: pick.choice(["[]", "null", "1e999", '"merge"', "{", "", "[" * 100_000]),
    "wrong types": lambda pick: {"merge": [{**PLAN["merge"][0], pick.choice(["into", "body", "reason"]): 7}]},
    "lacks a field": lambda pick: {"merge": [without(pick.choice(["body", "description", "reason"]))]},
    "no reason": lambda pick: merge(
        "trip-planning", ["night-trains"], BOTH, reason=pick.choice(["", " ", "\n"])
    ),
    "one source": lambda pick: merge("trip-planning", pick.choice([[], ["trip-planning"]]), BOTH),
    "a source twice": lambda pick: merge("rail-trips", ["night-trains", "night-trains"], BOTH),
    "a source that is not there": lambda pick: merge("trip-planning", [f"ghost-{pick.randrange(99)}"], BOTH),
    "a link to what is not kept": lambda pick: merge(
        "trip-planning", ["night-trains"], f"{BOTH}\n\nSee references/merged/ghost-{pick.randrange(99)}.md."
    ),
    "a section dropped": lambda pick: merge(
        "trip-planning",
        ["night-trains"],
        BOTH.replace(pick.choice(["# Steps", "## Pitfalls", "# Trains"]), "# Other"),
    ),
    "a heading in code only": lambda pick: merge(
        "trip-planning", ["night-trains"], BOTH.replace("# Trains", "# Other\n```sh\n# Trains\n```")
    ),
    "all sections empty": lambda pick: merge(
        "trip-planning", ["night-trains"], "# Steps\n\n## Pitfalls\n\n# Trains\n"
    ),
    "one section empty": lambda pick: merge(
        "trip-planning", ["night-trains"], BOTH.replace(pick.choice(["Book early.", "Mind the rain."]), "")
    ),
    "no headings": lambda pick: merge("trip-planning", ["night-trains"], plain(BOTH)),
    "no text": lambda pick: merge("trip-planning", ["night-trains"], pick.choice(["", " ", "\n\n"])),
    "into a protected one": lambda pick: merge(
        pick.choice(PROTECTED), ["trip-planning", "night-trains"], BOTH
    ),
    "from a protected one": lambda pick: merge(
        "trip-planning", ["night-trains", pick.choice(PROTECTED)], BOTH
    ),
    "archives a protected one": lambda pick: {"archive": [{"name": pick.choice(PROTECTED), "reason": "old"}]},
    "a good merge beside a protected one": lambda pick: {
        **PLAN,
        "archive": [{"name": pick.choice(PROTECTED), "reason": "old"}],
    },
    "twice in one plan": lambda pick: {**PLAN, "archive": [{"name": "night-trains", "reason": "old"}]},
    "merged in circles": lambda pick: {
        "merge": [
            PLAN["merge"][0],
            {**PLAN["merge"][0], "into": "night-trains", "sources": ["trip-planning"]},
        ]
    },
    "files of its own": lambda pick: merge(
        "trip-planning", ["night-trains"], BOTH, files={"references/merged/night-trains.md": "forged"}
    ),
    "a file beside the plan": lambda pick: {**PLAN, "write_file": {"path": "scripts/x.sh", "content": "rm"}},
    "a support file as its name": lambda pick: merge(
        pick.choice(
            ["trip-planning/references", "../MEMORY.md", "SKILL.md", "references/x.md", "@origin", ""]
        ),
        ["trip-planning", "night-trains"],
        BOTH,
    ),
    "front matter in the text": lambda pick: merge(
        "trip-planning", ["night-trains"], f"---\nname: code-review\ndescription: x\n---\n\n{BOTH}"
    ),
    "another front matter by the description": lambda pick: merge(
        "trip-planning", ["night-trains"], BOTH, description="x" * pick.randrange(1_025, 9_000)
    ),
    "across projects": lambda pick: merge("trip-planning", ["ferry-tables"], BOTH),
    "a name of one day": lambda pick: merge(
        pick.choice(["fix-trips", "todo", "pr-1234-trips", "trips-2026"]),
        ["trip-planning", "night-trains"],
        BOTH,
    ),
    "a secret": lambda pick: merge(
        "trip-planning", ["night-trains"], f"{BOTH}\nexport OPENAI_API_KEY=sk-{'a1B2c3D4' * 6}"
    ),
    "too long a text": lambda pick: merge("trip-planning", ["night-trains"], BOTH + "x" * 100_000),
    "too long an answer": lambda pick: merge("trip-planning", ["night-trains"], BOTH + "x" * LONGEST),
    "deletes": lambda pick: {
        "merge": [],
        "archive": [],
        "delete": [{"name": pick.choice(OWN), "reason": "old"}],
    },
}


async def test_of_200_lying_plans_none_is_applied(home: Path, tier: Tier, figures: Figures) -> None:
    tried = applied = 0
    pick = tier.random()
    kinds = list(LIES)
    script: list[object] = []

    def liar(messages: Any) -> Message:
        return answering(script[-1])(messages)  # type: ignore[return-value]

    async with care(home, liar) as it:
        await furnished(it)
        before, latest = await it.held(), await it.keeper.ledger.latest()
        for number in range(200):
            kind = kinds[number % len(kinds)]
            script.append(LIES[kind](pick))
            it.clock.advance(86_400)
            found = await it.curator.work(again=True)
            assert found
            tried += 1
            applied += bool(found[1])
            assert found[0].error, kind
            assert (await it.held(), await it.keeper.ledger.latest()) == (before, latest), kind
    figures(f"{tried} lying plans in {len(kinds)} ways tried, {applied} applied")
    assert applied == 0


async def test_an_honest_plan_is_not_taken_for_a_lie(home: Path) -> None:
    plans: list[Script] = [
        answering(PLAN),
        answering(f"```json\n{json.dumps(PLAN, indent=1)}\n```"),
        answering(merge("rail-trips", ["trip-planning", "night-trains"], BOTH)),
        answering({"archive": [{"name": "night-trains", "reason": "trip-planning has it"}]}),
        answering(merge("trip-planning", ["trip-planning", "night-trains"], BOTH + "\n\n# More\nWords.")),
        answering(merge("trip-planning", ["night-trains"], BOTH.replace("# Trains", "### trains ##"))),
        answering(
            merge("trip-planning", ["night-trains"], f"{BOTH}\n\nSee references/merged/night-trains.md.")
        ),
        answering(merge("trip-planning", ["night-trains"], f"{BOTH}\n```sh\n# not a section\n```")),
    ]
    for number, plan in enumerate(plans):
        async with care(home, plan) as it:
            await two(it)
            found = await it.curator.work()
            assert found
            assert (number, found[0].error, bool(found[1])) == (number, "", True)
            assert {each.change.standing for each in found[1]} == {ChangeState.ACTIVE}
