"""`hone recall`: nothing is sent unasked, bad input is named by its line, the home stays as it was."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from hone.core.messages import Message, Role, assistant
from hone.models.fake_provider import FakeProvider
from tests.cli.driving import ENTER, Ended, environment, hone, terminal
from tests.doubles.embeddings import EmbeddingServer

TOLD = "The plumber who repaired our boiler in the cellar is called Osei, and he charged 240 euros for it."
QUESTION = "What is the name of the man who fixed the heating?"
COPY = "Which plumber repaired our boiler in the cellar?"


def play(messages: Sequence[Message]) -> Message:
    """Answer the owner, and write a question about what they said and a bad one about what was answered."""
    last = next(message for message in reversed(messages) if message.role is Role.USER).text
    if not last.startswith("The message:"):
        return assistant(
            "Noted: the plumber repaired the boiler in your cellar for 240 euros, and is called Osei."
        )
    return assistant(COPY if "Noted" in last else QUESTION)


class Desk:
    def __init__(self, stage: FakeProvider, home: Path, folder: Path) -> None:
        self.stage, self.home, self.folder = stage, home, folder
        self.env = environment(home, stage)
        self.file = folder / "mine.jsonl"

    async def recall(self, *arguments: str) -> Ended:
        return await hone("recall", *arguments, env=self.env, folder=self.folder)

    def rows(self) -> list[tuple[object, ...]]:
        database = apsw.Connection(str(self.home / "hone.db"), flags=apsw.SQLITE_OPEN_READONLY)
        tables = ("sessions", "nodes", "contents", "changes")
        return [row for table in tables for row in database.execute(f"SELECT * FROM {table}")]


@asynccontextmanager
async def desk(home: Path, folder: Path) -> AsyncIterator[Desk]:
    async with FakeProvider(play) as stage:
        at = Desk(stage, home, folder)
        assert (await hone("run", "-q", TOLD, env=at.env, folder=folder)).code == 0
        yield at


async def test_nothing_is_sent_where_nobody_can_be_asked_or_the_answer_is_no(
    home: Path, tmp_path: Path
) -> None:
    async with desk(home, tmp_path) as at:
        before = len(at.stage.requests)
        alone = await at.recall("questions", "--write", "mine.jsonl")
        assert (alone.code, "Add --yes" in alone.err) == (2, True)
        assert "To openai/scripted: 2 messages from 1 session," in alone.out
        async with terminal(
            "recall", "questions", "--write", "mine.jsonl", env=at.env, folder=tmp_path
        ) as user:
            await user.sees("Send them? [y/N]:")
            user.type(b"n" + ENTER)
            await user.sees("Nothing was sent.")
            assert await user.ended() == 1
        assert len(at.stage.requests) == before
        assert not at.file.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Say what to ask: --bundled, or --questions FILE."),
        (("--merged", "--questions", "mine.jsonl"), "--merged goes with --bundled."),
        (("--questions", "other.jsonl"), "other.jsonl cannot be read"),
        (("--questions", "mine.jsonl"), "mine.jsonl, line 2: There is no session"),
    ],
)
async def test_what_cannot_be_asked_is_told(
    home: Path, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    (tmp_path / "mine.jsonl").write_text('\n{"question": "Who?", "session": "none", "message": 1}\n')
    failed = await hone("recall", "evaluate", *arguments, env=environment(home), folder=tmp_path)
    assert failed.code in (1, 2)
    assert told in failed.err
    assert "Traceback" not in failed.err


async def test_a_model_writes_questions_and_search_is_measured_with_them(home: Path, tmp_path: Path) -> None:
    async with desk(home, tmp_path) as at:
        rows = at.rows()
        written = await at.recall("questions", "--write", "mine.jsonl", "--yes")
        assert written.code == 0, written.err
        assert "Wrote 1 question to mine.jsonl. 1 left out, since they repeat their messages." in written.out
        asked = [json.loads(line) for line in at.file.read_text().splitlines()]
        assert [(each["question"], each["message"], each["kind"]) for each in asked] == [
            (QUESTION, 1, "user")
        ]
        again = await at.recall("questions", "--write", "mine.jsonl", "--yes")
        assert (again.code, "already exists" in again.err) == (1, True)
        asked.append(asked[0] | {"question": "What was the boiler's price?", "message": 2, "kind": "price"})
        at.file.write_text("".join(json.dumps(each) + "\n" for each in asked))
        found = await at.recall("evaluate", "--questions", "mine.jsonl", "--json")
        (evaluation,) = json.loads(found.out)
        assert list(evaluation["searches"]) == ["words"]
        assert evaluation["searches"]["words"]["price"]["recall_5"] == 1
        assert evaluation["searches"]["words"]["all"]["questions"] == 2
        shown = await at.recall("evaluate", "--questions", "mine.jsonl")
        assert shown.out.splitlines()[1].split() == ["kind", "questions", "R@1", "R@5", "R@10", "MRR"]
        assert at.rows() == rows


async def test_with_an_embedder_every_figure_stands_there_twice(home: Path, tmp_path: Path) -> None:
    async with desk(home, tmp_path) as at:
        (session,) = json.loads((await hone("sessions", "list", "--json", env=at.env)).out)
        asked = {"question": QUESTION, "session": session["session"], "message": 1}
        at.file.write_text(json.dumps(asked))
        with EmbeddingServer() as server:
            settings = f'[recall]\nembedder = "own/tiny"\n[providers.own]\nurl = "{server.url}"\n'
            (home / "hone.toml").write_text(settings)
            found = await at.recall("evaluate", "--questions", "mine.jsonl", "--json")
        assert found.code == 0, found.err
        (evaluation,) = json.loads(found.out)
        assert list(evaluation["searches"]) == ["words", "own/tiny"]
        assert QUESTION in str(server.requests)
        failed = await at.recall("evaluate", "--questions", "mine.jsonl")
        assert (failed.code, failed.out) == (1, "")
