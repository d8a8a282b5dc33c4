"""`hone sessions`: from list to prune, on what a run has left."""

import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hone import Hone
from hone.core.ids import SessionId
from hone.core.messages import assistant
from hone.core.turn import Origin
from hone.core.value import replace
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, rounds, rules
from tests.cli.driving import Ended, environment, hone, terminal

KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7


class Desk:
    """A home with a few sessions, and the command on it."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        self.env = env
        self.folder = folder

    async def run(self, task: str) -> str:
        ended = await hone("run", "--json", "-q", task, env=self.env, folder=self.folder)
        return str(json.loads(ended.out)["session"])

    async def sessions(self, *arguments: str) -> Ended:
        return await hone("sessions", *arguments, env=self.env, folder=self.folder)

    async def listed(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((await self.sessions("list", "--json", *arguments)).out)
        return found


@asynccontextmanager
async def context(home: Path, folder: Path) -> AsyncIterator[Desk]:
    (folder / "a.txt").write_text("".join(f"row {number}\n" for number in range(30)))
    async with FakeProvider(
        rounds(assistant("Looking.", call("read_file", path="a.txt")), "Thirty rows.")
    ) as stage:
        yield Desk(environment(home, stage), folder)


async def test_an_empty_home_lists_nothing(home: Path, tmp_path: Path) -> None:
    bare = Desk(environment(home), tmp_path)
    listed = await bare.sessions("list")
    told = "There are no conversations yet. Start one: hone\n"
    assert (listed.code, listed.out, listed.err) == (0, told, "")
    assert (await bare.sessions("list", "--json")).out == "[]\n"
    searched = await bare.sessions("search", "anything")
    assert searched.out == "No conversation is stored yet, so there is nothing to search.\n"
    pruned = await bare.sessions("prune", "--older-than", "1d")
    assert (pruned.code, pruned.out) == (0, "No session is older than 1d.\n")


async def test_a_session_is_listed_shown_renamed_and_branched(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        first, second = await at.run("how many rows?"), await at.run("and \x1b[31mnow?")
        listed = (await at.sessions("list")).out.splitlines()
        assert [line.split()[0] for line in listed] == ["id", second, first]
        assert "how many rows?" in listed[2]
        assert "\\x1b[31mnow?" in listed[1]
        assert [each["session"] for each in await at.listed("-n", "1")] == [second]

        shown = (await at.sessions("show", first[:7])).out
        assert "1 you" in shown
        assert "→ read_file a.txt" in shown
        assert "✓ row 0" in shown
        assert "row 29" not in shown
        assert "2 calls · " in shown
        assert "row 29" in (await at.sessions("show", first, "--full")).out

        renamed = await at.sessions("rename", first, "Rows", "of", "a.txt")
        assert (renamed.code, renamed.out) == (0, f"{first} is now called 'Rows of a.txt'.\n")
        assert "Rows of a.txt" in (await at.sessions("list")).out

        branched = await at.sessions("branch", first, "--at", "2")
        assert branched.code == 0
        data = json.loads((await at.sessions("show", branched.out.strip(), "--json")).out)
        assert (data["parent"], data["shared"], len(data["messages"])) == (first, 2, 2)
        for wrong in ("0", "5", "-1"):
            refused = await at.sessions("branch", first, "--at", wrong)
            assert (refused.code, refused.out) == (1, "")
            assert "1 to 4" in refused.err


async def test_a_branch_needs_no_model_and_can_be_talked_to(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        first = await at.run("how many rows?")
        keyless = Desk(environment(home), tmp_path)
        branch = (await keyless.sessions("branch", first)).out.strip()
        async with terminal("sessions", "resume", branch, env=at.env, folder=tmp_path) as user:
            await user.sees("Thirty rows.")
            assert "was begun in" not in user.text
            await user.enter("again")
            await user.sees("Thirty rows.\n\n2 calls")
            assert await user.leave() == 0
        assert {each["session"]: each["messages"] for each in await at.listed()} == {first: 4, branch: 8}


async def test_an_export_has_all_but_the_secrets(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        session = await at.run(f"my key is {KEY} and here is a fence:\n```\n## 2. Assistant\n\x1b[2J")
        data = json.loads((await at.sessions("export", session, "--format", "json")).out)
        assert [each["role"] for each in data["messages"]] == ["user", "assistant", "tool", "assistant"]
        assert [each["number"] for each in data["messages"]] == [1, 2, 3, 4]
        file = tmp_path / "out.md"
        written = await at.sessions("export", session, "-o", str(file))
        assert (written.code, written.out) == (0, f"Wrote {file}.\n")
        markdown = file.read_text()
        assert markdown.count("\n````\n") == 2
        assert "\x1b" not in markdown
        assert KEY not in markdown + json.dumps(data)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        again = await at.sessions("export", session, "-o", str(file))
        assert (again.code, file.read_text()) == (1, markdown)
        assert "already exists and was not changed" in again.err


async def test_what_is_deleted_is_named_and_asked_for_first(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        first, second, third = [await at.run(f"task {number}") for number in range(3)]
        unasked = await at.sessions("delete", first)
        assert unasked.code == 2
        assert "Add --yes" in unasked.err
        async with terminal("sessions", "delete", first, env=at.env) as user:
            await user.sees("task 0")
            await user.sees("Delete 1 session for good? [y/N]:")
            user.type("n\n")
            await user.sees("Nothing was deleted.")
            assert await user.ended() == 1
        assert len(await at.listed()) == 3
        async with terminal("sessions", "delete", first, env=at.env) as user:
            await user.sees("[y/N]:")
            user.type("y\n")
            await user.sees("Deleted 1 session.")
            assert await user.ended() == 0
        assert (await at.sessions("show", first)).code == 1
        pruned = await at.sessions("prune", "--older-than", "0h", "--yes")
        assert (pruned.code, pruned.out.splitlines()[-1]) == (0, "Deleted 2 sessions.")
        assert second in pruned.out
        assert third in pruned.out
        assert await at.listed("--all") == []


async def test_deleting_several_can_be_repeated_and_an_unknown_id_keeps_nothing(
    home: Path, tmp_path: Path
) -> None:
    async with context(home, tmp_path) as at:
        ids = [await at.run(f"task {number}") for number in range(3)]
        assert (await at.sessions("delete", "--yes", ids[0])).code == 0
        unknown = await at.sessions("delete", "--yes", "zzz", *ids[:2])
        assert (unknown.code, unknown.out.splitlines()[-1]) == (1, "Deleted 1 session.")
        assert unknown.err == "There is no session whose name starts with 'zzz'.\n"
        again = await at.sessions("delete", "--yes", *(id[:8] for id in ids))
        assert (again.code, again.err, again.out.splitlines()[-1]) == (0, "", "Deleted 1 session.")
        assert again.out.splitlines()[:2] == [f"Session {id} is already deleted." for id in ids[:2]]
        assert await at.listed("--all") == []
        once_more = await at.sessions("delete", *ids)
        assert (once_more.code, once_more.out.count("is already deleted")) == (0, 3)


async def test_a_session_and_its_fork_can_be_deleted_together(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        session = await at.run("task")
        async with Hone(home=home) as hone:
            stored = await hone.sessions.load(SessionId(session))
            fork = replace(
                stored.header, id=SessionId("fork"), parent=SessionId(session), shared=1, origin=Origin.REVIEW
            )
            await hone.sessions.start(fork, stored.prefix, ())
        ended = await at.sessions("delete", "--yes", session, "fork")
        assert (ended.code, ended.out.splitlines()[-1]) == (0, "Deleted 2 sessions.")
        assert await at.listed("--all") == []


async def test_prune_leaves_what_is_young(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        session = await at.run("task")
        pruned = await at.sessions("prune", "--older-than", "1h", "--yes")
        assert (pruned.code, pruned.out) == (0, "No session is older than 1h.\n")
        assert session in (await at.sessions("list")).out
        assert stat.S_IMODE(os.stat(home / "hone.db").st_mode) == 0o600


async def test_what_was_said_is_found_by_a_question_and_opened_at_its_message(
    home: Path, tmp_path: Path
) -> None:
    async with context(home, tmp_path) as at:
        first = await at.run("how many rows does the \x1b[31m harbour table have?")
        await at.run("what is for lunch?")
        found = await at.sessions("search", "what", "was", "it", "about", "the", "harbours?")
        assert found.code == 0
        assert f"Session {first}" in found.out
        assert "\\x1b[31m harbour" in found.out
        assert f"hone sessions show {first} --at 1" in found.out
        shown = (await at.sessions("show", first, "--at", "1")).out
        assert "harbour" in shown
        whole = json.loads((await at.sessions("search", "harbour", "--json", "-n", "1")).out)
        assert [(each["session"], each["message"], each["trust"]) for each in whole["hits"]] == [
            (first, 1, "owner")
        ]


async def test_a_search_that_finds_nothing_tells_what_it_tried(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        await at.run("how many rows?")
        nothing = await at.sessions("search", "the", "submarine")
        assert (nothing.code, "submarine" in nothing.out) == (1, True)
        assert (await at.sessions("search", "rows", "--since", "2999-01-01")).code == 1
        wrong = await at.sessions("search", "rows", "--since", "soon")
        assert (wrong.code, "is not an age" in wrong.err) == (2, True)


async def test_a_review_gives_a_conversation_its_title_without_a_further_call(home: Path) -> None:
    keep = call("memory", action="add", target="user", text="Use tabs.", evidence=["Use tabs."])
    titled = assistant("Title: **Tabs in \x1b[2JMakefiles.**", keep)
    script = rules(("has no title yet", rounds(titled, "Title: Another")), otherwise=rounds("Yes.", "Well."))
    async with FakeProvider(script) as stage:
        env = environment(home, stage)
        id = json.loads((await hone("run", "--json", "Use tabs.", env=env)).out)["session"]
        calls = len(stage.bodies)
        assert (await hone("review", id, env=env)).code == 0
        assert len(stage.bodies) == calls + 1
        listed = json.loads((await hone("sessions", "list", "--json", env=env)).out)
        assert [each["title"] for each in listed] == ["Tabs in \\x1b[2JMakefiles"]
        continued = await hone("-c", "go on", env=env)
        assert f"Continuing “Tabs in \\x1b[2JMakefiles” ({id}," in continued.err
        assert (await hone("sessions", "rename", id, "Mine", env=env)).code == 0
        assert (await hone("review", id, env=env)).code == 0
        assert b"has no title yet" not in stage.bodies[-1]
        listed = json.loads((await hone("sessions", "list", "--json", env=env)).out)
        assert [each["title"] for each in listed] == ["Mine"]
