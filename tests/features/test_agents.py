"""A9: named helpers have the owner's instructions, their own model, and never more than their parent's
rights."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone, Message, Permit, Scripted, Trust, assistant, call
from hone.cli.main import perform
from hone.core.agent import Helper
from hone.core.errors import Refused
from hone.core.permit import DELEGATE, USER, Effect
from hone.core.turn import Origin
from hone.features.agents.parsing import EXAMPLE, parse_agent
from hone.features.agents.part import AgentsPart
from hone.models.fake_provider import FakeProvider
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from hone.tools.delegate import delegate_tool

READER = """---
name: reader
description: Reads files. Use it when: something must be read. Example: "read a.txt"
tools: Read, Grep
model: sonnet
color: blue
---

# Permission mode: full
Read what you are given.
"""


@pytest.fixture
def work(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("words\n", "utf-8")
    return folder


def put(folder: Path, text: str = READER, name: str = "reader.md") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return folder / name


def ask_reader(messages: Sequence[Message]) -> Message:
    """The parent gives one task to the reader; the reader reads, then tries to write."""
    results = [message.result.text for message in messages if message.result]
    if messages[0].text == "go":
        return assistant("Back.") if results else assistant(call("delegate", tasks=["look"], agent="reader"))
    tries = [call("read_file", path="a.txt"), call("write_file", path="b.txt", content="x")]
    return assistant(tries[len(results)]) if len(results) < len(tries) else assistant(" | ".join(results))


async def test_a_helper_has_its_instructions_and_only_its_tools_on_the_prefix_of_its_parent(
    work: Path, home: Path
) -> None:
    put(home / "agents")
    model = Scripted(ask_reader)
    async with Hone(model=model, folder=work, learning="off", mode="full") as hone:
        session = await hone.session()
        turn = await session.send("go")
        (child,) = await hone.sessions.list(None, Origin.DELEGATE)
        stored = await hone.sessions.load(child.header.id)
    told = next(node.message.result.text for node in turn.nodes if node.message.result)
    assert "words" in told
    assert "write_file is not permitted here. Allowed here: read_file, search_files." in told
    assert not (work / "b.txt").exists()
    assert stored.prefix == session.agent.prefix, "the provider has it in its cache"
    note = stored.transcript.nodes[0].message.note
    assert note is not None
    assert (
        "You work as the helper reader. Its instructions:\n  # Permission mode: full\n  Read what"
        in note.text
    )
    assert stored.transcript.nodes[0].trust is Trust.AGENT


async def test_without_agents_the_tool_is_the_same_as_ever_and_with_them_it_lists_them_in_order(
    work: Path, home: Path
) -> None:
    async def shown() -> str:
        async with Hone(model=Scripted(ask_reader), folder=work, learning="off") as hone:
            tools = (await hone.session()).agent.prefix.tools
        return next(tool for tool in tools if '"name":"delegate"' in tool)

    assert await shown() == delegate_tool().spec.schema
    put(home / "agents", READER.replace("name: reader", "name: zebra"), "a.md")
    put(home / "agents")
    listed = json.loads(await shown())
    assert re.findall(r"^- (\w+): ", listed["description"], re.MULTILINE) == ["reader", "zebra"]
    assert await shown() == await shown()
    assert listed["parameters"]["required"] == ["tasks"]


async def test_a_helper_that_nobody_described_is_refused_by_name(work: Path, home: Path) -> None:
    put(home / "agents", READER.replace("name: reader", "name: other"))
    async with Hone(model=Scripted(ask_reader), folder=work, learning="off") as hone:
        turn = await hone.run("go")
        assert await hone.sessions.list(None, Origin.DELEGATE) == ()
    told = next(node.message.result.text for node in turn.nodes if node.message.result)
    assert told == "There is no helper named 'reader'. These exist: other."


async def test_the_agents_of_a_project_count_by_their_bytes_and_win_over_those_of_the_home(
    work: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / "agents")
    file = put(work / ".claude" / "agents", READER.replace("Read what", "Obey the project and read what"))

    async def found() -> tuple[list[str], list[str]]:
        async with Hone(folder=work) as hone:
            agents, problems = hone.part(AgentsPart).find(work)
            return [each.source for each in agents], [*problems]

    assert await found() == (["agents/reader.md"], []), "nothing is said of an untrusted folder"
    (work / ".claude" / "agents" / "leak.md").symlink_to(home / "agents" / "reader.md")
    assert perform(["trust", str(work), "--yes"]) == 0
    shown = capsys.readouterr().out
    assert "  │ Obey the project and read what you are given." in shown
    assert "the model may use its 1 agent" in shown
    assert ".claude/agents/leak.md is a link out of this folder" in shown
    (work / ".claude" / "agents" / "leak.md").unlink()
    assert await found() == ([".claude/agents/reader.md"], [])
    file.write_text(READER, "utf-8")
    (why,) = (await found())[1]
    assert (await found())[0] == ["agents/reader.md"]
    assert why.startswith(".claude/agents/reader.md has changed since you approved it and is not used.")
    monkeypatch.chdir(work)
    assert perform(["agents", "check"]) == 1
    said = capsys.readouterr().out
    assert "✗ .claude/agents/reader.md has changed" in said
    assert (
        "✗ agents/reader.md: model sonnet is no provider/name; the model of the conversation is used" in said
    )
    perform(["agents"])
    assert "agents/reader.md · the same model · read_file, search_files" in capsys.readouterr().out
    assert perform(["agents", "show", "nobody"]) == 1
    assert perform(["agents", "show", "reader"]) == 0
    assert "Read what you are given." in capsys.readouterr().out


async def test_a_helper_speaks_through_its_own_model_and_one_that_is_unknown_fails_alone(
    work: Path, home: Path
) -> None:
    asked: list[str] = []

    async with FakeProvider(ask_reader) as stage:
        mine = {"mine": ProviderSettings(f"{stage.url}/v1", "openai", local=False)}
        settings = Settings(providers=mine, model="mine/large")
        for model in ("mine/small", "nowhere/small"):
            put(home / "agents", READER.replace("model: sonnet", f"model: {model}"))
            async with Hone(folder=work, settings=settings, learning="off") as hone:
                turn = await hone.run("go")
                spent = await hone.sessions.spending()
            asked.append(next(node.message.result.text for node in turn.nodes if node.message.result))
            assert turn.text == "Back."
        assert {each.model for each in spent if each.origin is Origin.DELEGATE} == {"mine/small"}
    assert "words" in asked[0]
    assert "nowhere" in asked[1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("You are a reviewer.", "does not begin with front matter"),
        ("---\nname: x\n", "does not begin with front matter"),
        ("---\nname: ../../x\ndescription: d\n---\nbody", "has no name"),
        ("---\nname: x\n---\nbody", "has no description"),
        ("---\nname: x\ndescription: d\n---\n \n", "has no instructions"),
    ],
)
def test_a_file_that_describes_no_helper_says_what_is_missing(text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refused:
        parse_agent("agents/x.md", text)
    assert EXAMPLE in str(refused.value)


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ("", None),
        ("tools: *\n", None),
        ("tools: read_file, Bash, Bash(git *, npm)\n", {"read_file", "terminal", "process"}),
        ("tools: Bash(git *)\n", set()),
        ("tools: [Read, web_fetch]\n", {"read_file", "web_fetch"}),
        ("tools:\n  - Read\n  - mcp__x__y\n", {"read_file", "mcp__x__y"}),
        ("tools:\n", set()),
    ],
)
def test_tools_are_named_as_here_or_as_elsewhere_and_an_empty_list_is_none(
    tools: str, names: set[str] | None
) -> None:
    helper = parse_agent("x.md", f"---\nname: x\ndescription: d\n{tools}---\nbody").helper
    assert helper.tools == (None if names is None else frozenset(names))


NAMES = st.none() | st.frozensets(st.sampled_from(["read_file", "terminal", "delegate", "memory"]))
PERMITS = st.builds(Permit, st.frozensets(st.sampled_from(Effect)), st.booleans(), st.booleans(), NAMES)


@given(
    PERMITS, NAMES, st.frozensets(st.sampled_from(Effect)), st.booleans(), st.sampled_from(["terminal", "x"])
)
def test_no_helper_may_do_what_its_parent_may_not(
    parent: Permit, names: frozenset[str] | None, effects: frozenset[Effect], readonly: bool, tool: str
) -> None:
    child = parent & DELEGATE & Helper("x", "d", "i", names).permit
    if child.allows(effects, readonly=readonly, tool=tool):
        assert parent.allows(effects, readonly=readonly, tool=tool)
        assert names is None or tool in names
        assert Effect.SPAWN not in effects
    assert child.attended is False
    assert parent & child == child & parent == child
    assert parent & USER & USER == parent & USER
