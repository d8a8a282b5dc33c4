"""E6: what a review saved, in its own words, and only that."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.changes import failed_line, learned_lines
from hone.core.clock import ManualClock
from hone.core.events import Learned
from hone.core.ids import SessionId
from hone.core.jobs import Job, JobId, State
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeState,
    Entry,
    Evidence,
    LessonText,
    Target,
    project,
    skill,
)
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import visible
from hone.files.tree import FileTree
from hone.knowledge.folding import Step
from hone.knowledge.journal import Add
from hone.knowledge.keeper import Keeper
from hone.knowledge.wording import CHAT, find_lessons, read_lessons, share_undo, tell
from tests.given import NOON
from tests.reference.ledger import InMemoryLedger

JOB = Job(JobId(1), SessionId("s"), SessionId("s"), 2, frozenset({"memory"}), NOON, "10 turns")


def made(
    id: int,
    target: Target,
    kind: str,
    before: str | None,
    after: str | None,
    *,
    waits: bool = False,
    path: str = "",
    group: str = "",
) -> tuple[LessonText, ...]:
    path = path or ("SKILL.md" if target.startswith("skill:") else "MEMORY.md")
    standing = ChangeState.PENDING if waits else ChangeState.ACTIVE
    change = Change(target, ChangeKind(kind), (), Author(Actor.REVIEW), standing, group=group)
    step = Step(path, *(None if each is None else each.encode() for each in (before, after)))
    return read_lessons(Entry(ChangeId(id), NOON, change), (step,))


RULE = "Keep release notes to one line per change."
NOTE = made(42, USER, "add", "- Lives in Bern.\n", f"- Lives in Bern.\n- {RULE}\n")
SKILL = made(
    43,
    skill("release-notes"),
    "create",
    None,
    "---\nname: release-notes\ndescription: Write them.\n---\n\nX.",
)
PATCH = made(44, skill("release-notes"), "patch", "Steps\n- a\n", f"Steps\n- a\n- {RULE}\n")
WAITS = made(45, skill("poison"), "create", None, "text", waits=True)


@pytest.mark.parametrize(
    ("lessons", "expected"),
    [
        ((), []),
        (NOTE, [f'✎ learned about you: "{RULE}" · hone undo 42']),
        (
            made(1, MEMORY, "add", None, "- The port is 8080.\n"),
            ['✎ learned: "The port is 8080." · hone undo 1'],
        ),
        (
            made(1, project("/home/me/shop"), "add", None, "- Test with nox.\n"),
            ['✎ learned about shop: "Test with nox." · hone undo 1'],
        ),
        (
            made(1, USER, "replace", "- Answer in German.\n", "- Answer in English.\n"),
            ['✎ learned about you: "Answer in English." instead of "Answer in German." · hone undo 1'],
        ),
        (made(1, USER, "remove", "- Lives in Bern.\n", ""), ['✎ forgot: "Lives in Bern." · hone undo 1']),
        (
            SKILL,
            ['✎ learned how to handle release notes: skill release-notes — "Write them." · hone undo 43'],
        ),
        (PATCH, [f'✎ patched skill release-notes — "{RULE}" · hone undo 44']),
        (
            made(1, skill("a"), "writefile", None, "# Layout\n", path="references/layout.md"),
            ['✎ updated skill a (references/layout.md) — "Layout" · hone undo 1'],
        ),
        (WAITS, ["✎ 1 lesson waits (hone pending)"]),
        (
            (*NOTE, *WAITS, *made(46, USER, "add", None, "- x\n", waits=True)),
            [f'✎ learned about you: "{RULE}" · hone undo 42', "✎ 2 lessons wait (hone pending)"],
        ),
        (
            made(7, MEMORY, "batch", None, "".join(f"- Fact {each}.\n" for each in "abcde")),
            [*(f'✎ learned: "Fact {each}." · hone undo 7' for each in "abc"), "  and 2 more · hone log"],
        ),
    ],
)
def test_the_line_says_the_lesson_in_its_own_words_and_how_to_take_it_back(
    lessons: Sequence[LessonText], expected: list[str]
) -> None:
    assert tell(lessons) == expected


def test_in_a_chat_the_commands_are_those_of_the_chat() -> None:
    assert tell((*NOTE, *WAITS), CHAT) == [
        f'✎ learned about you: "{RULE}" · /undo 42',
        "✎ 1 lesson waits (/pending)",
    ]


def test_changes_that_are_undone_together_name_the_same_way_back() -> None:
    first = made(3, skill("a"), "merge", "x", "y")
    second = made(4, skill("b"), "archive", "x", "z")
    shared = share_undo((*first, *second, *NOTE), {ChangeId(3): "g", ChangeId(4): "g"})
    assert [line.rpartition(" · ")[2] for line in tell(shared, who="curator")] == [
        *("hone undo 3", "hone undo 3"),
        "hone undo 42",
    ]


@given(st.text(max_size=300), st.text(max_size=300), st.integers(60, 200))
def test_a_line_fits_the_screen_whatever_the_lesson_says_and_keeps_the_way_back(
    text: str, old: str, width: int
) -> None:
    [line] = tell([replace(NOTE[0], text=text or "a", replaced=old)], CHAT, width=width)
    assert len(line) <= width
    assert visible(line) == line
    assert line.endswith(" · /undo 42")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            replace(JOB, tries=1, error="The provider is overloaded."),
            "✗ A review failed: The provider is overloaded. It stays queued and is tried again later."
            " · /reviews",
        ),
        (
            replace(JOB, tries=3, state=State.FAILED, error="The key is wrong."),
            "✗ A review failed: The key is wrong. Hone gave up after 3 tries; "
            "try again with: hone reviews retry 1 · /reviews",
        ),
        (
            replace(JOB, error="The daily budget is spent."),
            "✗ A review has to wait: The daily budget is spent. It stays queued and is tried again later."
            " · /reviews",
        ),
    ],
)
def test_a_failed_review_says_why_and_what_happens_next(job: Job, expected: str) -> None:
    assert failed_line(job, CHAT) == expected


async def test_how_much_is_told_is_the_owners_choice(tmp_path: Path) -> None:
    keeper = Keeper(InMemoryLedger(), FileTree(tmp_path), ManualClock(), lambda _: None)
    by = Author(Actor.REVIEW, SessionId("r"), evidence=(Evidence(SessionId("s"), 1, Trust.OWNER, "0" * 64),))
    [entry] = await keeper.note([(MEMORY, Add("The \x1b[2Jport is 8080."))], by)
    told, empty = Learned(JOB, (entry,), await find_lessons(keeper.ledger, [entry])), Learned(JOB, ())
    keeper.close()
    assert await learned_lines(keeper, told, "off") == await learned_lines(keeper, empty, "off") == []
    assert await learned_lines(keeper, empty, "on") == []
    assert await learned_lines(keeper, empty, "verbose") == ["✎ nothing to save"]
    assert await learned_lines(keeper, told, "on") == ["✎ 1 lesson waits (hone pending)"]
    whole = "\n".join(await learned_lines(keeper, told, "verbose"))
    assert "+- The " in whole
    assert "port is 8080." in whole
    assert "\x1b" not in whole
