"""Blocks of a stream: the same however it was cut into pieces, and never changed by what comes later."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.terminal.blocks import Blocks, MarkdownBlock, cut
from hone.core.visible import visible
from tests.cli.terminal.marked import TEXTS


def fed(text: str, edges: list[int], asked: list[bool]) -> list[MarkdownBlock]:
    """The blocks of a text that came in pieces; `asked` says after which of them somebody looked."""
    places = sorted({edge % (len(text) + 1) for edge in edges})
    blocks, found = Blocks(), list[MarkdownBlock]()
    for index, (begin, end) in enumerate(pairwise([0, *places, len(text)])):
        blocks.feed(text[begin:end])
        if asked and asked[index % len(asked)]:
            found += blocks.take()
            blocks.tail()
    found += blocks.close()
    assert (blocks.take(), blocks.tail(), blocks.close()) == ([], [], [])
    return found


@given(TEXTS, st.lists(st.integers(0, 1_000), max_size=12), st.lists(st.booleans(), max_size=5))
def test_any_cut_into_pieces_gives_the_same_blocks(text: str, edges: list[int], asked: list[bool]) -> None:
    assert fed(text, edges, asked) == cut(visible(text))


@given(TEXTS)
def test_a_text_that_comes_letter_by_letter_gives_the_same_blocks(text: str) -> None:
    assert fed(text, list(range(len(text))), [True]) == cut(visible(text))


@given(TEXTS)
def test_the_blocks_joined_are_the_text(text: str) -> None:
    assert "".join(block.text for block in cut(visible(text))) == visible(text)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo\n\n", "three"]),
        ("# Title\ntext\n", ["# Title\n", "text\n"]),
        ("Title\n===\ntext\n", ["Title\n===\n", "text\n"]),
        ("a\n```\n# no title\n\n- no item\n```\nb", ["a\n", "```\n# no title\n\n- no item\n```\n", "b"]),
        ("- a\n\n  more\n- b\n", ["- a\n\n  more\n", "- b\n"]),
        ("- a\n  - b\n    - c\n- d", ["- a\n  - b\n    - c\n", "- d"]),
        ("a | b\n--|--\n1 | 2\n\nend", ["a | b\n--|--\n1 | 2\n\n", "end"]),
        ("<div>\n\n[x]: y\n", ["<div>\n\n", "[x]: y\n"]),
        ("\n\n", ["\n\n"]),
        ("", []),
    ],
)
def test_a_block_is_what_belongs_together(text: str, blocks: list[str]) -> None:
    assert [block.text for block in cut(text)] == blocks


def test_items_are_numbered_by_their_list_however_they_came() -> None:
    text = "3. a\n3. b\n\n   more\n3. c\n\ntext\n\n1. d\n1. e\n"
    numbers = [3, 4, 5, None, 1, 2]
    assert [block.number for block in cut(text)] == numbers
    assert [block.number for block in fed(text, list(range(len(text))), [True])] == numbers
