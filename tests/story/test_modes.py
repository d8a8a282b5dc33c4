"""L1: permission modes in the library: who only plans changes nothing; the model is told of each switch."""

from pathlib import Path

import pytest

from hone import Answer, Effect, Hone, Mode, Question, Scripted, assistant, call, lines, tool
from hone.core.messages import ToolResult
from hone.core.turn import Turn
from hone.models.scripted import rounds, rules

WRITES = [
    call("write_file", path="a.txt", content="x"),
    call("patch", path="there.txt", find="old", replace="new"),
    call("terminal", command="echo x > a.txt"),
    call("terminal", command="echo x > a.txt", background=True),
    call("terminal", command="rm there.txt"),
    call("execute_code", code="open('a.txt', 'w').write('x')"),
    call("launch", rocket="V2"),
    call("delegate", tasks=["be a child: write a.txt"]),
]


@tool(effects={Effect.WRITE})
def launch(rocket: str) -> str:
    """Launch a rocket."""
    raise AssertionError(f"{rocket} was launched")


async def yes(_: Question) -> Answer:
    return Answer.ALWAYS


def results(turn: Turn) -> list[ToolResult]:
    return [node.message.result for node in turn.nodes if node.message.result]


async def test_who_only_plans_changes_nothing_and_still_looks(tmp_path: Path) -> None:
    """Even an owner who agrees to everything has to leave the mode first."""
    (tmp_path / "there.txt").write_text("old\n")
    looks = [
        call("read_file", path="there.txt"),
        call("search_files", pattern="old"),
        call("terminal", command="cat there.txt; echo scratch > $TMPDIR/x && cat $TMPDIR/x"),
        call("execute_code", code="print(open('there.txt').read())"),
    ]
    child = rounds(assistant(call("write_file", path="a.txt", content="x")), "Not written.")
    parent = rounds(assistant(*looks), assistant(*WRITES), "The plan.")
    model = Scripted(rules(("be a child", child), otherwise=parent))
    async with Hone(model=model, folder=tmp_path, mode="plan", ask=yes, tools=[launch]) as hone:
        turn = await hone.run("look around")
    found = results(turn)
    assert turn.text == "The plan."
    assert all("old" in each.text for each in found[:4])
    assert "scratch" in found[2].text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there.txt"]
    assert (tmp_path / "there.txt").read_text() == "old\n"
    refused = [each.text for each in found[4:] if "Plan mode changes nothing." in each.text]
    assert len(refused) == 3, "by write_file, by patch, by the plugin's tool"


async def test_a_switch_is_told_once_with_the_next_message_and_apart_from_the_users_words(
    tmp_path: Path,
) -> None:
    model = Scripted(rounds("ok"))
    async with Hone(model=model, folder=tmp_path) as hone:
        session = await hone.session()
        assert session.mode is Mode.AUTO
        prefix = session.agent.prefix
        for mode in ("", "plan", "", "ask", "auto", ""):
            if mode:
                session.set_mode(mode)
            await session.send("words of mine")
        told = [node.message for node in session.transcript.nodes if node.message.role == "user"]
        notes = [each.note.text.partition("\n")[0] if each.note else "" for each in told]
        heads = [f"# Permission mode: {mode}" if mode else "" for mode in ("", "plan", "", "ask", "auto", "")]
        assert notes == heads
        assert {each.text for each in told} == {"words of mine"}
        assert {prefix.digest} == {called[0].digest for called in model.calls}
        session.set_mode("ask")
        session.set_mode("auto")
        await session.send("words of mine")
        assert session.transcript.nodes[-2].message.note is None
        with pytest.raises(ValueError, match="nonsense"):
            session.set_mode("nonsense")
        resumed = await hone.resume(session.id)
        await resumed.send("words of mine")
        assert resumed.transcript.nodes[-2].message.note is None


@pytest.mark.parametrize(
    ("asked_for", "told", "again", "expected"),
    [
        ("", "plan", "", Mode.PLAN),
        ("", "ask", "", Mode.ASK),
        ("", "full", "", Mode.AUTO),
        ("", "plan", "auto", Mode.AUTO),
        ("", "auto", "full", Mode.FULL),
        ("plan", "auto", "", Mode.AUTO),
    ],
)
async def test_a_conversation_is_resumed_in_a_stricter_mode_unless_another_one_is_asked_for(
    tmp_path: Path, asked_for: str, told: str, again: str, expected: Mode
) -> None:
    async with Hone(model=Scripted(rounds("ok")), folder=tmp_path, mode=asked_for) as hone:
        session = await hone.session()
        session.set_mode(told)
        await session.send("hello")
    async with Hone(model=Scripted(rounds("ok")), folder=tmp_path, mode=again) as hone:
        assert (await hone.resume(session.id)).mode is expected
        assert (await hone.session()).mode is Mode(again or "auto")


async def test_a_program_without_ask_hears_that_nobody_is_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    folder = tmp_path / "folder"
    folder.mkdir()
    script = lines(assistant(call("write_file", path=str(outside), content="x")), "ok")
    async with Hone(model=Scripted(script), folder=folder) as hone:
        session = await hone.session()
        [result] = results(await session.send("write it"))
        assert "nobody is there to ask" in result.text
        assert session.asked == 0
    assert not outside.exists()


async def test_a_child_has_the_mode_of_its_parent_and_nobody_to_ask(tmp_path: Path) -> None:
    write = assistant(call("write_file", path="child.txt", content="x"))
    parent = rounds(assistant(call("delegate", tasks=["be a child"])), "ok")
    script = rules(("be a child", rounds(write, "refused")), otherwise=parent)
    async with Hone(model=Scripted(script), folder=tmp_path, mode="ask", ask=yes) as hone:
        session = await hone.session()
        await session.send("go")
        assert session.asked == 0
    assert not (tmp_path / "child.txt").exists()


async def test_each_question_to_the_owner_is_counted_once(tmp_path: Path) -> None:
    asked = list[Question]()

    async def once(question: Question) -> Answer:
        asked.append(question)
        return Answer.ONCE

    (tmp_path / "folder").mkdir()
    calls = [call("write_file", path=f"../{name}.txt", content="x") for name in "aab"]
    free = [call("write_file", path="free.txt", content="x"), call("terminal", command="ls")]
    script = lines(assistant(*calls, *free), "ok")
    async with Hone(model=Scripted(script), folder=tmp_path / "folder", ask=once) as hone:
        session = await hone.session()
        await session.send("go")
        assert session.asked == len(asked) == 3
