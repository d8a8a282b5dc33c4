"""E4: what a review is asked. The text has each rule and stays short, for no cache has it."""

import pytest

from hone.core.topics import NAMES
from hone.prompt.review import question, read_title, text

LONGEST = 3_500
"""Bytes of the whole question without what is known and what was said."""
RULES = {
    "corrections of style": "style, tone, format, length",
    "complaints belong into the skill, too": "complained about how you did a task",
    "what emerged": "technique, fix, workaround or way of using a tool",
    "a skill in play was wrong": "wrong, out of date or missed a step. Patch it now",
    "first the skill in play": "1. Patch the skill that was in play",
    "then an umbrella": "2. Patch an umbrella skill",
    "then a support file": "3. Add a support file",
    "with a pointer": "one-line pointer to it in SKILL.md",
    "references": "references/ holds session detail and condensed knowledge",
    "templates": "templates/ holds starters to copy",
    "scripts": "scripts/ holds actions to run again",
    "checks": "If a command can tell whether a script still works, put it into checks/",
    "then a new umbrella": "4. Create an umbrella skill for the class of task",
    "no failures of the environment": "missing programs, packages or credentials",
    "no broken tools": "claims that a tool does not work",
    "the retry": "the lesson is the retry",
    "the fix": "If the setup was the cause, save the fix",
    "protected skills": "If only protected skills fit, save nothing",
    "overlaps": "If two skills overlap, say so",
    "the owner's words": "Use the user's own words where you can",
    "replace": "replace it; do not add a second one beside it",
    "silence": "silence after a correction is a failure, and so is junk",
    "evidence": "Every change cites its evidence",
    "one reply": "Make all your calls in one reply",
}


@pytest.mark.parametrize("rule", RULES)
def test_a_review_is_told_each_rule(rule: str) -> None:
    assert RULES[rule] in question(NAMES, (), text)


def test_a_question_is_short() -> None:
    assert len(question(NAMES, (), text).encode()) <= LONGEST


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ("Title: Fix the parser\n\nnothing", "Fix the parser"),
        ("**Title:** “Fix the parser.”", "Fix the parser"),
        ("title: Title: of a page", "Title: of a page"),
        ("# Title: Fix\x1b[31m it", "Fix\\x1b[31m it"),
        ("Title: " + "x" * 500, "x" * 79 + "…"),
        ("Title: key sk-ant-api03-" + "aB3dE5fG7hJ9" * 7, None),
        ("Title: …", ""),
        ("Title:\nnothing", ""),
        ("nothing\nTitle: too late", ""),
        ("", ""),
    ],
)
def test_a_title_is_one_clean_line_at_the_beginning_of_a_reply(reply: str, title: str | None) -> None:
    found = read_title(reply)
    assert "\n" not in found
    if title is None:
        assert "aB3dE5fG7hJ9" not in found
    else:
        assert found == title
