"""Tables fit the screen at any width, and a pipe gets every word."""

from hypothesis import given
from hypothesis import strategies as st

from hone.cli.listing import entry
from hone.cli.output import lay_out, measure, wrap_rows
from hone.cli.render import Paint
from hone.core.messages import user
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from tests.given import NOON

plain = st.characters(min_codepoint=33, max_codepoint=126)
letters = st.text(plain | st.sampled_from("漢字仮名ü"), max_size=15)
sentences = st.lists(letters.filter(bool), max_size=40).map(" ".join)


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
