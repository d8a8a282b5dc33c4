"""The tiers themselves: a case of a count can be tried alone, and a failure says how."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Tier

ROOT = Path(__file__).parents[1]
COUNTS = """
def test_it_stops_at_a_case(tier):
    for draw in tier.draws(short=5, full=50):
        assert draw.index != 31, f"case {draw.random.random()}"

def test_it_counts_to_the_end(tier, figures):
    bad = [draw.index for draw in tier.draws(short=5, full=50) if draw.index in (7, 9)]
    figures.tally(50, got_in=2, note="texts", at=bad)
    assert not bad
"""


def drawn(item: pytest.Item, *, long: bool = False, chosen: tuple[int, ...] = ()) -> dict[int, int]:
    tier = Tier(item, long=long, seed=3, chosen=chosen)
    return {draw.index: draw.random.randrange(1_000_000) for draw in tier.draws(short=5, full=50)}


def test_a_case_is_the_same_in_the_whole_count_in_the_sample_and_alone(
    request: pytest.FixtureRequest,
) -> None:
    whole, some = drawn(request.node, long=True), drawn(request.node)
    assert list(whole) == list(range(50))
    assert len(some) == 5
    assert some.items() <= whole.items()
    assert drawn(request.node, chosen=(17, 99)) == {17: whole[17]}
    assert len(set(whole.values())) > 45


def test_a_failure_says_how_the_same_case_is_tried_again(tmp_path: Path) -> None:
    def pytest_(*words: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", *words]
        environment = {"PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        return ended.stdout + ended.stderr

    (tmp_path / "test_counts.py").write_text(COUNTS)
    first = pytest_("--long", "--seed", "5", "--tallies", "tallies")
    stopped, counted = "test_it_stops_at_a_case", "test_it_counts_to_the_end"
    again = {
        counted: f"pytest --long test_counts.py::{counted} --seed 5 --index 7 --index 9",
        stopped: f"pytest --long test_counts.py::{stopped} --seed 5 --index 31",
    }
    told = [json.loads(line) for line in (tmp_path / "tallies").read_text().splitlines()]
    assert {each["test"].partition("::")[2]: each["replay"] for each in told} == {
        name: [command] for name, command in again.items()
    }
    tally = {"tried": 50, "got_in": 2, "lost": 0, "seed": 5, "note": "texts"}
    assert [each["tallies"] for each in told] == [[tally], []]
    (case,) = {line for line in first.splitlines() if line.lstrip("E ").startswith("AssertionError: case")}
    second = pytest_("--long", "--seed", "5", "--index", "31", "--index", "7")
    assert case in second.splitlines()
    assert f"replay: {stopped}: {again[stopped]}" in second.splitlines()
    assert "50 tried, 2 got in, 0 lost (seed 5): texts" in second
