"""L6: the price of provenance on disk. A week of ordinary work goes on as before."""

from pathlib import Path

import pytest

from benchmarks.working_week import Week, compared, live, told
from tests.conftest import Figures

EXPECTED = {"goes on with that code"}
"""What was written from a page and nobody has committed yet."""


def check(week: Week, figures: Figures) -> None:
    for line in told(week):
        figures(line)
    inward = [each for each in week.conversations if not each.outward]
    assert {each.kind for each in inward if each.foreign} == EXPECTED
    assert not any(each.waits for each in inward if not each.foreign)
    assert all(each.foreign for each in week.conversations if each.outward)
    assert all(count <= 2 for count in week.questions)


async def test_a_working_day_is_local_but_for_what_came_from_elsewhere(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    check(await live(home, tmp_path, days=1), figures)


@pytest.mark.long
async def test_in_a_working_week_hardly_any_stated_lesson_waits(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    week = await live(home, tmp_path)
    check(week, figures)
    assert week.waiting <= 0.1 * len(week.conversations)


def test_the_comparison_of_a_folder_finds_what_changed_in_it(tmp_path: Path) -> None:
    watched, compared_in = compared(tmp_path / "files", 1_000)
    assert watched.startswith("1,000 files: watched in ")
    assert compared_in.startswith("1,000 files: compared in ")
