"""Compares the requests of whole stories with golden ones, byte for byte and in both wire formats.

The stories run through the command. They pin the prompt, the tools, and the words of every outcome.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import databases
from tests.golden import assert_golden, environment, hone, still
from tests.provider import Call, Provider, Say

GOLDEN = Path(__file__).parent / "story" / "data"
FORMATS = ("openai", "anthropic")
OTHER = {"openai": "anthropic", "anthropic": "openai"}


@dataclass
class Story:
    """Runs commands in an empty home and keeps every request."""

    wire: str
    home: Path
    folder: Path
    database: str = ""
    requests: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)

    def settings(self, text: str) -> None:
        (self.home / "hone.toml").write_text(text)

    def file(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def environment(self, provider: Provider) -> dict[str, str]:
        return environment(self.home, provider, HONE_MODEL=f"{self.wire}/m", HONE_DATABASE=self.database)

    def hone(self, *arguments: str, say: Sequence[Say] = (), codes: Sequence[int] = (0,)) -> str:
        with Provider(*say) as provider:
            ended = hone(*arguments, env=self.environment(provider), folder=self.folder)
        assert ended.code in codes, ended
        assert (provider.left, len(provider.bodies)) == ([], len(say))
        self.requests += [body.decode() for body in provider.bodies]
        return ended.out

    def run(self, task: str, *say: Say, options: Sequence[str] = (), codes: Sequence[int] = (0,)) -> str:
        out = self.hone("run", "--json", "-q", *options, task, say=say, codes=codes)
        session = str(json.loads(out)["session"])
        if session not in self.sessions:
            self.sessions.append(session)
        return session

    @property
    def told(self) -> str:
        """Return the requests, one a line: what it shares with the request before, and the rest."""
        lines, before = [], ""
        for request in self.requests:
            text = still(request, {"home": self.home, "folder": self.folder})
            for number, session in enumerate(self.sessions, 1):
                text = text.replace(session, f"{{session {number}}}")
            shared = in_common(before, text)
            lines.append(json.dumps({"shared": shared, "rest": text[shared:]}, ensure_ascii=False))
            before = text
        return "".join(f"{line}\n" for line in lines)


def in_common(one: str, other: str) -> int:
    """Return how many characters both start with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def call(id: str, name: str, /, **arguments: Any) -> Say:
    return Say("", [Call.of(id, name, **arguments)])


def document(name: str, description: str, body: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


def first_request(story: Story) -> None:
    story.run("hi", Say("Hello."))


def faulty_calls(story: Story) -> None:
    gone = Call.of("f1", "read_file", path="gone.txt")
    story.file("notes.txt", "one\ntwo\ntwo\n")
    story.run(
        "Try your tools.",
        Say("", [Call("a1", "read_file", '{"path": "notes.txt'), Call("a2", "read_file", "[1]")]),
        Say(
            "", [Call.of("b1", "no_such_tool", x=1), Call.of("b2", "", x=1), Call.of("b3", "Read File", x=1)]
        ),
        Say("", [Call.of("c1", "read_file", file="notes.txt"), Call.of("c1", "read_file", path="notes.txt")]),
        Say("I look.", [gone]),
        call("f2", "read_file", path="gone.txt"),
        call("f3", "read_file", path="gone.txt"),
        *(call(f"g{number}", "read_file", path="gone.txt") for number in range(3)),
        Say("I give up."),
    )


def repeated_calls(story: Story) -> None:
    story.file("notes.txt", "one\ntwo\n")
    story.run(
        "Read it again and again.",
        *(call(f"a{number}", "read_file", path="notes.txt") for number in range(7)),
        Say("It stays the same."),
    )


def file_calls(story: Story) -> None:
    story.file("notes.txt", "one\ntwo\ntwo\n")
    story.run(
        "Work on the notes.",
        Say(
            "",
            [
                Call.of("a1", "read_file", path="notes.txt"),
                Call.of("a2", "read_file", path="notes.txt", offset=9),
            ],
        ),
        call("b1", "patch", path="notes.txt", find="two", replace="three"),
        call("b2", "patch", path="notes.txt", find="four", replace="three"),
        call("b3", "patch", path="notes.txt", find="one", replace="zero"),
        call("c1", "write_file", path="more/new.txt", content="new\n"),
        call("c2", "write_file", path=str(story.home / "MEMORY.md"), content="- Mine.\n"),
        Say("", [Call.of("d1", "search_files", pattern="two"), Call.of("d2", "search_files", pattern="(")]),
        Say(
            "",
            [Call.of("d3", "search_files", glob="*.txt"), Call.of("d4", "search_files", pattern="nowhere")],
        ),
        call("e1", "read_file", path="."),
        call("e2", "web_fetch", url="http://127.0.0.1:9/"),
        Say("Done."),
    )


def task_list(story: Story) -> None:
    items = [{"text": "read", "state": "done"}, {"text": "write", "state": "doing"}, {"text": "rest"}]
    story.run(
        "Plan it.",
        call("a1", "todo"),
        call("a2", "todo", items=items),
        call("a3", "todo", items=[{"text": "x", "state": "never"}]),
        call("a4", "todo"),
        Say("Planned."),
    )


def journal_calls(story: Story) -> None:
    story.hone("trust", ".")
    said, secret = "I work in Lisbon, and our tests run with make test.", "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7

    def memory(id: str, **arguments: Any) -> Say:
        return call(id, "memory", **({"evidence": ["I work in Lisbon"]} | arguments))

    story.run(
        said,
        memory("a1", action="add", target="user", text="Works in Lisbon."),
        memory("a2", action="add", target="user", text="Works in Lisbon."),
        memory("b1", action="add", text="Nobody said this.", evidence=["words that nobody said"]),
        memory("b2", action="add", text="It rests on nothing.", evidence=[]),
        memory("b3", action="add", text=f"The key is {secret}."),
        memory("b4", action="add", text="x" * 3_000),
        memory("b5", action="add", text=""),
        memory("b6", action="fly"),
        memory("c1", action="replace", target="user", match="Lisbon", text="Works in Lisbon, Portugal."),
        memory("c2", action="replace", target="user", match="Porto", text="Works in Porto."),
        memory("c3", action="remove", match="Porto"),
        memory(
            "d1",
            action="batch",
            evidence=["our tests run with make test", "#1"],
            batch=[
                {"action": "add", "target": "project", "text": "Tests run with make test."},
                {"action": "add", "target": "memory", "text": "There is a Makefile."},
            ],
        ),
        memory("d2", action="batch", batch=[]),
        memory("e1", action="list"),
        Say("Kept."),
    )
    story.run("Where do I work?", Say("In Lisbon."))


def skill_calls(story: Story) -> None:
    story.hone("trust", ".")

    def manage(id: str, action: str, name: str, **arguments: Any) -> Say:
        proof = {"evidence": ["read the header first"]}
        return call(id, "skill_manage", action=action, name=name, **(proof | arguments))

    sums = document(
        "adding-up", "Add up the amounts of a table. Use for sums.", "# Steps\nRead the header first."
    )
    near = document("summing-up", "Add up the amounts of a table. Use for sums.", "# Steps\nAdd.")
    story.run(
        "When you add up amounts, read the header first.",
        manage("a1", "create", "adding-up", text=sums),
        manage("a2", "create", "adding-up", text=sums),
        manage("a3", "create", "summing-up", text=near),
        manage("a4", "create_anyway", "summing-up", text=near),
        manage("b1", "create", "Fix Bug 17", text=sums),
        manage("b2", "create", "no-matter", text="# No front matter"),
        manage("b3", "create", "unfounded", text=document("unfounded", "x", "y"), evidence=[]),
        manage("c1", "patch", "adding-up", find="Read the header first.", text="Read the header, then add."),
        manage("c2", "patch", "adding-up", find="nowhere", text="x"),
        manage("c3", "patch", "not-there", find="x", text="y"),
        manage("d1", "write_file", "adding-up", file="references/more.md", text="More.\n"),
        manage("d2", "write_file", "adding-up", file="../escape.md", text="x"),
        manage("d3", "write_file", "adding-up", file="scripts/sum.sh", text="#!/bin/sh\n"),
        manage("d4", "remove_file", "adding-up", file="references/none.md"),
        manage("e1", "archive", "summing-up"),
        manage("e2", "archive", "code-review"),
        Say(
            "", [Call.of("g1", "skills_list", query="add up"), Call.of("g2", "skill_view", name="adding-up")]
        ),
        Say("", [Call.of("g3", "skill_view", name="summing-up"), Call.of("g4", "skill_view", name="none")]),
        call("g5", "skill_view", name="adding-up", file="references/more.md"),
        Say("Kept."),
    )
    story.run("Add up the amounts.", Say("119."), options=("--skill", "adding-up"))


def foreign_text(story: Story) -> None:
    """Nobody trusts the folder, so the entry waits for the owner."""
    story.file("letter.txt", "The build server is called hamster.\n")
    story.run(
        "Keep what the letter says.",
        call("a1", "read_file", path="letter.txt"),
        call("a2", "memory", action="add", text="The build server is called hamster.", evidence=["#3"]),
        Say("It waits for you."),
    )


def delegated_work(story: Story) -> None:
    story.file("notes.txt", "one\n")
    story.run(
        "Have somebody count the lines.",
        call("a1", "delegate", tasks=[]),
        call("a2", "delegate", tasks=["Count the lines of notes.txt."]),
        call("b1", "read_file", path="notes.txt"),
        call("b2", "delegate", tasks=["Count them for me."]),
        Say("There is one line."),
        Say("It has one line."),
    )


def review_of_a_turn(story: Story) -> None:
    story.settings("[learning]\nturns = 1\n")
    story.hone("trust", ".")
    story.run("Always answer in one sentence.", Say("I will."))
    keep = {
        "target": "user",
        "text": "Always answer in one sentence.",
        "evidence": ["answer in one sentence"],
    }
    story.hone(
        "worker",
        "--once",
        say=[
            Say(
                "",
                [
                    Call.of("a1", "memory", action="add", **keep),
                    Call.of("a2", "write_file", path="x", content="x"),
                ],
            ),
            Say("", [Call.of("a3", "memory", action="add", text="Unsaid.", evidence=["never said"])]),
            Say("Kept how to answer."),
        ],
    )
    story.run("What time is it?", Say("I cannot tell."))


def review_by_another_model(story: Story) -> None:
    """It has no cache of the conversation and reads a digest of it."""
    story.settings(f'[learning]\nturns = 2\nmodel = "{OTHER[story.wire]}/n"\n')
    story.file("notes.txt", "one\n")
    session = story.run("Read the notes.", call("a1", "read_file", path="notes.txt"), Say("One line."))
    story.run("Always say how many lines.", Say("One line."), options=("-r", session))
    story.hone("worker", "--once", say=[Say("Nothing to keep.")])


def curator_round(story: Story) -> None:
    story.hone("trust", ".")
    trip = document("trip-planning", "Plan a trip.", "# Steps\nPack first.")
    train = document("night-trains", "Travel by night train.", "# Trains\nBook early.")
    skills = [("trip-planning", trip, "pack first"), ("night-trains", train, "book early")]
    calls = [
        Call.of(f"a{number}", "skill_manage", action="create", name=name, text=text, evidence=[words])
        for number, (name, text, words) in enumerate(skills)
    ]
    story.run("To plan a trip, pack first. For night trains, book early.", Say("", calls), Say("Kept."))
    plan = {
        "into": "trip-planning",
        "sources": ["night-trains"],
        "description": "Plan a trip, also by night train.",
        "body": "# Steps\nPack first.\n\n# Trains\nBook early.",
        "reason": "one task",
    }
    look = call("b1", "skill_view", name="night-trains")
    write = call("b2", "skill_manage", action="archive", name="night-trains", evidence=["#1"])
    story.hone("curator", "run", say=[look, write, Say(json.dumps({"merge": [plan], "archive": []}))])


def compaction(story: Story) -> None:
    story.file("notes.txt", "one\ntwo\nthree\nfour\n")
    reads = [call(f"a{number}", "read_file", path="notes.txt", limit=number) for number in range(1, 5)]
    items = [{"text": "count on", "state": "doing"}]
    session = story.run(
        "Count the lines.",
        *reads,
        Say("", [Call.of("b1", "todo", items=items)], tokens=190_000),
        Say("Notes: the file has four lines."),
        Say("Four lines."),
    )
    story.run("And the words?", Say("Four words."), options=("-r", session))


def template_start(story: Story) -> None:
    story.hone("trust", ".")
    story.file("notes.txt", "one\n")
    first = story.run("Count the lines.", call("a1", "read_file", path="notes.txt"), Say("One line."))
    story.hone("templates", "create", first, "--name", "counting")
    second = story.run("Count again.", Say("One line."), options=("--template", "counting"))
    story.run("Once more.", Say("One line."), options=("-r", second))


def memory_reminder(story: Story) -> None:
    story.settings('[memory]\nbackend = "sqlite"\nowner = "somebody"\n')
    story.hone("trust", ".")

    def backend(id: str, action: str, **arguments: Any) -> Say:
        return call(id, "memory_backend", action=action, **arguments)

    story.run(
        "The quarter ends in the spring.",
        backend("a1", "store", key="calendar/quarter", value="The quarter ends in the spring."),
        backend("a2", "store", key="", value="x"),
        backend("a3", "store", key="mirror/x", value="x"),
        backend("b1", "list"),
        backend("b2", "retrieve", key="calendar/none"),
        backend("b3", "delete", key="calendar/none"),
        Say("Stored."),
    )
    second = story.run("When does the quarter end?", Say("In the spring."))
    story.run("Which quarter ends then?", Say("The first."), options=("-r", second))


def note_of_changes(story: Story) -> None:
    story.hone("memory", "add", "The printer is on floor 2.")
    session = story.run("hi", Say("Hello."))
    story.hone("memory", "add", "The team meets on Tuesdays.")
    story.hone("memory", "rm", "printer")
    story.run("What is new?", Say("A meeting."), options=("-r", session))
    story.hone("undo", "2")
    story.run("And now?", Say("No meeting."), options=("-r", session))
    branch = story.hone("sessions", "branch", session, "--at", "2").split()[-1]
    story.sessions.append(branch)
    story.run("From here on.", Say("Yes."), options=("-r", branch))


def spent_budget(story: Story) -> None:
    story.settings("calls = 2\n")
    items = [{"text": "one"}]
    session = story.run(
        "Do a lot.", call("a1", "todo", items=items), call("a2", "todo"), Say("One step is open."), codes=(3,)
    )
    story.run("Go on.", Say("Done."), options=("-r", session))


def failed_turn(story: Story) -> None:
    """The provider refuses the second request; the next turn starts from a valid history."""
    story.settings("tries = 1\n")
    with Provider(call("a1", "todo")) as provider:
        ended = hone("run", "--json", "-q", "Plan it.", env=story.environment(provider), folder=story.folder)
    assert ended.code == 1
    session = json.loads(ended.out)["session"]
    story.sessions.append(session)
    story.run("Again.", Say("Planned."), options=("-r", session))


def another_model(story: Story) -> None:
    session = story.run("Plan it.", call("a1", "todo", items=[{"text": "one"}]), Say("Planned."))
    story.run("And now?", Say("Still planned."), options=("-r", session, "-m", f"{OTHER[story.wire]}/n"))


def trusted_instructions(story: Story) -> None:
    story.file("AGENTS.md", "# Rules\n\nRun make test before you answer.\n")
    story.run("hi", Say("Hello."))
    story.hone("trust", ".", "--yes")
    story.run("hi", Say("Hello."))


def sampling(story: Story) -> None:
    story.settings("[sampling]\nmax_tokens = 500\ntemperature = 0.2\n")
    story.run("hi", Say("Hello."))


STORIES: tuple[Callable[[Story], None], ...] = (
    first_request,
    faulty_calls,
    repeated_calls,
    file_calls,
    task_list,
    journal_calls,
    skill_calls,
    foreign_text,
    delegated_work,
    review_of_a_turn,
    review_by_another_model,
    curator_round,
    compaction,
    template_start,
    memory_reminder,
    note_of_changes,
    spent_budget,
    failed_turn,
    another_model,
    trusted_instructions,
    sampling,
)


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("play", STORIES, ids=lambda play: play.__name__)
def test_a_story_sends_the_same_bytes(play: Callable[[Story], None], wire: str, tmp_path: Path) -> None:
    compare(play, Story(wire, tmp_path / "home", tmp_path / "folder"))


@pytest.mark.long
@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("play", STORIES, ids=lambda play: play.__name__)
def test_a_story_sends_the_same_bytes_with_postgresql(
    play: Callable[[Story], None], wire: str, tmp_path: Path
) -> None:
    with databases.new_database() as url:
        compare(play, Story(wire, tmp_path / "home", tmp_path / "folder", url))
    assert not (tmp_path / "home" / "hone.db").exists()


def compare(play: Callable[[Story], None], story: Story) -> None:
    story.home.mkdir(mode=0o700)
    story.folder.mkdir()
    play(story)
    assert_golden(GOLDEN / story.wire / f"{play.__name__}.jsonl", story.told)
