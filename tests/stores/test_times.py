"""The times that a question speaks of, and the words that only look like one."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import Role
from hone.stores.question import parse
from hone.stores.times import times

_WORDS = "last past 999 a few two day week month years ago in may 31 2024 0000-00-00 9999-12-31 of feb 30"
WORDS = _WORDS.split()
TODAY = date(2026, 11, 16)  # a Monday


@pytest.mark.parametrize(
    "question",
    [
        "what may I say about the boiler?",
        "this may be the reason",
        "the end may be near",
        "why point 2 may fail",
        "the march to the sea",
        "you may march on",
        "what did April say about the boiler?",
        "did we meet with June?",
        "the fall of the wall",
        "room 2023",
        "the second of the two",
        "a week of rain",
        "the last one",
        "jan is a name",
    ],
)
def test_a_word_that_is_also_another_is_no_time(question: str) -> None:
    assert times(question.lower(), TODAY) == ()


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what did I say last May?", "2026-05-01", "2026-05-31"),
        ("the plan of last November", "2025-11-01", "2025-11-30"),
        ("in March 2024", "2024-03-01", "2024-03-31"),
        ("on 3 May 2025", "2025-05-03", "2025-05-03"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("yesterday", "2026-11-15", "2026-11-15"),
        ("the day before yesterday", "2026-11-14", "2026-11-14"),
        ("last night", "2026-11-15", "2026-11-16"),
        ("two weeks ago", "2026-10-29", "2026-11-06"),
        ("3 days ago", "2026-11-12", "2026-11-14"),
        ("a year ago", "2025-05-17", "2026-05-18"),
        ("in the past 3 weeks", "2026-10-26", "2026-11-16"),
        ("last Tuesday", "2026-11-10", "2026-11-10"),
        ("last Monday", "2026-11-09", "2026-11-09"),
        ("last weekend", "2026-11-14", "2026-11-15"),
        ("this morning", "2026-11-16", "2026-11-16"),
    ],
)
def test_a_time_is_understood(question: str, first: str, last: str) -> None:
    assert (date.fromisoformat(first), date.fromisoformat(last)) in times(question.lower(), TODAY)


def test_a_month_without_a_year_is_one_of_the_last_six() -> None:
    for question in ("in March", "early April", "at the end of May", "in June"):
        assert {span[0].year for span in times(question.lower(), TODAY)} == set(range(2021, 2027))


@given(st.lists(st.sampled_from(WORDS)), st.dates())
def test_no_words_and_no_day_bring_it_down(words: list[str], today: date) -> None:
    assert all(first <= last or first > today for first, last in times(" ".join(words), today))


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("what did I say about the boiler?", Role.USER),
        ("what did you suggest for the boiler?", Role.ASSISTANT),
        ("what was your advice?", Role.ASSISTANT),
        ("what did the assistant recommend?", Role.ASSISTANT),
        ("which plumber I promised to call", Role.USER),
        ("what did you say when I asked?", None),
        ("how do plumbers work?", None),
    ],
)
def test_a_speaker_is_understood(question: str, speaker: Role | None) -> None:
    assert parse(question).speaker is speaker
