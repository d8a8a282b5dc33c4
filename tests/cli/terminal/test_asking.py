"""A question is answered by one clear key. Everything else, and every doubt, is a no."""

import asyncio
from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.render import Paint
from hone.cli.terminal.asking import break_line, decide, shown
from hone.core.permissions import Answer, Question
from hone.core.visible import visible

YES = {"y": Answer.ONCE, "s": Answer.SESSION, "a": Answer.ALWAYS}
SILENCE = ""


async def decided(keys: Sequence[str]) -> Answer:
    """What comes of these keys; a silence lasts until the next one."""
    waiting = list(keys)

    async def press(within: float | None) -> str:
        while within is None and waiting[:1] == [SILENCE]:
            waiting.pop(0)
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    return await decide(press, YES, Answer.NO)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["y", SILENCE], Answer.ONCE),
        (["Y", SILENCE], Answer.ONCE),
        (["s", SILENCE], Answer.SESSION),
        (["a", SILENCE], Answer.ALWAYS),
        (["y", "\r"], Answer.ONCE),
        (["y\n"], Answer.ONCE),
        (["n"], Answer.NO),
        (["N"], Answer.NO),
        (["\r"], Answer.NO),
        (["\x1b"], Answer.NO),
        (["\x03"], Answer.NO),
        (["\x04"], Answer.NO),
        (["yes\n"], Answer.NO),
        (["y", "n"], Answer.NO),
        (["y", "\x03"], Answer.NO),
        (["x", SILENCE, "y", SILENCE], Answer.ONCE),
        (["\x1b[A", SILENCE, "y", SILENCE], Answer.ONCE),
        (["t", "r", "y", SILENCE, "s", SILENCE], Answer.SESSION),
        (["y", "e", "t", SILENCE, "\r"], Answer.NO),
        (["t", "r", "y", "\r"], Answer.NO),
        (["say yes\r"], Answer.NO),
        (["try\x03"], Answer.NO),
    ],
)
async def test_a_key_alone_is_an_answer_and_a_word_is_not(keys: list[str], answer: Answer) -> None:
    assert await decided(keys) is answer


@given(st.lists(st.text("yasYtr \x1b", min_size=1), min_size=2).filter(lambda keys: len(set(keys)) > 1))
def test_no_typing_without_a_pause_is_a_yes(keys: list[str]) -> None:
    assert asyncio.run(decided([*keys, "\r"])) is Answer.NO


async def test_a_terminal_that_goes_away_gives_no_answer() -> None:
    with pytest.raises(EOFError):
        await decided(["y"])


def test_what_will_be_done_is_shown_to_the_letter_and_cannot_hide() -> None:
    detail = "echo a\nrm -rf \x1b[8m/ \u202e#\r\n" + "\n" * 100 + "ls"
    lines = list(shown(Question("Run this?\x07", detail, "rm *\x1b"), Paint()))
    assert lines[0] == "? Run this?\\x07"
    assert lines[1:4] == ["    echo a", "    rm -rf \\x1b[8m/ \\u202e#", "    "]
    assert "    ls" in lines
    assert "  These are 103 lines: scroll up to see them all." in lines
    assert lines[-5:] == [
        "  [y] yes",
        "  [s] yes, for this session",
        "  [a] always: rm *\\x1b",
        "  [n] no (default)",
        "  [r] no, and say why",
    ]
    assert all(line == visible(line) for line in lines)


def test_without_a_pattern_there_is_only_this_once() -> None:
    lines = list(shown(Question("Run this?", "ls", ""), Paint()))
    assert lines == ["? Run this?", "    ls", "  [y] yes", "  [n] no (default)", "  [r] no, and say why"]


def test_any_host_is_offered_where_the_network_is_asked_for_and_every_rule_is_shown() -> None:
    question = Question("Run this?", "ls", "terminal: ls\nnetwork: ls", network=True)
    assert list(shown(question, Paint()))[2:] == [
        "  [y] yes",
        "  [s] yes, for this session",
        "  [h] yes, and any host for this session",
        "  [a] always, by these rules:",
        "        terminal: ls",
        "        network: ls",
        "  [n] no (default)",
        "  [r] no, and say why",
    ]


@pytest.mark.parametrize("columns", [60, 80, 120])
@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Mn", "Mc", "Me", "Co", "Cn"])))
def test_a_question_fits_the_screen_and_breaks_lines_between_words(columns: int, words: str) -> None:
    with patch.dict("os.environ", COLUMNS=str(columns), LINES="24"):
        detail = f"@@ -1 +1 @@\n+{words}\n{' word' * 60}"
        lines = list(shown(Question("Change this file?", detail, f"write_file: {words * 9}"), Paint()))
    assert all(len(line) <= columns for line in lines if "\t" not in line)
    assert "".join(break_line(words * 9, columns)) == words * 9
    rows = [line for line in lines if "word word" in line]
    assert all(row.split() == ["word"] * len(row.split()) for row in rows[-3:])


def test_the_lines_of_a_diff_are_colored() -> None:
    question = Question("Change this file?", "a.py\n@@ -1 +1 @@\n-one\n+two\n three", "")
    lines = list(shown(question, Paint(colour=True)))
    assert lines[3:6] == ["    \x1b[31m-one\x1b[0m", "    \x1b[32m+two\x1b[0m", "     three"]
