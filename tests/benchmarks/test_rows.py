"""The rows about learning, a little of each without the peer: what they count is what happened."""

from pathlib import Path

import pytest

from benchmarks.bench import Bench
from benchmarks.exits import exits
from benchmarks.figures import Row
from benchmarks.journal import journal
from benchmarks.month import counted, month, prompt
from benchmarks.share import known, share
from benchmarks.shelf import shelf
from benchmarks.store import any_of, slow, store
from benchmarks.table import table

TOOLS = [{"type": "function", "function": {"name": "probe"}}]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, lambda _, __: None, runs=1, turns=2, calls=3, quick=True)


def said(*texts: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text} for text in texts], "tools": TOOLS}


def test_what_comes_before_a_difference_is_what_a_provider_has_read_before() -> None:
    first, second, other = said("aaaa" * 100), said("aaaa" * 100, "bbbb" * 100), said("cccc" * 100)
    month = counted([first, second, other, first], 7, "bbbb")
    sizes = [len(prompt(each)) for each in (first, second, other)]
    tools = len(prompt({"messages": [], "tools": TOOLS}))
    assert month.fresh == pytest.approx((sizes[0] + (sizes[1] - sizes[0]) + (sizes[2] - tools)) / 4, abs=20)
    assert month.cached == pytest.approx((sizes[0] + tools + sizes[0]) / 4, abs=20)
    assert (month.output, month.reviews) == (7, 1)


def test_marks_for_a_cache_are_no_difference() -> None:
    block = {"type": "text", "text": "hi"}
    marked = {**block, "cache_control": {"type": "ephemeral"}}
    one, other = ({"messages": [{"role": "user", "content": [each]}]} for each in (block, marked))
    assert prompt(one) == prompt(other)


def test_the_share_of_a_review_falls_with_the_first_byte_that_differs() -> None:
    talk, question = "x" * 1000, "Now look back over this conversation."
    assert known([said(talk), said(talk, question)], "hone") == 1.0
    assert known([said("y" + talk), said(talk, question)], "hone") < 0.2


def test_a_search_is_judged_by_its_slowest_twentieth() -> None:
    took = {"rare": {"wall": [float(each) for each in range(100)], "cpu": [1.0] * 100}}
    assert slow("x", {"hone": [took], "peer": []}, ["rare"], lead=5).hone == (95.0,)


def test_the_peer_is_asked_for_any_of_the_words_that_matter() -> None:
    asked = "what was it that you said about the parser and the brackets when we talked?"
    assert "parser OR brackets" in any_of(asked)
    assert "what" not in any_of(asked)


def test_a_ratio_is_above_its_aim_only_beyond_doubt() -> None:
    perhaps = Row("x", "ratio", (1.07,), aim=1.05, bounds={"hone": (1.03, 1.11)})
    surely = Row("x", "ratio", (1.17,), aim=1.05, bounds={"hone": (1.09, 1.24)})
    assert (perhaps.met, surely.met) == (True, False)
    assert "1.07 (1.03–1.11)" in table([perhaps])


def test_why_the_peer_has_no_figure_stands_in_its_place() -> None:
    rows = [Row("x", "%", (100.0,), absent="sends none"), Row("y", "ms", (1.0,), peer=(2.0,))]
    assert "| sends none | – |" in table(rows)


def test_the_review_is_read_from_the_cache_and_none_is_lost(bench: Bench) -> None:
    assert all(row.hone[0] >= 99.0 for row in share(bench))
    assert [row.hone for row in exits(bench)] == [(0.0,), (0.0,)]


def test_the_journal_keeps_what_it_acknowledged(bench: Bench) -> None:
    rows = list(journal(bench))
    assert [row.hone for row in rows if row.unit == "lost"] == [(0.0,), (0.0,)]
    assert all(row.hone[0] > 0 for row in rows if row.unit == "writes/s")


def test_what_is_brought_in_is_found(bench: Bench) -> None:
    rows = {row.name: row for row in store(bench)}
    assert min(value for row in rows.values() for value in row.hone) > 0
    assert len(rows) == 10


def test_the_skills_in_the_prompt_keep_within_their_budget(bench: Bench) -> None:
    assert all(row.met for row in shelf(bench) if row.unit == "bytes")


def test_a_month_with_reviews_costs_more_and_is_mostly_read_from_the_cache(bench: Bench) -> None:
    rows = {row.name.partition("turns")[2]: row.hone[0] for row in month(bench)}
    assert rows[": reviews"] == 1
    assert rows[", reviews on: input from the cache"] > 5 * rows[", reviews on: input not cached"]
    assert rows[": cost with reviews / without, openai/gpt-5.4"] > 1
