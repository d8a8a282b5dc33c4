"""C1, C2: entries go in and come out as they are, whatever the owner wrote around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.knowledge.journal import (
    Add,
    Edit,
    Remove,
    ReplaceEntry,
    apply,
    blocks,
    entries,
    format_entry,
    normalize,
    parse,
    size,
)

LIMIT = 2_200
MARKDOWN = st.lists(
    st.sampled_from(
        ["- one", "- two", "  more", "", "# Head", "Prose.", "```", "- ", "-", "* star", "  - sub", "\t- tab"]
    ),
    max_size=12,
).map("\n".join)
ENTRY = st.text(st.sampled_from("ab -#\n`*§~<>/é"), min_size=1, max_size=60).filter(normalize)
OWNED = """# What Hone knows

I keep this by hand. - this is no item

- The build runs with `make`.
  It needs Python 3.11.

  - not an entry of its own

```
- neither is this
```
- Deploys go out on Tuesdays.
"""


def test_what_is_not_an_item_at_the_margin_is_the_owners_prose() -> None:
    assert entries(OWNED) == (
        "The build runs with `make`.\nIt needs Python 3.11.\n\n- not an entry of its own",
        "Deploys go out on Tuesdays.",
    )


@given(MARKDOWN)
def test_blocks_joined_are_the_text_again(text: str) -> None:
    assert "".join(block.raw for block in blocks(text)) == text


@given(MARKDOWN, st.lists(ENTRY, max_size=3))
def test_an_entry_comes_back_as_it_went_in_and_nothing_else_changes(text: str, words: list[str]) -> None:
    for each in words:
        entry = normalize(each)
        if entry in entries(text):
            continue
        after = apply(text, [Add(each)], 10_000)
        assert sorted(entries(after)) == sorted((*entries(text), entry))
        assert [block.raw.rstrip("\n") for block in blocks(after) if block.entry is None] == [
            block.raw.rstrip("\n") for block in blocks(text) if block.entry is None
        ]
        assert size(after) == size(text) + len(entry)
        assert tuple(blocks(after)) == parse(after)
        text = after


@given(ENTRY)
def test_no_line_of_an_entry_can_look_like_structure(words: str) -> None:
    for number, line in enumerate(format_entry(normalize(words)).splitlines()):
        assert line.startswith("- " if number == 0 else "  ") or not line


@given(MARKDOWN, ENTRY)
def test_removing_what_was_added_gives_the_same_entries(text: str, words: str) -> None:
    entry = normalize(words)
    if entry in entries(text):
        return
    added = apply(text, [Add(entry)], 10_000)
    assert entries(apply(added, [Remove(entry)], 10_000)) == entries(text)


def test_a_part_that_only_one_entry_has_is_enough() -> None:
    after = apply(OWNED, [ReplaceEntry("Tuesdays", "Deploys go out on Fridays.")], LIMIT)
    assert after == OWNED.replace("Tuesdays", "Fridays")


@pytest.mark.parametrize("edit", [ReplaceEntry("It", "x"), Remove("o"), ReplaceEntry("", "x"), Remove("  ")])
def test_what_is_ambiguous_names_the_candidates_and_changes_nothing(edit: Edit) -> None:
    with pytest.raises(
        Refused, match=r"(?s)The build runs.*nothing was changed|nothing was changed.*The build runs"
    ):
        apply("- It is.\n- It was.\n- or not\n" + OWNED, [edit], LIMIT)


def test_an_exact_entry_is_meant_even_if_it_is_a_part_of_others() -> None:
    assert apply("- tabs\n- no tabs\n", [Remove("tabs")], LIMIT) == "- no tabs\n"


def test_what_was_shown_escaped_is_found_by_its_escapes() -> None:
    assert apply("- a\u200bb\n- c\n", [Remove(r"a\u200bb")], LIMIT) == "- c\n"


@pytest.mark.parametrize("words", ["", " \n ", "\r\n"])
def test_an_entry_without_words_is_refused(words: str) -> None:
    with pytest.raises(Refused, match="needs words"):
        apply("", [Add(words)], LIMIT)


def test_the_same_entry_twice_is_refused() -> None:
    with pytest.raises(Refused, match="already there"):
        apply(OWNED, [Add("Deploys go out on Tuesdays. ")], LIMIT)


def test_a_full_journal_says_what_is_in_it_and_takes_a_batch_that_makes_room() -> None:
    full = apply("", [Add("a" * 1_000), Add("b" * 1_000)], LIMIT)
    with pytest.raises(
        Refused, match=r"(?s)full: it would have 2,300 characters, and at most 2,200 are allowed.*- aaa"
    ):
        apply(full, [Add("c" * 300)], LIMIT)
    after = apply(full, [Add("c" * 300), Remove("a" * 1_000)], LIMIT)
    assert entries(after) == ("b" * 1_000, "c" * 300)


def test_a_journal_that_is_over_its_limit_by_hand_may_shrink_and_not_grow() -> None:
    over = f"- {'a' * 3_000}\n- b\n"
    assert entries(apply(over, [Remove("b")], LIMIT)) == ("a" * 3_000,)
    with pytest.raises(Refused, match="full"):
        apply(over, [Add("c")], LIMIT)


def test_a_part_that_is_switched_off_takes_nothing() -> None:
    with pytest.raises(Refused, match="switched off"):
        apply("", [Add("x")], 0)
