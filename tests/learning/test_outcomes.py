"""D6: a use went well if its last calls did not fail and the user corrected nothing."""

from datetime import UTC, datetime

import pytest

from hone.core.ids import SessionId
from hone.core.ledger import Actor, Author, Change, ChangeId, ChangeKind, Entry, Evidence, skill
from hone.core.messages import Message, answer, assistant, user
from hone.core.skill import SkillResult
from hone.core.trust import Trust
from hone.learning.review import result
from hone.models.scripted import call

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = call("one"), call("two")


def patched(name: str, trust: Trust) -> Entry:
    author = Author(Actor.REVIEW, evidence=(Evidence(SessionId("s"), 1, trust, ""),))
    return Entry(ChangeId(1), NOW, Change(skill(name), ChangeKind.PATCH, (), author))


def talk(*failed: bool) -> list[Message]:
    early = [assistant(ONE), answer(ONE, "", failed=True)]
    late = [answer(each, "", failed=bad) for each, bad in zip((ONE, TWO), failed, strict=False)]
    return [
        user("go"),
        *early,
        assistant(ONE, TWO),
        *late,
        assistant("Done."),
        user("thanks"),
        assistant("ok"),
    ]


@pytest.mark.parametrize(
    ("messages", "entries", "expected"),
    [
        (talk(False, False), [], SkillResult.SUCCEEDED),
        (talk(False, True), [], SkillResult.UNKNOWN),
        ([user("hi"), assistant("hello")], [], SkillResult.UNKNOWN),
        (talk(False, False), [patched("craft", Trust.OWNER)], SkillResult.CORRECTED),
        (talk(False, False), [patched("craft", Trust.FOREIGN)], SkillResult.SUCCEEDED),
        (talk(False, False), [patched("other", Trust.OWNER)], SkillResult.SUCCEEDED),
    ],
)
def test_each_case(messages: list[Message], entries: list[Entry], expected: SkillResult) -> None:
    assert result("craft", messages, entries) is expected
