"""Text is recognized in whatever form a program prints it, and lines that all programs share are not."""

import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.fingerprints import Fingerprints, fingerprint, runs
from tests.conftest import Figures, Tier
from tests.story.poison.house import TEXTS

Form = Callable[[str], str]


def each_line(shape: str) -> Form:
    def form(text: str) -> str:
        rows = text.split("\n")
        return "".join(f"{shape.format(number=at, line=row)}\n" for at, row in enumerate(rows, 1))

    return form


def fold(text: str) -> str:
    return "\n".join(line[at : at + 80] for line in text.split("\n") for at in range(0, len(line) or 1, 80))


FORMS: Mapping[str, Form] = {
    "cat": str,
    "cat -n": each_line("{number:6}\t{line}"),
    "nl": each_line("{number:>6}  {line}"),
    "grep -n": each_line("{number}:{line}"),
    "grep -rn": each_line("docs/a-b/notes.md:{number}:{line}"),
    "grep -r": each_line("docs/notes.md:{line}"),
    "grep -A": each_line("docs/notes.md-{number}-{line}"),
    "search_files": each_line("docs/notes.md:{number}: {line}"),
    "diff +": each_line("+{line}"),
    "diff -": each_line("-{line}"),
    "diff >": each_line("> {line}"),
    "quoted": each_line("# {line}"),
    "indented": each_line("        {line}"),
    "git blame": each_line("0a1b2c3d (Ana Maria 2026-01-01 12:00:00 +0000 {number:3}) {line}"),
    "colors": each_line("\x1b[01;31m\x1b[K{line}\x1b[m"),
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode("utf-8", "replace")),
    "json": json.dumps,
    "json of lines": lambda text: json.dumps(text.split("\n")),
    "repr of json": lambda text: repr(json.dumps(text)),
    "in a sentence": lambda text: f"The file says {text!r}, as far as I can see.",
}


def test_a_text_is_recognized_in_every_form(tier: Tier, figures: Figures) -> None:
    texts = [TEXTS[draw.index] for draw in tier.draws(short=60, full=len(TEXTS))]
    missed = []
    for text in texts:
        known = Fingerprints()
        known.add(fingerprint(text.text), 1)
        missed += [
            f"{text.number} by {name}" for name, form in FORMS.items() if not known.find(form(text.text))
        ]
    figures.tally(len(texts) * len(FORMS), got_in=len(missed), note=f"{len(FORMS)} forms of a text")
    assert missed == []


def test_every_line_of_a_text_is_recognized_alone(tier: Tier, figures: Figures) -> None:
    """Those that are long enough to say something."""
    tried, missed = 0, []
    for text in TEXTS:
        known = Fingerprints()
        known.add(fingerprint(text.text), 1)
        for line in text.text.split("\n"):
            words = [word for word in line.split() if word.isalpha() and word.isascii()]
            if len(words) >= 3 and sum(map(len, words)) >= 16:
                tried += 1
                missed += [] if known.find(f"notes.md:7:{line}") else [line]
    figures.tally(tried, got_in=len(missed), note="lines shown alone")
    assert missed == []


words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=9)
texts = st.lists(st.lists(words, max_size=9).map(" ".join), min_size=1, max_size=9).map("\n".join)


@given(text=texts, form=st.sampled_from(sorted(FORMS)), around=texts)
def test_law_what_has_units_is_found_in_what_contains_it(text: str, form: str, around: str) -> None:
    units = fingerprint(text)
    known = Fingerprints()
    known.add(units, 1)
    if units:
        assert known.find(f"{around}\n{FORMS[form](text)}\n{around}") or form in (
            "repr of json",
            "in a sentence",
        )
    else:
        assert not known.find(text)


@given(text=texts)
def test_law_the_runs_of_a_text_hold_all_its_units(text: str) -> None:
    assert fingerprint(text) <= runs(text)


def test_folded_text_is_recognized_unless_it_has_hardly_more_than_a_line(figures: Figures) -> None:
    long = [text for text in TEXTS if len(text.plain.split()) > 30 and text.text == text.plain]
    missed = []
    for text in long:
        known = Fingerprints()
        known.add(fingerprint(text.text), 1)
        missed += [] if known.find(fold(text.text)) else [text.number]
    figures.tally(len(long), got_in=len(missed), note="folded texts")
    assert missed == []


@pytest.mark.parametrize(
    "line",
    [
        "}",
        "import os",
        "import asyncio",
        "return None",
        "else:",
        "    pass",
        "# ---",
        "12 34 56 78 90",
        "",
        "});",
    ],
)
def test_a_line_that_says_nothing_is_no_unit(line: str) -> None:
    assert not fingerprint(line)


def test_where_a_unit_was_found_is_told_by_the_words_themselves() -> None:
    known = Fingerprints()
    known.add(fingerprint("from pathlib import Path\nshort\nlines here too"), 7)
    assert known.find("main.py:1:from pathlib import Path") == {("from pathlib import Path",): 7}
    assert ("short", "lines here too") in known.find(">  short\n>  lines here too")
