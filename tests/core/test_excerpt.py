"""C3: what is shown of a message is the place where the words stand, in scripts with and without spaces."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.recall import excerpt, pieces, stem
from hone.core.secrets import _WITHOUT, redact

WORDS = st.sampled_from(
    ["Boilers", "boiler", "the", "café", "Cafés", "running", "ran", "x_boiler", "s", "数据备份", "ſet", "İs"]
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("无" * 900 + "数据备份" + "关" * 900, ("数据", "据备", "备份")),
        ("無" * 900 + "データ" + "関" * 900, ("デー ータ",)),
        ("words " * 200 + "boilers " + "words " * 200, ("boiler",)),
        ("words " * 200 + "boilermaker " + "words " * 200, ("boilerm*",)),
    ],
)
def test_an_excerpt_shows_where_the_terms_stand(text: str, terms: tuple[str, ...]) -> None:
    shown = excerpt(text, terms, 160)
    assert any(found for _, found in pieces(shown, terms))
    assert len(shown) <= 164


def test_a_phrase_of_letters_is_marked_as_a_whole() -> None:
    assert pieces("每天做数据备份。", ("数据 据备 备份",)) == [
        ("每天做", False),
        ("数据备份", True),
        ("。", False),
    ]


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, min_size=1, max_size=3))
def test_a_word_is_marked_if_its_stem_is_looked_for(words: list[str], terms: list[str]) -> None:
    text = " ".join(words)
    shown = pieces(text, terms)
    assert "".join(piece for piece, _ in shown) == text
    marks = [found for piece, found in shown for _ in piece]
    wanted = {stem(word) for term in terms for word in re.findall(r"[^\W_]+", term.lower())} - {""}
    for match in re.finditer(r"[^\W_]+", text):
        if stem(match[0].lower()) in wanted:
            assert all(marks[slice(*match.span())]), match[0]


def test_text_that_is_passed_over_has_no_letter_that_a_secret_needs() -> None:
    passed = [letter for letter in map(chr, range(0x110000)) if _WITHOUT.fullmatch(letter)]
    assert len(passed) > 38_000
    for letter in passed:
        assert letter.isspace() or (ord(letter) > 127 and not letter.isdigit()), hex(ord(letter))
        assert letter.isspace() or unicodedata.category(letter)[0] in "LPMSC", hex(ord(letter))
    assert redact("密码是hunter2!x9").startswith("密码是[redacted")
