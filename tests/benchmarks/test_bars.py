"""What a turn costs the processor, as ratios to a floor that is measured in the same run."""

from pathlib import Path

import pytest

from benchmarks import bars
from benchmarks.bars import Bar, measure
from tests.conftest import Figures


def test_no_piece_of_a_turn_takes_much_more_of_the_processor_than_it_did(
    tmp_path: Path, figures: Figures
) -> None:
    found = list(measure(tmp_path))
    figures("; ".join(map(str, found)))
    assert [each.bar.name for each in found if each.ratio > each.bar.most] == []


@pytest.mark.parametrize(("takes", "is_over"), [([3.0, 2.0, 2.5], False), ([9.0] * 9, True)])
def test_what_exceeds_its_bar_is_measured_again_and_the_least_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes: list[float], is_over: bool
) -> None:
    left = iter(takes)
    bar = Bar("work", 4.0, lambda side: next(left) if side == "hone" else 1.0)
    monkeypatch.setattr(bars, "make_bars", lambda *_: (bar,))
    (found,) = measure(tmp_path)
    assert (found.hone, found.ratio > bar.most) == (min(takes), is_over)
    assert list(left) == []
