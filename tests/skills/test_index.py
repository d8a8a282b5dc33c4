"""The skills in the prompt: within the budget, by rank, printed by name, and nothing in it can be forged."""

from hypothesis import given
from hypothesis import strategies as st

from hone.core.skill import ListedSkill
from hone.core.value import replace
from hone.core.visible import visible
from hone.knowledge.skills import bundled
from hone.prompt.compose import BUDGET, WIDTH, index
from tests.skills.routing.library import library

names = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
skills = st.lists(
    st.builds(ListedSkill, names, st.text(max_size=400), st.just("")), unique_by=lambda each: each.name
)


def rows(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("- ")]


def test_nothing_is_printed_for_no_skills_or_no_room() -> None:
    assert index([], 0) == ""
    assert index(bundled.listed(), 5, budget=10) == ""


@given(skills, st.integers(0, 6_000), st.integers(0, 3_000))
def test_the_budget_holds_and_no_description_can_be_anything_else(
    ranked: list[ListedSkill], hidden: int, budget: int
) -> None:
    total = len(ranked) + hidden
    text = index(ranked, total, budget)
    assert len(text.encode()) <= budget
    assert visible(text) == text
    printed = [row[2:].partition(":")[0] for row in rows(text)]
    assert printed == sorted(each.name for each in ranked[: len(printed)])
    assert not printed or ("There are more." in text) is (total > len(printed))
    assert len(text.split("\n")) == (len(printed) + 6 if printed else 1)


def test_a_description_is_cut_at_a_word() -> None:
    long = replace(bundled.listed()[0], description="word " * 60)
    (row,) = rows(index([long], 1))
    assert row.endswith("word…")
    assert len(row.partition(": ")[2]) <= WIDTH


def test_five_thousand_skills_stay_within_eight_kilobytes() -> None:
    ranked = [ListedSkill(skill.name, skill.text.split("\n")[2][13:], "") for skill in library()]
    text = index(ranked, len(ranked))
    assert BUDGET - 300 < len(text.encode()) <= BUDGET
    assert index(ranked[:100], len(ranked)) == text
