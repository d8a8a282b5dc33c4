"""Ranking of what a search has found, and skills that are much like a new one."""

import pytest

from hone.core.skill import ListedSkill, SkillSummary, SkillWords
from hone.knowledge.skills.similar import Candidate, rank, similar, words


def candidate(name: str, description: str, body: str = "", score: float = 0.0) -> Candidate:
    return ListedSkill(name, description, ""), SkillWords.of(SkillSummary(name, description, body)), score


NOTES = candidate("release-notes", "Write release notes from merged changes.", "Update the changelog.")
NOTES_FOR_APPS = candidate("release-notes-for-apps", "Write release notes for apps.", "Update the changelog.")
ROLLBACK = candidate("rollback", "Return to the last good build.")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("the of", ["the", "of"]),
        ("What's in the changelog?", ["what", "changelog"]),
        (
            "fix user_name in getHTTPResponse",
            ["fix", "user", "name", "gethttpresponse", "get", "http", "response"],
        ),
        ("our co-op's e-mail", ["co", "op", "coop", "mail", "email"]),
        ("Notes notes NOTES", ["notes"]),
        ("发布说明", ["发布说明"]),
    ],
)
def test_a_query_becomes_words(query: str, expected: list[str]) -> None:
    found = words(query)
    assert sorted(found) == sorted(expected)


def test_nothing_is_ranked_from_nothing() -> None:
    assert rank("anything", []) == []


def test_a_skill_that_speaks_of_the_task_comes_first_whatever_the_order_given() -> None:
    for given in ([NOTES, NOTES_FOR_APPS, ROLLBACK], [ROLLBACK, NOTES_FOR_APPS, NOTES]):
        assert [each.skill.name for each in rank("get the changelog ready", given)][:2] == [
            "release-notes",
            "release-notes-for-apps",
        ]


def test_the_wider_skill_comes_first_unless_the_task_names_the_narrower_case() -> None:
    given = [NOTES_FOR_APPS, NOTES, ROLLBACK]
    assert rank("write the release notes", given)[0].skill.name == "release-notes"
    assert rank("write the release notes of our app", given)[0].skill.name == "release-notes-for-apps"


def test_a_skill_without_a_score_of_the_store_can_still_win() -> None:
    """Those that come with Hone are in no store."""
    other = candidate("rollback", "Return to the last good build.", "no changelog", 9.0)
    assert rank("release notes and changelog", [other, NOTES])[0].skill.name == "release-notes"


def test_much_the_same_skill_is_found_before_a_new_one_is_made() -> None:
    given = [ROLLBACK, NOTES, NOTES_FOR_APPS]
    found = similar("releasing-notes", "Write notes for a release from the merged changes.", given)
    assert found[0].name == "release-notes"
    assert ROLLBACK[0] not in found
    assert similar("meal-planning", "Decide what to eat in the week.", given) == []
    assert similar("meal-planning", "Decide what to eat.", given, threshold=0.0) != []
