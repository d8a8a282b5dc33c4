"""`hone templates`, and beginning with one: as a new user would type it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hone.core.messages import assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, rounds
from tests.cli.driving import Ended, environment, hone, terminal

WORK = rounds(
    assistant("Looking.", call("read_file", path="a.txt"), call("read_file", path="no")), "Two rows."
)


class Desk:
    def __init__(self, env: dict[str, str], folder: Path) -> None:
        self.env, self.folder = env, folder

    async def hone(self, *arguments: str) -> Ended:
        return await hone(*arguments, env=self.env, folder=self.folder)

    async def data(self, *arguments: str) -> Any:
        ended = await self.hone("templates", *arguments, "--json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    async def run(self, *arguments: str) -> str:
        ended = await self.hone("run", "--json", "-q", *arguments)
        assert ended.code == 0, ended.err
        return str(json.loads(ended.out)["session"])


@asynccontextmanager
async def context(home: Path, folder: Path, script: Script | None = None) -> AsyncIterator[Desk]:
    (folder / "a.txt").write_text("row one\nrow two\n")
    async with FakeProvider(script or WORK) as stage:
        at = Desk(environment(home, stage), folder)
        await at.hone("trust", ".")
        yield at
        assert stage.invalid == []


async def test_what_cannot_be_done_says_why(home: Path, tmp_path: Path) -> None:
    bare = Desk(environment(home), tmp_path)
    for line in (("list",), ("stats",)):
        ended = await bare.hone("templates", *line)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == "There are no templates yet. Make one: hone templates create SESSION\n"
    for arguments, code, sentence in (
        (("templates", "create", "3f2a"), 1, "There is no session whose name starts with '3f2a'."),
        (("templates", "show", "rows"), 1, "There is no template rows. See hone templates list."),
        (("templates", "delete", "../rows"), 1, "cannot be a template's name"),
        (("templates", "list", "--type", "odd"), 2, "'odd' is not one of"),
        (("templates", "create", "3f2a", "--max-examples", "0"), 2, "0 is not in the range"),
        (("-c", "--template", "rows"), 2, "--template works only at the start of a conversation"),
        (
            ("run", "-r", "3f2a", "--template", "rows", "hi"),
            2,
            "--template works only at the start of a conversation",
        ),
    ):
        ended = await bare.hone(*arguments)
        assert (ended.code, ended.out) == (code, ""), arguments
        assert sentence in ended.err


async def test_from_create_to_delete(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        session = await at.run("count the rows")
        made = await at.hone("templates", "create", session[:6], "--name", "rows", "--tags", "rows,a-file")
        assert made.out.splitlines() == [
            "Made template rows (file, 1 example):",
            "  → read_file a.txt: 2 lines",
            "Begin with it: hone --template rows",
        ]
        again = await at.hone("templates", "create", session, "--name", "rows")
        assert (again.code, again.err) == (1, "There is a template rows already. Choose another name.\n")
        other = await at.data(
            "create", session, "--type", "code", "--description", "odd", "--max-examples", "1"
        )
        assert (other["name"], other["type"], len(other["examples"])) == ("odd", "code", 1)

        listed = await at.data("list")
        assert [(each["name"], each["examples"], each["uses"]) for each in listed] == [
            ("odd", 1, 0),
            ("rows", 1, 0),
        ]
        assert [each["name"] for each in await at.data("list", "--type", "code")] == ["odd"]
        assert [each["name"] for each in await at.data("list", "--tags", "a-file,rows")] == ["rows"]
        assert [each["name"] for each in await at.data("list", "--tags", "rows,none")] == ["rows"]
        assert await at.data("list", "--tags", "none,other") == []
        table = (await at.hone("templates", "list")).out.splitlines()
        assert table[0].split() == ["name", "type", "examples", "uses", "about"]
        assert "[rows, a-file] count the rows" in table[2]
        shown = (await at.hone("templates", "show", "rows")).out
        assert '→ read_file {"path":"a.txt"}' in shown
        assert "(15 characters; call agent, result local)" in shown
        assert (await at.data("show", "rows"))["session"] == session

        for task in ("one", "two"):
            await at.run("--template", "rows", task)
        begun = await at.hone("--template", "auto", "run", "count rows")
        assert "Begins with template rows: 1 example from an earlier session (its tag rows" in begun.err
        assert await at.data("stats") == {
            "total": 2,
            "examples": 2,
            "uses": 3,
            "by_type": {
                "code": {"total": 1, "examples": 1, "uses": 0},
                "file": {"total": 1, "examples": 1, "uses": 3},
            },
        }
        assert (await at.hone("templates", "stats")).out.splitlines()[-1].split() == ["all", "2", "2", "3"]

        gone = await at.hone("sessions", "delete", session, "--yes")
        assert "Template rows was made from it and stays." in gone.out
        path = home / "templates" / "rows.json"
        assert path.exists()
        assert (await at.hone("templates", "delete", "rows")).out == "Deleted template rows.\n"
        assert not path.exists()
        assert [each["name"] for each in await at.data("list")] == ["odd"]


async def test_a_file_that_was_edited_is_named_beside_the_others(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        session = await at.run("count the rows")
        for name in ("rows", "sound"):
            await at.data("create", session, "--name", name)
        path = home / "templates" / "rows.json"
        path.write_text(edited := path.read_text().replace("a.txt", "b.txt"))
        for line in (("templates", "show", "rows"), ("run", "--template", "rows", "hi")):
            ended = await at.hone(*line)
            assert (ended.code, ended.out) == (1, "")
            assert "rows.json cannot be used: it was changed outside of Hone" in ended.err
        listed = await at.hone("templates", "list", "--json")
        assert [each["name"] for each in json.loads(listed.out)] == ["sound"]
        assert "rows.json cannot be used" in listed.err
        assert path.read_text() == edited


async def test_foreign_text_is_not_kept_and_what_came_after_it_is_shown_to_the_letter(
    home: Path, tmp_path: Path
) -> None:
    after = call("search_files", pattern="row one", glob="*.txt")
    script = rounds(assistant(call("read_file", path="a.txt")), assistant(after), "Two rows.")
    async with context(home, tmp_path, script) as at:
        await at.hone("trust", "--forget")
        made = (await at.hone("templates", "create", await at.run("count the rows"))).out.splitlines()
        assert made[:2] == [
            "Made template count-the-rows (file, 2 examples):",
            "  → read_file a.txt: 15 characters of foreign text, not kept",
        ]
        assert made[2].startswith('  → search_files {"glob":"*.txt","pattern":"row one"}: ')
        assert made[3:] == [
            "Foreign text was read in that session: what is learned after these examples waits for you.",
            "Begin with it: hone --template count-the-rows",
        ]
        first, second = (await at.data("show", "count-the-rows"))["examples"]
        kept = "(It succeeded with 15 characters. They are foreign text and are not kept.)"
        assert (first["result"], first["size"], first["result_trust"]) == (kept, 15, "foreign")
        assert (first["call_trust"], second["call_trust"]) == ("agent", "foreign")


async def test_a_chat_begins_with_a_template_and_shows_it(home: Path, tmp_path: Path) -> None:
    async with context(home, tmp_path) as at:
        await at.data("create", await at.run("count the rows"), "--name", "rows")
        async with terminal("--template", "rows", env=at.env, folder=tmp_path) as screen:
            await screen.enter("and again")
            await screen.sees("Begins with template rows: 1 example from an earlier session.", "Two rows.")
            assert await screen.leave() == 0
        (latest, *_) = json.loads((await at.hone("sessions", "list", "--json")).out)
        assert latest["opening"] == "and again"
        shown = (await at.hone("sessions", "show", latest["session"])).out.splitlines()
        assert shown[4].startswith("1 hone ")
        assert shown[4].endswith(" · example from template rows")
        assert (
            "(Hone told the model: Examples from an earlier session, not part of this conversation)"
            in shown[5]
        )
        assert len((await at.data("show", "rows"))["uses"]) == 1
