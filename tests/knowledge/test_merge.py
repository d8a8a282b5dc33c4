"""Two changes of one text: what only one side touched is taken from it, and nothing is lost unsaid."""

from hypothesis import given
from hypothesis import strategies as st

from hone.knowledge.merge import by_entry, merge

LINES = st.lists(st.sampled_from("abcdefgh"), max_size=10).map(lambda each: "".join(f"{x}\n" for x in each))


@given(LINES, LINES)
def test_a_side_that_changed_nothing_has_no_say(base: str, side: str) -> None:
    assert merge(base, side, base).text == side
    assert merge(base, base, side).text == side
    assert merge(base, side, side).text == side


@given(LINES, LINES, LINES)
def test_every_line_that_only_one_side_added_is_there_or_in_a_clash(
    base: str, ours: str, theirs: str
) -> None:
    merged = merge(base, ours, theirs)
    clashing = "".join("".join((*each.ours, *each.theirs)) for each in merged.clashes)
    added = (set(ours) | set(theirs)) - set(base)
    assert added <= set(merged.text) | set(clashing)
    assert set(merged.text) <= set(base) | set(ours) | set(theirs)


@given(LINES, LINES, LINES)
def test_without_a_clash_the_sides_can_be_exchanged_but_for_the_order(
    base: str, ours: str, theirs: str
) -> None:
    one, two = merge(base, ours, theirs), merge(base, theirs, ours)
    assert bool(one.clashes) == bool(two.clashes)
    if not one.clashes:
        assert sorted(one.text) == sorted(two.text)


@given(
    st.lists(st.integers(), min_size=3, max_size=12, unique=True),
    st.data(),
)
def test_changes_of_different_lines_never_clash(numbers: list[int], data: st.DataObject) -> None:
    base = [f"{number}\n" for number in numbers]
    mine = data.draw(st.sets(st.integers(0, len(base) - 1)))
    yours = data.draw(st.sets(st.sampled_from(sorted(set(range(len(base))) - mine) or [-1]))) - {-1}

    def changed(those: set[int], letter: str) -> str:
        return "".join(f"{letter}{line}" if at in those else line for at, line in enumerate(base))

    merged = merge("".join(base), changed(mine, "m"), changed(yours, "y"))
    wanted = "".join(
        f"{'m' if at in mine else 'y' if at in yours else ''}{line}" for at, line in enumerate(base)
    )
    assert (merged.text, merged.clashes) == (wanted, ())


def test_both_may_add_at_the_end() -> None:
    assert merge("a\n", "a\nb\n", "a\nc\n").text == "a\nb\nc\n"
    assert merge("", "b\n", "c\n").text == "b\nc\n"


def test_what_both_changed_in_their_own_way_is_a_clash_and_theirs_stands() -> None:
    merged = merge("a\nb\nc\n", "a\nB\nc\n", "a\nx\nc\nd\n")
    assert merged.text == "a\nx\nc\nd\n"
    assert [(each.ours, each.theirs) for each in merged.clashes] == [(("B\n",), ("x\n",))]


def test_one_takes_away_what_the_other_has_changed() -> None:
    assert merge("a\nb\n", "a\nB\n", "a\n").clashes


def test_taking_away_and_adding_beside_it_is_no_clash() -> None:
    assert merge("a\nb\n", "a\nb\nc\n", "a\n") == merge("a\nb\n", "a\n", "a\nb\nc\n")
    assert merge("a\nb\n", "a\nb\nc\n", "a\n").text == "a\nc\n"


def test_a_last_line_without_an_end_does_not_run_into_the_next() -> None:
    assert merge("- a", "- a\n- b\n", "- a", by_entry).text == "- a\n- b\n"
    assert merge("- a\n- b\n", "- a\n- b\n- c\n", "- a", by_entry).text.startswith("- a\n- c")


def test_an_entry_of_several_lines_is_one_piece() -> None:
    base = "- a\n  one\n  two\n- b\n"
    ours, theirs = "- a\n  ONE\n  two\n- b\n", "- a\n  one\n  TWO\n- b\n"
    assert merge(base, ours, theirs, by_entry).clashes
    assert not merge(base, ours, theirs).clashes
