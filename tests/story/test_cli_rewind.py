"""L3, as a user meets it: `hone rewind`, `/rewind` in the chat, the operation of the page, a real sandbox."""

import inspect
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from hone import Hone
from hone.cli.slash import ChatState, SlashMenu, obey
from hone.core.messages import Message, assistant
from hone.features.checkpoints.part import CheckpointsPart
from hone.files.documents import FileDocuments
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, Scripted, call, lines
from hone.runtime.trust import Folders, OwnersList
from hone.settings import Settings
from hone.settings.sections import CheckpointSettings
from tests.cli.driving import Ended, environment, hone, terminal
from tests.conftest import Figures, Tier
from tests.features.histories import NAMES, Deed, Oracle, do, survey
from tests.features.world import GIT
from tests.web.rig import running

WORK = lines(
    assistant(
        call("write_file", path="a.txt", content="two\n"), call("write_file", path="new/b.txt", content="b\n")
    ),
    "Written.",
    assistant(call("terminal", command="echo three >> a.txt; rm -r new; echo log > out.log")),
    "Ran it.",
)


class Desk:
    """A folder with a file, and somebody who types `hone` there."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        self.env, self.folder = env, folder
        (folder / "a.txt").write_text("one\n")

    async def hone(self, *arguments: str) -> Ended:
        return await hone(*arguments, env=self.env, folder=self.folder)

    async def said(self, *arguments: str) -> list[str]:
        ended = await self.hone(*arguments)
        assert (ended.code, ended.err) == (0, ""), ended
        return ended.out.splitlines()

    async def work(self) -> str:
        """Two turns of one session; returns its id."""
        first = json.loads((await self.hone("run", "-q", "--json", "write them")).out)["session"]
        await self.hone("run", "-q", "-r", first, "now the command")
        return str(first)

    @property
    def files(self) -> dict[str, str]:
        return {path: state[2].decode() for path, state in survey(self.folder).items() if state[0] == "file"}


@asynccontextmanager
async def desk(home: Path, folder: Path, script: Script = WORK) -> AsyncIterator[Desk]:
    async with FakeProvider(script) as stage:
        at = Desk(environment(home, stage), folder)
        await at.hone("trust", ".")
        yield at


ONE = {"a.txt": "one\n"}
TWO = {"a.txt": "two\n", "new/b.txt": "b\n"}
THREE = {"a.txt": "two\nthree\n", "out.log": "log\n"}


async def test_files_are_listed_by_turn_rewound_and_redone(home: Path, tmp_path: Path) -> None:
    async with desk(home, tmp_path) as at:
        assert await at.said("rewind") == [
            "No session has changed files in this folder. Name one: hone rewind SESSION"
        ]
        session = await at.work()
        assert at.files == THREE
        listed = await at.said("rewind", "--list")
        times = [line.split("  ")[1] for line in listed if line.startswith("turn")]
        assert listed == [
            f"Session {session} in {tmp_path}",
            f"turn 1  {times[0]}  write them",
            "  changed   a.txt",
            "  created   new/b.txt",
            f"turn 2  {times[1]}  now the command",
            "  terminal: echo three >> a.txt; rm -r new; echo log > out.log",
            "    changed   a.txt",
            "    deleted   new/b.txt",
            "    created   out.log",
        ]
        todo = ["  restore       a.txt", "  bring back    new/b.txt", "  remove        out.log"]
        assert await at.said("rewind", "--to", "2", "--dry-run") == todo
        assert at.files == THREE
        asked = await at.hone("rewind", "--to", "2")
        assert (asked.code, asked.out.splitlines()) == (2, todo)
        assert "Hone cannot ask here. Add --yes" in asked.err
        assert await at.said("rewind", "--to", "2", "--yes") == [
            "  restored      a.txt",
            "  brought back  new/b.txt",
            "  removed       out.log",
            "Rewound 3 files to the state before turn 2.",
            f"Undo that with: hone rewind {session} --redo",
        ]
        assert at.files == TWO
        assert (await at.said("rewind", "--redo", "--yes"))[-1] == "Redone: 3 files as before the rewind."
        assert at.files == THREE
        (tmp_path / "a.txt").write_text("mine\n")
        done = json.loads("\n".join(await at.said("rewind", session[:6], "--to", "1", "--yes", "--json")))
        assert [Path(each["path"]).name for each in done["left"]] == ["a.txt"]
        assert at.files == {"a.txt": "mine\n"}
        left = await at.hone("rewind", "--to", "1", "--yes")
        assert (left.code, left.out.splitlines()) == (
            1,
            ["  left alone    a.txt: changed by you since", "Nothing was changed."],
        )
        none = await at.hone("rewind", "--to", "9", "--yes")
        assert (none.code, none.out) == (0, "There is nothing to restore.\n")


async def test_with_the_conversation_a_new_session_begins_before_the_turn(home: Path, tmp_path: Path) -> None:
    async with desk(home, tmp_path) as at:
        session = await at.work()
        said = await at.said("rewind", "--to", "2", "--with-conversation", "--yes")
        assert at.files == TWO
        branch = said[-1].split()[-1]
        assert said[-1] == f"The conversation before turn 2 is session {branch}: hone --resume {branch}"
        shown = json.loads("\n".join(await at.said("sessions", "show", branch, "--json")))
        assert [each["role"] for each in shown["messages"]].count("user") == 1
        assert (await at.said("rewind", branch, "--to", "1", "--with-conversation", "--yes"))[-1] == (
            "Nothing was said before that turn. Start a new conversation: hone"
        )
        assert at.files == ONE
        gone = await at.hone("sessions", "delete", session, "--yes")
        assert f"Delete them, too: hone rewind {session} --forget" in gone.out
        assert (await at.said("rewind", session, "--forget", "--yes"))[0].startswith("Deleted ")
        assert await at.said("rewind", session, "--forget", "--yes") == ["Nothing is kept for this session."]


async def test_at_a_terminal_it_asks_which_turn_and_whether(home: Path, tmp_path: Path) -> None:
    async with desk(home, tmp_path) as at:
        await at.work()
        async with terminal("rewind", env=at.env, folder=tmp_path) as screen:
            await screen.sees("Restore the files as they were before which turn?")
            screen.type("1\r")
            await screen.sees("restore       a.txt", "Change 2 files?")
            screen.type("y\r")
            assert await screen.ended() == 0
        assert at.files == ONE


async def test_in_the_chat_a_rewind_is_shown_and_done_when_it_is_typed_again(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    trust(home, tmp_path)
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK)) as hone_:
        state = ChatState(hone_, await hone_.session())
        assert await obey(state, "rewind", "") == "There is nothing to go back to yet."
        for words in ("write them", "now the command"):
            await state.session.send(words)
        menu = await obey(state, "rewind", "")
        assert isinstance(menu, SlashMenu)
        assert [row[18:] for row in menu.rows] == [
            *("now the command  (3 files changed)", "write them  (2 files changed)")
        ]
        assert str(await obey(state, "rewind", "two")).startswith("Which turn? Try /rewind 3, or")
        shown = str(await obey(state, "rewind", "2"))
        assert shown.endswith("Type /rewind 2 again to do it.")
        assert (tmp_path / "out.log").exists()
        (tmp_path / "out.log").write_text("mine\n")  # what was shown no longer holds: it is shown again
        assert str(await obey(state, "rewind", "2")).endswith("Type /rewind 2 again to do it.")
        done = str(await obey(state, "rewind", "2"))
        assert "left alone    out.log: changed by you since" in done
        assert (tmp_path / "a.txt").read_text() == "two\n"
        old = state.session.id
        await obey(state, "rewind", "1 --conversation")
        told = str(await obey(state, "rewind", "1 --conversation")).splitlines()
        assert told[-2:] == [
            "You are back before turn 1. You had said: write them",
            f"The old conversation is kept: /resume {old}",
        ]
        assert (state.session.id == old, len(state.session.transcript)) == (False, 0)
        assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_the_page_can_list_rewind_and_redo(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    trust(home, tmp_path)
    async with running(home, tmp_path, WORK) as visit:
        session = await visit.state.hone.session()
        for words in ("write them", "now the command"):
            await session.send(words)
        place = f"/api/sessions/{session.id}"
        turns = (await visit.get(f"{place}/checkpoints"))["turns"]
        assert [(turn["turn"], turn["words"]) for turn in turns] == [
            (1, "write them"),
            (2, "now the command"),
        ]
        planned = await visit.post(f"{place}/rewind", turn=1, dry_run=True)
        assert (planned["done"], (tmp_path / "out.log").exists()) == (False, True)
        done = await visit.post(f"{place}/rewind", turn=2, conversation=True)
        assert (done["done"], done["left"], (tmp_path / "a.txt").read_text()) == (True, [], "two\n")
        assert (await visit.get(f"/api/sessions/{done['branch']}"))["parent"] == session.id
        await visit.post(f"{place}/redo")
        assert (tmp_path / "a.txt").read_text() == "two\nthree\n"
        refused = await visit.client.post(f"{place}/redo", json={})
        assert (refused.status_code, "no rewind to redo" in refused.text) == (422, True)


async def test_switched_off_nothing_is_kept(home: Path, tmp_path: Path) -> None:
    settings = Settings(checkpoints=CheckpointSettings(enabled=False))
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK), settings=settings) as hone_:
        await (await hone_.session()).send("write them")
    assert (tmp_path / "new" / "b.txt").exists()
    assert not (home / "checkpoints").exists()


# Commands in the real sandbox

SOURCE = f"""
import shutil
from collections import namedtuple
from contextlib import suppress
from pathlib import Path
Deed = namedtuple("Deed", "kind path other content")
{inspect.getsource(do)}
"""


def trust(home: Path, folder: Path) -> None:
    Folders(OwnersList(FileDocuments(home), "trusted.json")).trust(folder)


def drawn(random: Random) -> Deed:
    kinds = ["write", "write", "append", "delete", "rename", "link", "mode", "folder"]
    content = random.choice([b"", b"1\n", b"22\n"])
    return Deed(random.choice(kinds), random.choice(NAMES), random.choice(NAMES), content)


def coded(deeds: Sequence[Deed]) -> Message:
    """A call that does the deeds in the sandbox."""
    steps = [
        f"do(Path('.'), Deed({each.kind!r}, {each.path!r}, {each.other!r}, {each.content!r}))"
        for each in deeds
    ]
    return assistant(call("execute_code", code="\n".join([SOURCE, *steps])))


async def test_what_commands_do_in_the_sandbox_is_taken_back(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    tried = wrong = 0
    at: list[int] = []
    for draw in tier.draws(short=2, full=40):
        folder = tmp_path / f"w{draw.index}"
        folder.mkdir()
        oracle, random = Oracle(ignores=draw.index % 2 == 1), draw.random
        if oracle.ignores:
            (folder / ".gitignore").write_text("*.log\nbuild/\n")
            (folder / "d").mkdir()
            (folder / "d" / "a").write_text("committed\n")
            for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
                subprocess.run([*GIT, *arguments], cwd=folder, check=True)
        plays = [[drawn(random) for _ in range(4)] for _ in range(4)]
        script = lines(*(reply for deeds in plays for reply in (coded(deeds), "Done.")))
        trust(home, folder)
        async with Hone(home=home, folder=folder, model=Scripted(script)) as hone_:
            session = await hone_.session()
            history = hone_.part(CheckpointsPart).service.history
            for turn in range(1, len(plays) + 1):
                before = survey(folder)
                await session.send("go")
                oracle.note(turn, before, survey(folder), command=True)
                do(folder, drawn(random))  # the user, in between
            for turn in (3, 1):
                expected = oracle.rewind(turn, survey(folder))
                await history.apply(await history.plan(session.id, turn))
                tried += 1
                if survey(folder) != expected:
                    wrong += 1
                    at.append(draw.index)
    figures.tally(tried, lost=wrong, note="rewinds of what commands did in the sandbox", at=at)
    assert not wrong
