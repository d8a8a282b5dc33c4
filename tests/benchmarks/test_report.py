"""The benchmark's own arithmetic: figures, table, document and picture say what was measured."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import Row, Unit, figure, spread
from benchmarks.plot import LABELS, WIDTH, picture
from benchmarks.table import BEGIN, END, placed, processor, table

amounts = st.floats(0.01, 1e6)
samples = st.lists(amounts, min_size=1, max_size=9).map(tuple)
rows = st.builds(
    Row,
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20),
    st.sampled_from(["ms", "bytes", "turns/s"]),
    samples,
    samples | st.just(()),
    amounts,
)
SVG = "{http://www.w3.org/2000/svg}"


@given(samples)
def test_a_spread_lies_within_its_samples_and_in_order(found: tuple[float, ...]) -> None:
    middle_half = spread(found)
    assert min(found) <= middle_half.low <= middle_half.middle <= middle_half.high <= max(found)


def test_a_spread_is_the_median_and_the_quartiles() -> None:
    found = spread((9.0, 1.0, 3.0, 7.0, 5.0))
    assert (found.low, found.middle, found.high) == (3.0, 5.0, 7.0)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.254, "0.25"), (9.5, "9.50"), (22.46, "22.5"), (3105.0, "3,105")]
)
def test_a_figure_has_the_digits_that_mean_something(value: float, shown: str) -> None:
    assert figure(value) == shown


def test_less_time_and_more_turns_are_better() -> None:
    cases: list[tuple[Unit, float, float]] = [("ms", 2, 4), ("bytes", 2, 4), ("turns/s", 4, 2)]
    for unit, better, worse in cases:
        assert Row("x", unit, (better,), (), 3).met, unit
        assert not Row("x", unit, (worse,), (), 3).met, unit


def test_the_table_shows_medians_with_their_spread_beside_the_floor_and_the_aim() -> None:
    measured = [
        Row("start", "ms", (50.0, 52.0, 54.0), (25.0, 26.0, 27.0), 100, (48.0, 23.0), (0.0, 0.0)),
        Row("size", "bytes", (17000.0,), (), 16000),
    ]
    assert table(measured).splitlines()[2:] == [
        "| start | 52.0 (51.0–53.0) | 26.0 (25.5–26.5) | 2.00 | ≤ 100 ms | yes |",
        "| size | 17,000 | – | – | ≤ 16,000 bytes | **no** |",
    ]
    assert processor(measured).splitlines()[2:] == ["| start | 48.0 | 23.0 | – | – |"]


@given(st.text(), st.text(), st.text(), st.text())
def test_only_what_stands_between_the_marks_changes(before: str, old: str, new: str, after: str) -> None:
    written = placed(f"{before}{BEGIN}{old}{END}{after}", new)
    assert written == f"{before}{BEGIN}\n\n{new}\n\n{END}{after}"
    assert placed(written, new) == written


@pytest.mark.parametrize("document", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_a_document_without_its_marks_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match="lacks the marks"):
        placed(document, "figures")


@given(st.lists(rows, min_size=1, max_size=5))
def test_the_picture_can_be_read_out_and_every_bar_fits(measured: list[Row]) -> None:
    drawn = ElementTree.fromstring(picture(measured))
    told = drawn.findtext(f"{SVG}desc") or ""
    assert drawn.findtext(f"{SVG}title")
    assert all(row.name.replace("`", "") in told for row in measured)
    bars = [bar for bar in drawn.iter(f"{SVG}rect") if float(bar.get("x", 0)) == LABELS]
    assert len(bars) == sum(1 + bool(row.floor) for row in measured)
    assert all(float(bar.get("width", 0)) <= WIDTH - LABELS for bar in bars)


def test_a_bar_twice_as_long_stands_for_twice_as_much() -> None:
    drawn = ElementTree.fromstring(picture([Row("x", "ms", (80.0,), (40.0,), 100)]))
    hone, floor = (bar for bar in drawn.iter(f"{SVG}rect") if float(bar.get("x", 0)) == LABELS)
    assert float(hone.get("width", 0)) == pytest.approx(2 * float(floor.get("width", 0)), abs=0.2)
