"""What `hone sessions search` shows: titles, days, speakers, and the words that were looked for."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.listing import lines
from hone.cli.render import Paint
from hone.core.ids import SessionId
from hone.core.messages import Role
from hone.core.ports import Header
from hone.core.recall import Hit, Passage, SearchResult, pieces
from hone.core.trust import Trust
from hone.core.turn import Origin

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)


def passage(number: int, text: str, role: Role = Role.USER, trust: Trust = Trust.OWNER) -> Passage:
    return Passage(number, role, trust, NOW, text)


def shown(hit: Hit, *terms: str, colour: bool = False) -> str:
    return "\n".join(lines(SearchResult((hit,), terms), Paint(colour)))


@given(st.text(), st.lists(st.text()))
def test_pieces_make_up_the_whole_text(text: str, terms: list[str]) -> None:
    assert "".join(piece for piece, _ in pieces(text, terms)) == text


@pytest.mark.parametrize(
    ("terms", "marked"),
    [
        (["visit"], ["visited", "visiting"]),
        (["cafe"], ["Café"]),
        (["deploy*"], ["Deployment"]),
        (["东京"], ["东京"]),
        (["train"], ["train"]),
        (["rain"], []),
        ([], []),
    ],
)
def test_a_word_is_marked_in_all_of_its_forms_and_no_other_is(terms: list[str], marked: list[str]) -> None:
    text = "We visited a Café by train while visiting 在东京吃. Deployment!"
    assert [piece for piece, fits in pieces(text, terms) if fits] == marked


def test_a_hit_is_called_by_its_session_and_the_words_stand_out_in_color_only() -> None:
    hit = Hit(
        Header(SessionId("a"), NOW), SessionId("a"), passage(1, "The boiler leaks."), opening="House matters"
    )
    assert shown(hit, "boilers").splitlines()[0] == "Session a  House matters"
    assert "begun 2026-03-05" in shown(hit, "boilers")
    assert "The boiler leaks." in shown(hit, "boilers")
    assert "The \x1b[1mboiler\x1b[0m leaks." in shown(hit, "boilers", colour=True)


def test_what_hone_asks_itself_is_never_shown_as_yours() -> None:
    review = Header(SessionId("r"), NOW, origin=Origin.REVIEW, parent=SessionId("a"), shared=2)
    asked = Hit(review, SessionId("a"), passage(3, "What is worth keeping?"), passage(2, "Mine."))
    told = shown(asked)
    assert "3 hone, to itself" in told
    assert "2 you: Mine." in told
    go_on = Hit(
        Header(SessionId("a"), NOW), SessionId("a"), passage(3, "Continue from there.", trust=Trust.AGENT)
    )
    assert "3 hone, to itself" in shown(go_on)
