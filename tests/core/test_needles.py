"""What every match of an expression contains is found without looking for a match."""

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.regex import find_needles, fold, has_any
from hone.core.screen import _PATTERNS
from hone.core.secrets.scan import Anchors, find_common
from hone.knowledge.lexicon import lexicons

ORDERS = [each for patterns in _PATTERNS.values() for each in patterns]
PHRASES = [pattern.pattern for each in lexicons().values() for pattern, *_ in each.phrases]


@pytest.mark.parametrize(
    ("pattern", "needles"),
    [
        (r"\b(?:ignor\w+|forget)\b[^.\n]{0,20}\b(?:all|your) rules", [" rules"]),
        (r"re(?:veal|peat)s?", ["peat", "veal"]),
        (r"(?:ab|c|abd)+", ["ab", "c"]),
        (r"(?:ab|\w)c", ["c"]),
        (r"(?:ab)?\d", []),
        (r"(?:ab|\d)", []),
        (r"(?=ab)\w", []),
        (r"(?i:ab)\w", []),
    ],
)
def test_the_needles_of_an_expression_are_what_each_match_has(pattern: str, needles: list[str]) -> None:
    assert find_needles(pattern) == needles


@pytest.mark.parametrize("pattern", ORDERS)
def test_whatever_matches_the_pattern_of_a_flag_has_a_needle(pattern: str) -> None:
    flags = re.IGNORECASE | re.MULTILINE
    needles = find_needles(pattern, flags)
    assert needles

    @settings(max_examples=20)
    @given(st.from_regex(re.compile(pattern, flags)))
    def law(text: str) -> None:
        assert has_any(fold(text), needles)

    law()


@given(st.data(), st.sampled_from(PHRASES))
def test_whatever_matches_a_phrase_has_a_needle(data: st.DataObject, pattern: str) -> None:
    assert has_any(data.draw(st.from_regex(re.compile(pattern))), find_needles(pattern))


def test_letters_that_match_each_other_without_regard_to_case_are_folded_alike() -> None:
    letters = "".join(letter for letter in map(chr, range(sys.maxunicode + 1)) if letter.isalpha())
    for letter in {each for pattern in ORDERS for each in pattern if each.isalpha()}:
        same = re.findall(re.escape(letter), letters, re.IGNORECASE)
        assert {fold(each) for each in same} == {fold(letter)}


ANCHORS = (("password", 1), ("token", 2), ("://", 3), ("_pass", 4))
EDITS = st.tuples(
    st.integers(0, 1_500),
    st.integers(0, 6),
    st.sampled_from(("", "pass", "word", "tok", "en", ":", "//", "x")),
)


@given(st.lists(EDITS, max_size=12))
def test_anchors_are_found_in_a_text_that_grew_from_one_without_any(
    edits: list[tuple[int, int, str]],
) -> None:
    """Also one that is put together at the border of a change."""
    anchors, text = Anchors(ANCHORS), "- A fact about things.\n" * 60
    for at, gone, new in edits:
        for place in (at, text.find("pass") + 4, text.find("tok") + 3, text.find(":") + 1):
            changed = text[:place] + new + text[place + gone :]
            assert sorted(anchors.find(changed)) == sorted(Anchors(ANCHORS).find(changed))
            text = changed


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_what_texts_have_in_common_at_their_ends_never_overlaps(one: str, other: str) -> None:
    head, tail = find_common(one, other)
    assert one[:head] == other[:head]
    assert one[len(one) - tail :] == other[len(other) - tail :]
    assert head + tail <= min(len(one), len(other))
