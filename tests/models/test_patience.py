"""A provider that asks for more patience than a turn has is quoted with the time to try again."""

import pytest

from hone.core.clock import ManualClock
from hone.core.errors import Overloaded
from hone.models.wrappers import PATIENT, say_when


@pytest.mark.parametrize(
    ("after", "length"),
    [
        (None, ""),
        (2.0, ""),
        (61.0, "1 minute"),
        (900.0, "15 minutes"),
        (10_800.0, "3 hours"),
        (1e12, ""),
        (float("inf"), ""),
    ],
)
def test_a_long_retry_after_is_said_with_its_time(after: float | None, length: str) -> None:
    now = ManualClock().now()
    said = str(say_when(PATIENT, Overloaded("Slow down.", after), now))
    assert said.startswith(f"Slow down. Try again in about {length}, at " if length else "Slow down.")
    assert (f"{now.astimezone():%Y-%m-%d}" in said) is bool(length)
