"""`hone log` and the commands around it: a change is seen, explained, taken back, held back, withdrawn."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hone.app import Hone
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, Actor, Author, ChangeId, Evidence, Target
from hone.core.messages import assistant
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.core.value import replace
from hone.knowledge.journal import Add, Edit, ReplaceEntry
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, rounds, rules
from tests.cli.driving import Ended, environment, hone, terminal
from tests.cli.owner import Owner
from tests.conftest import Figures

SESSION, OTHER = SessionId("5e55105e55"), SessionId("07he45e551")
RESTS = (Evidence(SESSION, 2, Trust.OWNER, "0" * 64),)
AGENT = Author(Actor.AGENT, SESSION, tool="memory", evidence=RESTS)
REVIEW = Author(Actor.REVIEW, SESSION, reason="The user corrected the format", evidence=RESTS)
MISLED = Author(Actor.REVIEW, SESSION, evidence=RESTS, trust_floor=Trust.FOREIGN)
MINUTES = "---\nname: meeting-minutes\ndescription: Write minutes from a recording.\n---\n\nListen twice.\n"


@pytest.fixture
def owner(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Owner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return Owner(home, capsys, monkeypatch)


def note(author: Author, edit: Edit, target: Target = MEMORY) -> ChangeId:
    """Somebody else changes the journal."""

    async def act() -> ChangeId:
        async with Hone() as it:
            return (await it.library.keeper.note([(target, edit)], author))[0].id

    return asyncio.run(act())


def shelve(author: Author, *edits: Create | WriteFile) -> list[ChangeId]:
    async def act() -> list[ChangeId]:
        async with Hone() as it:
            return [
                (await it.library.keeper.edit_skill("meeting-minutes", edit, author)).id for edit in edits
            ]

    return asyncio.run(act())


def test_an_empty_home_has_no_log_and_unknown_ids_are_said_plainly(owner: Owner) -> None:
    assert owner.does("log") == "Nothing has been learned or changed yet.\n"
    assert owner.does("log", "--actor", "review") == "No change matches.\n"
    assert owner.does("pending") == "Nothing waits for you.\n"
    assert owner.does("log", "--json") == owner.does("pending", "--json") == "[]\n"
    for unknown in ("show 7", "diff 7", "diff 7 8", "undo 7", "approve 7", "reject 7"):
        assert owner.fails(*unknown.split()) == "There is no change 7.\n", unknown
    assert owner.fails("undo", str(10**30)) == f"There is no change {10**30}.\n"
    assert "no session" in owner.fails("forget", "abc").lower()
    for wrong in (
        *("undo x", "undo 0", "show", "approve", "log --since yesterday", "log --actor cat"),
        *("forget abc:x", "forget :1"),
    ):
        assert owner(*wrong.split()).code == 2, wrong


def test_the_log_tells_who_changed_what_newest_first_and_can_be_narrowed(owner: Owner) -> None:
    owner.does("memory", "add", "Staging is at staging.example.org")
    note(AGENT, Add("The tests take two minutes"))
    shelve(REVIEW, Create(MINUTES, SkillOrigin.AGENT))
    note(MISLED, Add("Deploys run \x1b[31mon Fridays"), USER)
    journal = owner.home / "MEMORY.md"
    journal.write_text(journal.read_text().replace("- The tests take two minutes\n", ""))
    head, *rows = owner.does("log").splitlines()
    assert head.split() == ["what", "id", "when", "by"]
    assert [row.split()[-3] for row in rows] == ["5", "4", "3", "2", "1"]
    edit, waits, create, agent, add = (" ".join(row.split()) for row in rows)
    assert edit.startswith('forgot "The tests take two minutes" 5')
    assert edit.endswith(" owner")
    assert waits.startswith('you: "Deploys run \\x1b[31mon Fridays" (waits) 4')
    assert create.startswith('skill meeting-minutes created — "')
    assert " (unconfirmed) 3 " in create
    assert agent.startswith('"The tests take two minutes" (unconfirmed) 2')
    assert agent.endswith(" agent")
    assert add.startswith('"Staging is at staging.example.org" 1')
    assert "\x1b" not in "".join(rows)
    narrowed = {
        ("-n", "2"): [5, 4],
        ("--target", "memory"): [5, 2, 1],
        ("--target", "user"): [4],
        ("--target", "meeting-minutes"): [3],
        ("--target", "skill:meeting-minutes"): [3],
        ("--target", "skill:"): [3],
        ("--target", "project"): [],
        ("--actor", "review"): [4, 3],
        ("--since", "1h"): [5, 4, 3, 2, 1],
        ("--since", "2999-01-01"): [],
    }
    for options, ids in narrowed.items():
        assert [each["id"] for each in owner.logged(*options)] == ids, options
    found = owner.logged("--target", "user")[0]
    assert (found["standing"], found["cause"], found["fate"]) == (
        "pending",
        "it has hidden characters",
        "waits",
    )
    assert found["evidence"][0]["session"] == SESSION


def test_undo_shows_what_goes_and_takes_back_nothing_else(owner: Owner) -> None:
    for text in ("Alpha", "Beta", "Gamma"):
        owner.does("memory", "add", text)
    said = owner.does("undo", "2")
    assert "  -- Beta\n" in said
    assert said.endswith("Change 2 is undone by change 4. Restore it with: hone undo 4\n")
    assert owner.said("memory") == ["Alpha", "Gamma"]
    assert owner.fails("undo", "2") == "Change 2 was already undone by change 4.\n"
    owner.does("undo", "4")
    assert sorted(owner.said("memory")) == ["Alpha", "Beta", "Gamma"]
    fates = {each["id"]: each["fate"] for each in owner.logged()}
    assert (fates[2], fates[4]) == ("undone by 4, and back again", "undone by 5")
    owner.does("undo", "2")
    assert owner.said("memory") == ["Alpha", "Gamma"]


def test_an_undo_that_meets_a_later_change_shows_both_and_forces_nothing(owner: Owner) -> None:
    owner.does("memory", "add", "Alpha")
    owner.does("memory", "replace", "Alpha", "Alpha, or beta")
    before = (owner.home / "MEMORY.md").read_bytes()
    refused = owner.fails("undo", "1")
    assert "nothing was changed" in refused
    assert "now:\n  - Alpha, or beta\nwanted:\n  (nothing)\n" in refused
    assert "Changes since: 2." in refused
    assert (owner.home / "MEMORY.md").read_bytes() == before
    assert len(owner.logged()) == 2


def test_a_diff_is_one_change_or_all_between_two(owner: Owner) -> None:
    for text in ("Alpha", "Beta", "Gamma"):
        owner.does("memory", "add", text)
    owner.does("memory", "add", "Omega", "--to", "user")
    waiting = note(MISLED, Add("Delta"))
    head = "--- a/MEMORY.md\n+++ b/MEMORY.md\n"
    assert owner.does("diff", "2") == f"{head}@@ -1 +1,2 @@\n - Alpha\n+- Beta\n"
    assert owner.does("diff", "1", "3") == f"{head}@@ -1 +1,3 @@\n - Alpha\n+- Beta\n+- Gamma\n"
    assert owner.does("diff", "3", "1") == f"{head}@@ -1,3 +1 @@\n - Alpha\n-- Beta\n-- Gamma\n"
    assert owner.does("diff", "3", "3") == ""
    assert "Change 1 is about memory, change 4 about user" in owner.fails("diff", "1", "4")
    assert "did not take effect" in owner.fails("diff", "1", str(waiting))
    assert "+- Delta\n" in owner.does("diff", str(waiting))


def test_what_waits_has_no_effect_until_it_is_approved_as_shown(owner: Owner) -> None:
    owner.does("memory", "add", "Alpha")
    first, second = note(MISLED, Add("Deploys run on Fridays")), note(MISLED, Add("Nobody tests"))
    script = shelve(MISLED, Create(MINUTES, SkillOrigin.AGENT))[0]
    assert (owner.home / "MEMORY.md").read_text() == "- Alpha\n"
    assert not (owner.home / "skills").exists()
    said = owner.does("pending")
    assert said.index("Deploys run") < said.index("Nobody tests") < said.index("Listen twice.")
    assert "waits because: it rests on foreign text\n" in said
    assert f"hone approve {first}   or   hone reject {first}\n" in said
    assert "3 changes wait for you.\nLessons from what Hone reads here wait" in said
    assert said.endswith("to trust it: hone trust\n")
    assert [each["id"] for each in json.loads(owner.does("pending", "--json"))] == [first, second, script]

    unasked = owner("approve", str(first))
    assert (unasked.code, "Add --yes" in unasked.err) == (2, True)
    assert "turn it down with: hone reject" in owner.fails("undo", str(first))
    assert owner.fails("approve", "--yes", str(first), "1") == (
        "Change 1 does not wait: it took effect when it was made. Nothing was changed.\n"
    )
    assert owner.said("memory") == ["Alpha"]

    approved = owner.does("approve", "--yes", str(first), str(script))
    assert "  +- Deploys run on Fridays\n" in approved
    assert f"Change {first} is approved by change 5. Undo it with: hone undo 5\n" in approved
    assert owner.said("memory") == ["Alpha", "Deploys run on Fridays"]
    assert (owner.home / "skills/meeting-minutes/SKILL.md").read_text() == MINUTES
    assert f"Change {second} is rejected by change 7.\n" in owner.does("reject", str(second))
    assert owner.fails("approve", "--yes", str(second)) == (
        f"Change {second} does not wait: it was rejected by 7. Nothing was changed.\n"
    )
    assert "was approved by 5" in owner.fails("reject", str(first))
    assert "Change 7 changed nothing" in owner.fails("undo", "7")
    owner.does("undo", "5")
    assert owner.said("memory") == ["Alpha"]
    assert owner.does("pending") == "Nothing waits for you.\n"


def test_an_approval_that_no_longer_fits_is_refused_and_the_others_go_on(owner: Owner) -> None:
    owner.does("memory", "add", "Alpha")
    tainted, sound = note(MISLED, ReplaceEntry("Alpha", "Alpha is bad")), note(MISLED, Add("Beta"))
    owner.does("memory", "replace", "Alpha", "Alpha is good")
    ended = owner("approve", "--yes", str(tainted), str(sound))
    assert ended.code == 1
    assert f"Change {tainted} was not approved: MEMORY.md has changed since in the same place" in ended.err
    assert owner.said("memory") == ["Alpha is good", "Beta"]
    assert [each["id"] for each in json.loads(owner.does("pending", "--json"))] == [tainted]


async def test_at_a_terminal_each_approval_is_asked_for(home: Path, tmp_path: Path) -> None:
    await asyncio.to_thread(note, MISLED, Add("Deploys \u202erun on Fridays\nand\u200b Mondays"))
    await asyncio.to_thread(note, MISLED, Add("Nobody tests"))
    env = environment(home)
    async with terminal("approve", "1", env=env, folder=tmp_path) as user:
        await user.sees("waits because", "Approve change 1 as shown? [y/N]:")
        assert await user.interrupt() == 130
        await user.sees("Stopped.")
    async with terminal("approve", "1", env=env, folder=tmp_path) as user:
        await user.sees("waits because", "Approve change 1 as shown? [y/N]:")
        user.type(b"n\n")
        await user.sees("Change 1 still waits.")
        assert await user.ended() == 1
    async with terminal("approve", "1", "2", env=env, folder=tmp_path) as user:
        await user.sees(
            "+- Deploys \\u202erun on Fridays", "+  and\\u200b Mondays", "change 1 as shown? [y/N]:"
        )
        user.type("y\n")
        await user.sees("+- Nobody tests", "change 2 as shown? [y/N]:")
        user.type("n\n")
        await user.sees("Change 2 still waits.", "Change 1 is approved by change 3.")
        assert await user.ended() == 1
    assert (home / "MEMORY.md").read_text() == "- Deploys \\u202erun on Fridays\n  and\\u200b Mondays\n"


def test_forgetting_a_source_withdraws_what_rests_on_it_and_nothing_else(
    owner: Owner, figures: Figures
) -> None:
    other = replace(AGENT, session=OTHER, evidence=(replace(RESTS[0], session=OTHER),))
    later = replace(AGENT, evidence=(replace(RESTS[0], message=9),))
    owner.does("memory", "add", "Mine")
    note(AGENT, Add("From message two"))
    note(later, Add("From message nine"))
    note(other, Add("From elsewhere"))
    waits = note(MISLED, Add("Waits"))
    unasked = owner("forget", SESSION)
    assert (unasked.code, "3 changes would be withdrawn" in unasked.err) == (2, True)
    assert owner.does("forget", f"{SESSION}:4") == "Hone learned nothing from it.\n"
    said = owner.does("forget", f"{SESSION}:9", "--yes")
    assert "\nChange 3 was undone by change 6.\n" in said
    assert "hone erase removes it for good" in said.splitlines()[-1]
    assert owner.said("memory") == ["Mine", "From message two", "From elsewhere"]
    said = owner.does("forget", SESSION, "--yes")
    assert f"Change {waits} was rejected by change " in said
    assert owner.said("memory") == ["Mine", "From elsewhere"]
    assert owner.does("pending") == "Nothing waits for you.\n"
    figures("3 changes rested on a forgotten session: 3 withdrawn, 0 of 2 others lost")


def test_what_cannot_be_withdrawn_is_said_and_stays(owner: Owner) -> None:
    note(AGENT, Add("From a session"))
    owner.does("memory", "replace", "From a session", "From a session, and mended by me")
    ended = owner("forget", SESSION, "--yes")
    assert ended.code == 1
    assert "Change 1 could not be withdrawn: MEMORY.md has changed since in the same place" in ended.err
    assert owner.said("memory") == ["From a session, and mended by me"]


TEACHING = rules(
    (
        "short",
        rounds(
            assistant(
                call(
                    "memory",
                    action="add",
                    target="user",
                    text="Prefers short answers.",
                    evidence=["short answers"],
                )
            ),
            "Noted.",
        ),
    ),
    (
        "page",
        rounds(
            assistant(call("read_file", path="page.txt")),
            assistant(call("memory", action="add", text="Deploys run on Fridays.", evidence=["#2", "#3"])),
            "Noted.",
        ),
    ),
    otherwise=rounds("Hello."),
)


class Desk:
    """A home, a model that notes what it is told to, and the command as a process."""

    def __init__(self, stage: FakeProvider, env: dict[str, str], folder: Path) -> None:
        self.stage = stage
        self.env = env
        self.folder = folder

    async def run(self, task: str) -> str:
        ended = await self("run", "--json", "-q", task)
        assert ended.code == 0, ended.err
        return str(json.loads(ended.out)["session"])

    async def __call__(self, *arguments: str) -> Ended:
        return await hone(*arguments, env=self.env, folder=self.folder)

    async def entries(self) -> list[str]:
        parts: list[dict[str, Any]] = json.loads((await self("memory", "show", "--json")).out)
        return [entry["text"] for part in parts for entry in part["entries"]]


@asynccontextmanager
async def context(home: Path, folder: Path) -> AsyncIterator[Desk]:
    (folder / "page.txt").write_text("Deploys run on Fridays.\n")
    async with FakeProvider(TEACHING) as stage:
        yield Desk(stage, environment(home, stage), folder)


async def test_a_lesson_is_explained_by_its_words_until_they_are_gone_and_then_withdrawn(
    home: Path, tmp_path: Path
) -> None:
    async with context(home, tmp_path) as at:
        ended = await at("run", "--json", "-q", "Please: I prefer short answers.")
        told = json.loads(ended.out)
        session = str(told["session"])
        [lesson] = told["learned"]
        assert (lesson["undo"], lesson["target"], lesson["text"]) == (1, "user", "Prefers short answers.")
        shown = (await at("show", "1")).out
        assert "Change 1: user, add\n" in shown
        assert f"by agent, in session {session}, with memory, +1 −0" in shown
        assert f"rests on message 1 of session {session} (owner): “Please: I prefer short answers.”" in shown
        assert "least trusted in the conversation so far: " in shown
        assert "+- Prefers short answers.\n" in shown
        deleted = await at("sessions", "delete", session, "--yes")
        assert (deleted.code, deleted.out.splitlines()[-2:]) == (
            0,
            [f"The lessons stay. To withdraw them: hone forget {session}", "Deleted 1 session."],
        )
        assert "(owner): (the session is gone)\n" in (await at("show", "1")).out
        assert await at.entries() == ["Prefers short answers."]
        forgotten = await at("forget", session, "--yes")
        assert (forgotten.code, forgotten.out.splitlines()[-2]) == (0, "Change 1 was undone by change 2.")
        assert await at.entries() == []


async def test_what_a_page_taught_is_in_no_prompt_before_the_owner_agrees(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        await at.run("Read the page.")
        shown = (await at("show", "1")).out
        assert "waits because: it rests on foreign text\n" in shown
        assert "(foreign): “Deploys run on Fridays." in shown or "(foreign): “1" in shown
        await at.run("hi")
        assert b"Fridays" not in at.stage.bodies[-1]
        assert (await at("approve", "1", "--yes")).code == 0
        await at.run("hi")
        assert b"Deploys run on Fridays." in at.stage.bodies[-1]


async def test_deleting_a_session_asks_about_what_was_learned_from_it(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        session = await at.run("Please: I prefer short answers.")
        async with terminal("sessions", "delete", session, env=at.env, folder=tmp_path) as user:
            await user.sees("for good? [y/N]:")
            user.type("y\n")
            await user.sees("Prefers short answers.", "Withdraw what was learned, too (1 change)? [y/N]:")
            user.type("y\n")
            await user.sees("Change 1 was undone by change 2.", "Deleted 1 session.")
            assert await user.ended() == 0
        assert await at.entries() == []
        session = await at.run("Please: I prefer short answers.")
        kept = await at("sessions", "prune", "--older-than", "0h", "--yes", "--lessons", "withdraw")
        assert (kept.code, kept.out.splitlines()[-1]) == (0, "Deleted 1 session.")
        assert await at.entries() == []
