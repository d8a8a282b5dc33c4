"""How changes look: one line that fits, and a diff that hides no byte."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.changes import called, diff, heading, line, table
from hone.cli.render import Paint
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeState,
    Delta,
    Entry,
    Target,
    project,
    skill,
)
from hone.core.visible import visible
from hone.knowledge.descriptions import DescribedChange, stat
from hone.knowledge.folding import Step
from tests.given import NOON

NASTY = st.text(alphabet=st.sampled_from("ab -+@\\#\r\n\t\x1b\u202e\u200b\U000e0041é漢"), max_size=40)


def step(before: str | bytes | None, after: str | bytes | None, path: str = "MEMORY.md") -> Step:
    return Step(path, *(each.encode() if isinstance(each, str) else each for each in (before, after)))


def made(
    *steps: Step, target: Target = MEMORY, fate: str = "", reason: str = "", confirmed: bool = False
) -> DescribedChange:
    deltas = tuple(Delta(each.path, "0" * 64, "1" * 64) for each in steps)
    waits = fate == "waits"
    change = Change(
        target,
        ChangeKind.ADD,
        deltas,
        Author(Actor.REVIEW, reason=reason),
        ChangeState.PENDING if waits else ChangeState.ACTIVE,
        confirmed,
        "it rests on foreign text" if waits else "",
    )
    return DescribedChange(Entry(ChangeId(42), NOON, change), steps, fate)


def test_an_end_of_line_that_changes_can_be_seen() -> None:
    assert list(diff(MEMORY, [step("a\nb\n", "a\r\nb")])) == [
        "--- a/MEMORY.md",
        "+++ b/MEMORY.md",
        "@@ -1,2 +1,2 @@",
        *("-a", "-b", "+a\\r", "+b"),
        "\\ No newline at end of file",
    ]


def test_files_that_come_or_go_facts_and_bytes_are_named_for_what_they_are() -> None:
    rows = list(
        diff(
            skill("release-notes"),
            [
                step(None, "", "references/empty.md"),
                step("old\n", None, "references/gone.md"),
                step(None, b"\x00\xff", "assets/a.png"),
                step(None, "1", "@pinned"),
            ],
        )
    )
    assert rows[:2] == ["--- /dev/null", "+++ b/skills/release-notes/references/empty.md"]
    assert rows[2:6] == [
        "--- a/skills/release-notes/references/gone.md",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-old",
    ]
    assert re.fullmatch(r"skills/release-notes/assets/a.png: nothing → 2 bytes, sha256 [0-9a-f]{64}", rows[6])
    assert rows[7:] == ["@pinned: nothing → 1"]


@given(NASTY, NASTY)
def test_a_diff_hides_nothing_and_no_line_of_a_text_can_pass_for_one_of_ours(before: str, after: str) -> None:
    rows = list(diff(MEMORY, [step(before, after)]))
    assert [row for row in rows if visible(row) != row or "\n" in row] == []
    assert rows[:2] == ["--- a/MEMORY.md", "+++ b/MEMORY.md"]
    body = [row for row in rows[2:] if row != "\\ No newline at end of file"]
    assert {row[0] for row in body} <= set("+- @")
    assert all(re.fullmatch(r"@@ -\d+(,\d+)? \+\d+(,\d+)? @@", row) for row in body if row[0] == "@")
    for sign, new, old in (("+", after, before), ("-", before, after)):
        owed = Counter(map(visible, new.split("\n"))) - Counter(map(visible, old.split("\n")))
        assert owed - Counter(row[1:] for row in body if row[0] == sign) - Counter([""]) == Counter()


@given(NASTY, NASTY, st.integers(60, 200))
def test_a_list_begins_with_the_words_and_fits_the_screen(text: str, path: str, width: int) -> None:
    change = made(step("", f"- {text}\n"), fate="undone by 44", target=project(f"/tmp/{path}"))
    head, *rows = table([change], width).split("\n")
    assert head.split() == ["what", "id", "when", "by"]
    assert 1 <= len(rows) <= 3
    assert [row for row in (head, *rows) if len(row) > width or visible(row) != row] == []
    assert rows[0].endswith(f"  42  {NOON:%Y-%m-%d}  review")
    assert len(line(change, width)) <= width
    assert line(change, width).endswith(f" · change 42, {NOON:%Y-%m-%d}, by review")
    assert "\n" not in line(change, width) + called(change.entry.change.target)


def test_a_long_lesson_is_whole_on_a_narrow_screen_and_on_one_line_in_a_pipe() -> None:
    text = "Release notes have one line per change, begin with a verb and name the issue at the end."
    change = made(step("", f"- {text}\n"), target=USER, confirmed=True)
    assert table([change], 80).split("\n") == [
        f"{'what':56}  id  when        by",
        f"{'you: ' + chr(34) + 'Release notes have one line per change, begin with':56}"
        f"  42  {NOON:%Y-%m-%d}  review",
        '  a verb and name the issue at the end."',
    ]
    assert table([change]).split("\n")[1] == f'you: "{text}"  42  {NOON:%Y-%m-%d}  review'


@pytest.mark.parametrize(
    ("steps", "lines", "words"),
    [
        ([step("- a\n", "- a\n- new one\n")], "+1 −0", '"new one"'),
        ([step("- a\n- old one\n", "- a\n")], "+0 −1", 'forgot "old one"'),
        ([step("- a\n", "- b\n")], "+1 −1", '"b" instead of "a"'),
        ([step("- a\n", "- b\n- c\n")], "+2 −1", '"b"; "c"; forgot "a"'),
        ([step("My notes\n", "My other notes\n")], "+1 −1", '"My other notes"'),
    ],
)
def test_a_line_says_what_came_and_went_in_its_own_words(steps: list[Step], lines: str, words: str) -> None:
    change = made(*steps, reason="because")
    assert (stat(change.steps), change.words) == (lines, words)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([step(None, "---\nname: a\ndescription: Do it.\n---\n\nX.\n", "SKILL.md")], 'skill a — "Do it."'),
        ([step("- x\n", "- y\n", "SKILL.md")], 'skill a — "y"'),
        ([step(None, "# Layout\n", "references/l.md")], 'skill a (references/l.md) — "Layout"'),
        ([step(None, b"\x00", "assets/a.png")], 'skill a (assets/a.png) — "because"'),
        ([step(None, "1", "@pinned")], 'skill a — "because"'),
    ],
)
def test_a_change_of_a_skill_says_what_is_new_in_it(steps: list[Step], words: str) -> None:
    assert made(*steps, target=skill("a"), reason="because").words == words


def test_what_waits_and_what_nobody_confirmed_is_marked() -> None:
    new = step("", "- new\n")
    waits = made(new, fate="waits")
    assert '"new" (waits) ·' in line(waits)
    assert '"new" (unconfirmed) ·' in line(made(new))
    assert '"new" (undone by 44) ·' in line(made(new, fate="undone by 44"))
    assert "(undone by 44, and back again) (unconfirmed) ·" in line(
        made(new, fate="undone by 44, and back again")
    )
    assert '"new" (confirmed by 44) ·' in line(made(new, fate="confirmed by 44"))
    assert "(" not in line(made(new, confirmed=True))
    first, _, cause = heading(waits)
    assert first == "Change 42: memory, add, waits"
    assert cause == "waits because: it rests on foreign text"


def test_colours_follow_the_diff_and_not_what_its_lines_look_like() -> None:
    rows = list(diff(MEMORY, [step("-- a/MEMORY.md\n", "++ b/MEMORY.md\n")], Paint(colour=True)))
    assert rows[0] == "\x1b[1m--- a/MEMORY.md\x1b[0m"
    assert rows[3:] == ["\x1b[31m--- a/MEMORY.md\x1b[0m", "\x1b[32m+++ b/MEMORY.md\x1b[0m"]
