"""A2, A4: the walls around every tool, as a model meets them in a whole Hone."""

import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hone import Hone
from hone.core.messages import ToolCall, ToolResult, assistant
from hone.core.tool import Tool
from hone.core.turn import Stop, Turn
from hone.models.scripted import Script, Scripted, call, lines, rounds
from hone.settings import Settings
from hone.settings.sections import Guardrails
from hone.tools.define import tool

SECRET = "AKIA" + "Q3WERTYUIOPASDFG"
LIMIT = 2_000


@tool(effects=frozenset())
def burn() -> str:
    """Raise something."""
    raise ZeroDivisionError(f"divided by {SECRET}")


def results(turn: Turn) -> list[ToolResult]:
    return [node.message.result for node in turn.nodes if node.message.result]


def read_notes() -> Script:
    return lines(assistant(call("read_file", path="notes.txt")), "done")


def heard(model: Scripted) -> bytes:
    """Everything the model was sent."""
    return b"".join(node.encoded for _, transcript in model.calls for node in transcript.nodes)


async def one_turn(script: Script, folder: Path, tools: Sequence[Tool] = ()) -> tuple[Turn, Scripted]:
    model = Scripted(script)
    settings = Settings(result_limit=LIMIT)
    async with Hone(model=model, folder=folder, tools=tools, settings=settings) as hone:
        return await hone.run("do it"), model


async def test_a_secret_in_a_result_reaches_neither_the_model_nor_the_store_nor_the_spilled_file(
    tmp_path: Path, home: Path
) -> None:
    (tmp_path / "notes.txt").write_text(f"the key is {SECRET} and there is more\n" * 100, "utf-8")
    turn, model = await one_turn(read_notes(), tmp_path)
    assert turn.stop is Stop.ANSWERED
    assert b"[redacted: AWS key]" in heard(model)
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert {"hone.db", "spill"} <= {path.relative_to(home).parts[0] for path in kept}
    for data in (heard(model), *(path.read_bytes() for path in kept)):
        assert SECRET.encode() not in data


async def test_an_oversized_result_is_spilled_and_the_model_gets_head_tail_and_the_files_name(
    tmp_path: Path, home: Path
) -> None:
    text = "".join(f"line {number}\n" for number in range(1_000))
    (tmp_path / "notes.txt").write_text(text, "utf-8")
    turn, _ = await one_turn(read_notes(), tmp_path)
    (result,) = results(turn)
    (spilled,) = (home / "spill").iterdir()
    assert len(result.text) <= LIMIT
    assert result.text.startswith("line 0\nline 1\n")
    assert "line 999" in result.text[-50:]
    assert str(spilled) in result.text
    assert text.rstrip("\n") in spilled.read_text("utf-8")
    assert stat.S_IMODE(spilled.stat().st_mode) == 0o600


async def test_an_exception_of_a_tool_comes_back_as_its_last_lines_without_secrets(tmp_path: Path) -> None:
    turn, _ = await one_turn(lines(assistant(call("burn")), "I see"), tmp_path, [burn])
    (result,) = results(turn)
    assert turn.text == "I see"
    assert result.failed
    assert "in burn" in result.text
    assert "ZeroDivisionError: divided by [redacted: AWS key]" in result.text
    assert SECRET not in result.text


@pytest.mark.parametrize("limits", [Guardrails(), Guardrails(same_call=(1, 3))])
async def test_the_guardrails_of_the_settings_hold_in_a_turn_and_start_anew_with_the_next(
    tmp_path: Path, limits: Guardrails
) -> None:
    insist = rounds(*[assistant(call("read_file", path="missing.txt"))] * 7, "I give up")
    warn, stop = limits.same_call
    settings = Settings(guardrails=limits)
    async with Hone(model=Scripted(insist), folder=tmp_path, settings=settings) as hone:
        session = await hone.session()
        for turn in [await session.send("read it"), await session.send("once more")]:
            texts = [result.text for result in results(turn)]
            assert len(texts) == min(7, stop + limits.end)
            assert turn.stop is (Stop.ANSWERED if stop == 5 else Stop.STUCK)
            warned = ["[Warning: " in text for text in texts]
            assert warned == [warn <= number <= stop for number in range(1, len(texts) + 1)]
            assert len(set(texts[stop:])) == 1
            assert texts[stop] not in texts[:stop]


OBSTINATE: dict[str, tuple[Callable[[int], ToolCall], int]] = {
    "one call": (lambda number: call("todo"), 5),
    "tools that do not exist": (lambda number: call(f"tool_{number}"), 8),
    "malformed calls": (lambda number: ToolCall(f"c{number}", "todo", f"{{{number}"), 8),
    "commands that say the same": (lambda number: call("terminal", command="true"), 5),
}


@pytest.mark.parametrize("name", OBSTINATE)
async def test_a_model_that_never_stops_calling_ends_its_turn_with_a_summary(
    tmp_path: Path, name: str
) -> None:
    act, before = OBSTINATE[name]
    model = Scripted(lines(*(assistant(act(number)) for number in range(90))))
    async with Hone(model=model, folder=tmp_path) as hone:
        session = await hone.session()
        turn = await session.send("do it")
        assert turn.stop is Stop.STUCK
        assert len(results(turn)) == before + Guardrails().end
        assert [result.text.startswith("Not run: ") for result in results(turn)][before:] == [True] * 3
        assert turn.error.startswith("The model kept repeating itself after its calls were refused")
        assert turn.text == "(no summary was given)"
        stored = await hone.sessions.load(session.id)
        assert stored.transcript.nodes[-1].message.text == turn.text
