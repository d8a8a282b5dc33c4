"""Nothing that a model or a tool says can steer the terminal, and ordinary text passes unharmed."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.visible import one_line, visible

STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("over\rwritten", "over\\rwritten"),
        ("back\b\b\bspace", "back\\x08\\x08\\x08space"),
        ("\u202egnp.exe\u202c", "\\u202egnp.exe\\u202c"),
        ("\u2066a\u2069", "\\u2066a\\u2069"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("line\u2028sep", "line\\u2028sep"),
        ("nul\0del\x7f", "nul\\x00del\\x7f"),
        ("half \ud83d", "half \\ud83d"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_instead(hostile: str, shown: str) -> None:
    assert visible(hostile) == shown


@pytest.mark.parametrize(
    "ordinary",
    [
        "plain\n\ttext\n",
        "👨‍👩‍👧‍👦 and 🏳️‍🌈",
        "می‌خواهم",
        "٣ ۝ آية",
        "日本語、한국어, Ελληνικά, עברית",
        "naïve café — “quotes” … 100 €",
    ],
)
def test_ordinary_text_passes_as_it_is(ordinary: str) -> None:
    assert visible(ordinary) == ordinary


def test_a_windows_line_ending_becomes_a_plain_one() -> None:
    assert visible("a\r\nb\r\n") == "a\nb\n"


def test_no_code_point_that_steers_gets_through() -> None:
    kept = [
        chr(point)
        for point in range(sys.maxunicode + 1)
        if unicodedata.category(chr(point)) in STEERING and visible(chr(point)) == chr(point)
    ]
    visible_signs = {sign for sign in kept if unicodedata.bidirectional(sign) in {"AN", "AL", "L"}}
    assert set(kept) - visible_signs == {"\n", "\t", "\u200c", "\u200d"}


@given(st.text(), st.integers(10, 80))
def test_one_line_is_one_line_and_not_longer(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert line == visible(line)
    assert "\n" not in line
    assert "\t" not in line
