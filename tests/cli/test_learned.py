"""E6: one line of what a review saved, and only of that."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hone.cli.changes import learned_lines
from hone.core.clock import ManualClock
from hone.core.events import Learned
from hone.core.ids import SessionId
from hone.core.jobs import Job, JobId
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
    Target,
    project,
    skill,
)
from hone.core.trust import Trust
from hone.files.tree import FileTree
from hone.knowledge.descriptions import CHAT, DescribedChange, summarize
from hone.knowledge.folding import Step
from hone.knowledge.journal import Add
from hone.knowledge.keeper import Keeper
from tests.given import NOON
from tests.reference.ledger import InMemoryLedger

JOB = Job(JobId(1), SessionId("s"), SessionId("s"), 2, frozenset({"memory"}), NOON, "10 turns")


def made(
    id: int, target: Target, kind: str, before: str | None, after: str | None, *, waits: bool = False
) -> DescribedChange:
    path = "SKILL.md" if target.startswith("skill:") else "MEMORY.md"
    standing = ChangeState.PENDING if waits else ChangeState.ACTIVE
    change = Change(target, ChangeKind(kind), (), Author(Actor.REVIEW), standing)
    step = Step(path, *(None if each is None else each.encode() for each in (before, after)))
    return DescribedChange(Entry(ChangeId(id), NOON, change), (step,), "waits" if waits else "")


NOTE = made(42, MEMORY, ChangeKind.ADD, "- a\n", "- a\n- b\n")
PATCH = made(43, skill("release-notes"), "patch", "old", "new")
WAITS = made(44, skill("poison"), "create", None, "text", waits=True)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], ""),
        ([NOTE], "✎ learned: memory +1 (hone undo 42)"),
        ([NOTE, PATCH], "✎ learned: memory +1, skill release-notes patched (hone log: 42, 43)"),
        ([WAITS], "✎ 1 lesson waits (hone pending)"),
        ([NOTE, WAITS, WAITS], "✎ learned: memory +1 (hone undo 42); 2 lessons wait (hone pending)"),
        (
            [NOTE, made(45, MEMORY, "batch", "- a\n- b\n", "- b\n- c\n- d\n")],
            "✎ learned: memory +3 −1 (hone log: 42, 45)",
        ),
        ([made(1, USER, "remove", "- a\n", "")], "✎ learned: user −1 (hone undo 1)"),
        ([made(1, project("/home/me/shop"), "add", None, "- a\n")], "✎ learned: project +1 (hone undo 1)"),
        (
            [made(1, skill("a"), "create", None, "x"), made(2, skill("a"), "writefile", "x", "y")],
            "✎ learned: skill a created and changed (hone log: 1, 2)",
        ),
    ],
)
def test_the_line_counts_what_came_names_what_changed_and_says_how_to_take_it_back(
    changes: Sequence[DescribedChange], expected: str
) -> None:
    assert summarize(changes) == expected


def test_in_a_chat_the_commands_are_those_of_the_chat() -> None:
    assert summarize([NOTE, WAITS], CHAT) == "✎ learned: memory +1 (/undo 42); 1 lesson waits (/pending)"


async def test_how_much_is_told_is_the_owners_choice(tmp_path: Path) -> None:
    keeper = Keeper(InMemoryLedger(), FileTree(tmp_path), ManualClock(), lambda _: None)
    by = Author(Actor.REVIEW, SessionId("r"), evidence=(Evidence(SessionId("s"), 1, Trust.OWNER, "0" * 64),))
    [entry] = await keeper.note([(MEMORY, Add("The \x1b[2Jport is 8080."))], by)
    told, empty = Learned(JOB, (entry,)), Learned(JOB, ())
    keeper.close()
    assert await learned_lines(keeper, told, "off") == await learned_lines(keeper, empty, "off") == []
    assert await learned_lines(keeper, empty, "on") == []
    assert await learned_lines(keeper, empty, "verbose") == ["✎ nothing to save"]
    assert len(await learned_lines(keeper, told, "on")) == 1
    whole = "\n".join(await learned_lines(keeper, told, "verbose"))
    assert "+- The " in whole
    assert "port is 8080." in whole
    assert "\x1b" not in whole
