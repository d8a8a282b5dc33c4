"""What words after -r can mean, and that another folder's conversation is never taken without being named."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.resuming import describe_age, find_candidates
from hone.core.ids import SessionId
from hone.core.ports import Header, SessionSummary

NOW = datetime(2026, 11, 16, tzinfo=UTC)
words = st.lists(st.sampled_from(["fix", "the", "parser", "lexer"]), max_size=3).map(" ".join)


@st.composite
def summaries(draw: st.DrawFn) -> list[SessionSummary]:
    ids = draw(st.lists(st.text("0123abc", min_size=1, max_size=4), unique=True, max_size=6))
    return [
        SessionSummary(
            Header(SessionId(id), NOW, draw(words), folder=draw(st.sampled_from(["/here", "/there"]))),
            *("openai/m", 2, NOW, draw(words)),
        )
        for id in ids
    ]


@given(summaries(), words | st.text("0123abc", max_size=4))
def test_only_a_name_leads_to_another_folder(every: list[SessionSummary], said: str) -> None:
    chosen = find_candidates(every, said, "/here")
    for each in chosen.found:
        about = f"{each.header.title} {each.opening}".split()
        assert each.header.id.startswith(said) or all(word in about for word in said.split())
    if chosen.sure:
        [meant] = chosen.found
        others = [each for each in every if each.header.id.startswith(said) and each is not meant]
        if said and meant.header.id.startswith(said):
            assert meant.header.id == said or not others
        else:
            assert meant.header.folder == "/here"
    if not said:
        assert (len(chosen.found), chosen.sure) == (len(every), False)
        folders = [each.header.folder for each in chosen.found]
        assert folders == sorted(folders)


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(hours=5, minutes=59), "5 hours ago"),
        (timedelta(days=400), "400 days ago"),
    ],
)
def test_an_age_is_said_in_its_largest_unit(age: timedelta, said: str) -> None:
    assert describe_age(age) == said
