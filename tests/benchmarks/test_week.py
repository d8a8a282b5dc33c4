"""L6: the price of provenance on disk. A week of ordinary work goes on as before."""

from pathlib import Path

from benchmarks.working_week import compared, live, told
from tests.conftest import Figures, Tier


async def test_a_working_week_makes_hardly_any_stated_lesson_wait(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    week = await live(home, tmp_path, tier.size(short=1, full=5))
    for line in told(week):
        figures(line)
    assert week.waiting <= 0.1 * len(week.conversations)
    inward = {each.kind for each in week.conversations if each.foreign and not each.outward}
    assert inward == {"goes on with that code"}
    assert all(each.foreign for each in week.conversations if each.outward)
    assert all(count <= 2 for count in week.questions)


def test_the_comparison_of_a_folder_finds_what_changed_in_it(tmp_path: Path) -> None:
    watched, compared_in = compared(tmp_path / "files", 1_000)
    assert watched.startswith("1,000 files: watched in ")
    assert compared_in.startswith("1,000 files: compared in ")
