"""What came and went between two journals is found in the lines around the change, as in the whole."""

from hypothesis import given
from hypothesis import strategies as st

from hone.knowledge.journal import compare, entries, find_missing

LINES = st.sampled_from(
    ["- one", "- two", "- three", "  more", "  ", "", "prose", "# Title", "-", "```", "- "]
)
numbers = st.integers(0, 9)


def distinct(lines: list[str], word: str) -> list[str]:
    return [f"{line} {word} {at}" if line.startswith("- ") else line for at, line in enumerate(lines)]


@st.composite
def journals(draw: st.DrawFn) -> tuple[str, str]:
    """A text and what an edit in one place makes of it. No entry stands in it twice."""
    rows = distinct(draw(st.lists(LINES)), "old")
    start, end = sorted(draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows)))))
    new = distinct(draw(st.lists(LINES)), "new")
    return "\n".join(rows), "\n".join([*rows[:start], *new, *rows[end:]])


@given(journals())
def test_the_lines_around_a_change_tell_what_the_whole_journals_tell(pair: tuple[str, str]) -> None:
    before, after = pair
    old, new = entries(before), entries(after)
    assert compare(before.encode(), after.encode()) == (find_missing(new, old), find_missing(old, new))
