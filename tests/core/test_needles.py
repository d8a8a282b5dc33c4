"""What every match of an expression contains is found without looking for a match."""

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.regex import find_needles, fold, has_any
from hone.core.screen import _PATTERNS
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
