"""Tables and sentences fit the screen at any width, and a pipe gets every word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from hone.cli.listing import entry
from hone.cli.output import fit_lines, lay_out, measure, wrap_cells, wrap_rows, wrap_words
from hone.cli.render import Paint
from hone.core.messages import user
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from tests.given import NOON

plain = st.characters(min_codepoint=33, max_codepoint=126)
letters = st.text(plain | st.sampled_from("漢字仮名ü"), max_size=15)
sentences = st.lists(letters.filter(bool), max_size=40).map(" ".join)
EMOJI = ("👍", "👍🏽", "👩‍👩‍👧", "❤️", "🏳️‍🌈", "🇵🇹", "1️⃣", "e\u0301")
"""Several characters each, but for the first."""
wide = st.lists(st.sampled_from([*EMOJI, *"漢字仮名한글、。「」！", *"abc-/."]), min_size=1, max_size=60).map(
    "".join
)
wide_sentences = st.lists(wide, min_size=1, max_size=12).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    count = draw(st.integers(1, 9))
    titles = draw(st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=count, max_size=count))
    row = st.tuples(*[letters] * (count - 1), sentences)
    return titles, [list(each) for each in draw(st.lists(row, max_size=5))]


@given(tables(), st.integers(60, 200), st.sets(st.integers(0, 8)))
def test_no_line_is_wider_than_the_screen_and_every_cell_is_there(
    table: tuple[list[str], list[list[str]]], width: int, numbers: set[int]
) -> None:
    titles, rows = table
    right = {titles[at] for at in numbers if at < len(titles)}
    lines = lay_out(titles, rows, width, right)
    assert all(measure(line) <= width for line in lines)
    shown = "".join("\n".join(lines).split())
    for row in rows:
        assert all(cell in shown for cell in row[:-1])
        assert "".join(row[-1].split())[:8] in shown


@given(tables())
def test_a_pipe_gets_one_whole_line_a_row(table: tuple[list[str], list[list[str]]]) -> None:
    titles, rows = table
    _, *lines = lay_out(titles, rows, None)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line.endswith(row[-1])
        assert all(cell in line for cell in row)


@given(st.lists(st.text(plain, min_size=1, max_size=15), min_size=1, max_size=40), st.integers(60, 200))
def test_what_was_said_is_broken_between_words_and_none_is_lost(words: list[str], width: int) -> None:
    (node,) = Transcript("").then(user(" ".join(words)), Trust.OWNER, NOON).nodes
    _, *lines = entry(1, node, Paint(), width=width)
    assert all(measure(line) <= width for line in lines)
    assert " ".join(lines).split() == words


@given(
    st.lists(st.text(plain, min_size=1, max_size=15), max_size=40),
    st.sampled_from(["hone permissions allow", "/resume 0123456789"]),
    st.integers(60, 200),
)
def test_a_command_at_the_end_of_a_message_is_never_broken(
    words: list[str], command: str, width: int
) -> None:
    lines = list(wrap_rows([" ".join([*words, "To do it:", command])], width))
    assert all(measure(line) <= width for line in lines)
    assert lines[-1].endswith(command)
    assert " ".join(lines).split() == [*words, "To", "do", "it:", *command.split()]


@given(wide_sentences, st.integers(10, 200), st.sampled_from(["", "  "]), st.sampled_from(["", "    "]))
def test_no_line_of_a_text_takes_more_cells_than_there_are_and_no_letter_is_lost_or_torn(
    text: str, width: int, indent: str, more: str
) -> None:
    lines = wrap_cells(text, width, indent, more)
    assert all(wcswidth(line) <= measure(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert not any(line.lstrip()[0] in "\u200d\ufe0f\u0301🏽" for line in lines)
    assert not any(line.endswith("\u200d") for line in lines)


@given(wide_sentences, st.integers(60, 200))
def test_sentences_with_wide_letters_fit_the_terminal(text: str, width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        assert all(wcswidth(line) <= width for line in fit_lines(text))
        # A path or an address stays whole, so that it can be copied, and then it stands alone.
        long = [line for line in wrap_words(text) if wcswidth(line) > width]
        assert all(" " not in line and measure(line.strip("漢字仮名한글")) > width for line in long)


def test_east_asian_sentences_are_broken_between_letters_and_not_before_a_full_stop() -> None:
    said = "会話を終了しました。次の会話で見直します。"
    assert wrap_cells(said, 18) == ["会話を終了しまし", "た。次の会話で見直", "します。"]
    assert wrap_cells(f"Saved: {said}", 18) == ["Saved: 会話を終了", "しました。次の会話", "で見直します。"]
