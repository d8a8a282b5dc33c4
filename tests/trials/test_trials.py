"""The tool for the long tier, and the mutation check: a guard that is disabled is missed by some test."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trials.guards import MUTATIONS, Mutation
from tests.trials.mutate import ROOT, SOURCE, Gone, mutated, try_out
from tests.trials.suites import SUITES
from tests.trials.table import Row, Unmarked, markdown, merged, put, row


def told(test: str, tried: int, got_in: int = 0, **more: Any) -> dict[str, Any]:
    tally = {"tried": tried, "got_in": got_in, "lost": 0, "seed": 7, "note": "texts"}
    return {"test": test, "failed": "", "tallies": [tally], "replay": [], **more}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.guard)
def test_the_text_that_disables_a_guard_is_there_once_and_what_comes_of_it_is_python(
    mutation: Mutation,
) -> None:
    before = (SOURCE / "hone" / mutation.file).read_text("utf-8")
    after = mutated(mutation, before)
    assert after != before
    compile(after, mutation.file, "exec")
    with pytest.raises(Gone, match=r"guards\.py"):
        mutated(mutation, after.replace(mutation.old, ""))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.guard)
def test_with_a_guard_disabled_some_test_fails(mutation: Mutation) -> None:
    assert try_out(mutation).test


@pytest.mark.parametrize("test", [test for suite in SUITES for test in suite.tests])
def test_every_test_of_a_suite_is_there(test: str) -> None:
    path, _, name = test.partition("::")
    if not (ROOT / path).exists():
        pytest.skip(f"{path} is not written yet; the tool says so, too")
    assert f"def {name}" in (ROOT / path).read_text("utf-8")


def test_a_row_adds_up_its_tests_and_says_how_to_try_again_what_failed() -> None:
    fine = row("urls", [told("a", 3), told("b", 4)], 1.25, 7, short=False)
    assert (fine.tried, fine.well, fine.notes) == (7, True, ("3 texts", "4 texts"))
    assert fine.replay == "python -m tests.trials --only urls --seed 7"
    bad = row("urls", [told("a", 3, 1, failed="1 != 0", replay=["pytest a --index 2"])], 1.0, 7, short=False)
    assert (bad.well, bad.replay, bad.failed) == (False, "pytest a --index 2", ("a: 1 != 0",))
    assert not row("urls", [], 1.0, 7, short=False).well, "nothing was tried"


def test_what_a_page_says_of_other_suites_stays(tmp_path: Path) -> None:
    page, figures = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text("Before.\n<!-- suites: begin -->\nold\n<!-- suites: end -->\nAfter.\n")
    first, second = (Row(name, 5, 0, 0, 2.0, 1, False, "again") for name in ("urls", "door"))
    for some in ([first], [second]):
        rows = merged(figures, some, ["door", "urls"])
        put(page, "suites", markdown(rows))
    assert rows == [second, first]
    lines = page.read_text().splitlines()
    assert lines[:2] == ["Before.", "<!-- suites: begin -->"]
    assert lines[4:] == [
        "| door | 5 | 0 | 0 | 2 | 1 | `again` |",
        "| urls | 5 | 0 | 0 | 2 | 1 | `again` |",
        "<!-- suites: end -->",
        "After.",
    ]
    with pytest.raises(Unmarked, match="guards"):
        put(page, "guards", "")


def test_the_tool_runs_a_suite_and_one_case_of_it() -> None:
    command = [sys.executable, "-m", "tests.trials", "--only", "secrets", "--seed", "7", "--index", "3"]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 tried, 0 got in, 0 lost (seed 7) in " in ended.stdout
    assert "| secrets | 1 | 0 | 0 | " in ended.stdout
