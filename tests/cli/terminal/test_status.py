"""The line below the prompt: what it says, and what it leaves out where there is little room."""

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hone.cli.terminal.screen import Status, status_line
from hone.core.model import Usage
from hone.core.permissions import Mode

DEAR = [Usage(900, 0, 0, 10, 0.5), Usage(1_731, 813, 0, 28, 0.75)]
LOOK = datetime(2026, 11, 2, 9, 5).astimezone()
STATUS = Status("openai/gpt", str(Path.home() / "work" / "shop"), DEAR, look=LOOK, filled=0.124)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "openai/gpt · ~/work/shop · auto mode · 12% of context · $1.25 · review at 09:05"),
        (76, "openai/gpt · shop · auto mode · 12% of context · $1.25 · review at 09:05"),
        (62, "openai/gpt · ~/work/shop · auto mode · 12% of context · $1.25"),
        (60, "openai/gpt · shop · auto mode · 12% of context · $1.25"),
        (50, "openai/gpt · shop · auto mode · 12% of context"),
        (30, "openai/gpt · shop · auto mode"),
        (20, "openai/gpt · shop"),
        (12, "openai/gpt"),
        (8, "openai/…"),
    ],
)
def test_it_says_as_much_as_there_is_room_for(width: int, line: str) -> None:
    assert status_line(STATUS, width) == line


def test_an_unusual_mode_stays_to_the_last() -> None:
    status = replace(STATUS, mode=Mode.FULL)
    assert [status_line(status, width) for width in (30, 24, 12)] == [
        *("openai/gpt · shop · full mode", "openai/gpt · full mode", "full mode ·…")
    ]


def test_one_call_of_unknown_cost_makes_the_sum_unknown() -> None:
    assert "cost unknown" in status_line(Status("m", "/x", [*DEAR, Usage(10, 0, 0, 1)]), 80)


def test_before_the_first_call_there_are_no_figures() -> None:
    assert status_line(Status("m\x1b", "/x\n"), 80) == "m\\x1b · /x · auto mode"


@given(st.text(), st.text(), st.integers(1, 200))
def test_it_fits_and_steers_nothing(model: str, folder: str, width: int) -> None:
    line = status_line(Status(model, folder, DEAR), width)
    assert len(line) <= width
    assert "\n" not in line
    assert "\x1b" not in line
