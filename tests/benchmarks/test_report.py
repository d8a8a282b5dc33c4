"""The benchmark's own arithmetic: figures, tables, document and pictures say what was measured."""

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import Row, Unit, figure, spread
from benchmarks.plot import LABELS, SCALE, WIDTH, lead, lines
from benchmarks.table import BEGIN, END, as_json, placed, processor, table

amounts = st.floats(0.01, 1e6)
samples = st.lists(amounts, min_size=1, max_size=9).map(tuple)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
rows = st.builds(
    Row,
    names,
    st.sampled_from(["ms", "bytes", "turns/s"]),
    samples,
    samples | st.just(()),
    st.none() | amounts,
    peer=samples | st.just(()),
    lead=st.none() | st.floats(1, 100),
    point=st.none() | st.tuples(st.just("grown"), st.integers(1, 10_000)),
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
    cases: list[tuple[Unit, float, float]] = [("ms", 2, 4), ("bytes", 2, 4), ("turns/s", 4, 2), ("%", 4, 2)]
    for unit, better, worse in cases:
        assert Row("x", unit, (better,), aim=3).met, unit
        assert not Row("x", unit, (worse,), aim=3).met, unit
        assert Row("x", unit, (better,), peer=(worse,), lead=2).met, unit
        assert not Row("x", unit, (worse,), peer=(better,), lead=1).met, unit


def test_a_row_has_to_reach_both_its_aim_and_its_lead() -> None:
    assert Row("x", "ms", (2.0,), aim=3, peer=(20.0,), lead=10).met
    assert Row("x", "ms", (2.0,), aim=3, peer=(19.0,), lead=10).met is False
    assert Row("x", "ms", (4.0,), aim=3, peer=(90.0,), lead=10).met is False


def test_a_lead_over_a_peer_that_is_not_there_is_neither_met_nor_missed() -> None:
    assert Row("x", "ms", (2.0,), lead=10).met is None


def test_how_far_ahead_is_told_of_pairs_in_the_order_they_were_measured_in() -> None:
    """A machine that slows down hits both of a pair; the peer is measured in fewer rounds."""
    ahead = Row("x", "ms", (1.0, 2.0, 4.0, 9.0), peer=(10.0, 20.0, 44.0)).ahead
    assert ahead is not None
    assert (ahead.low, ahead.middle, ahead.high) == (10.0, 10.0, 10.5)


MEASURED = [
    Row(
        "start",
        "ms",
        (50.0, 52.0, 54.0),
        (25.0, 26.0, 27.0),
        100,
        {"hone": 48.0, "floor": 23.0, "peer": 300.0},
        {"peer": 0.25},
        (500.0, 260.0, 540.0),
        lead=5,
    ),
    Row("size", "bytes", (17000.0,), aim=16000),
    Row("turns", "turns/s", (30.0,), peer=(20.0,), lead=2),
]


def test_the_table_shows_medians_with_their_spread_beside_floor_and_peer_and_what_is_wanted() -> None:
    assert table(MEASURED).splitlines()[2:] == [
        "| start | 52.0 (51.0–53.0) | 26.0 (25.5–26.5) | 2.00 | 500 (380–520) | 10.0 (7.50–10.0)× | "
        "≤ 100 ms, ≥ 5× | yes |",
        "| size | 17,000 | – | – | – | – | ≤ 16,000 bytes | **no** |",
        "| turns | 30.0 | – | – | 20.0 | 1.50× | ≥ 2× | **no** |",
    ]
    assert processor(MEASURED).splitlines()[2:] == ["| start | 48.0 | 23.0 | 300 | – | – | 25% |"]


def test_without_a_peer_nothing_of_it_is_in_the_table() -> None:
    alone = [Row("start", "ms", (50.0,), (25.0,), 100, {"hone": 4.0}, lead=5), Row("x", "ms", (1.0,), lead=2)]
    assert table(alone).splitlines()[2:] == [
        "| start | 50.0 | 25.0 | 2.00 | ≤ 100 ms | yes |",
        "| x | 1.00 | – | – | ms | – |",
    ]
    assert "peer" not in table(alone) + processor(alone)
    assert lead(alone) is None


@given(st.lists(rows, max_size=4))
def test_the_raw_samples_of_all_sides_are_in_the_json(measured: list[Row]) -> None:
    told = json.loads(as_json(measured, {"cores": 2}))
    assert told["machine"] == {"cores": 2}
    for row, said in zip(measured, told["rows"], strict=True):
        sides = [tuple(said[side]) for side in ("hone", "floor", "peer")]
        assert sides == [row.hone, row.floor, row.peer]
        assert said["met"] == row.met


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
def test_the_picture_of_leads_can_be_read_out_and_every_bar_fits(measured: list[Row]) -> None:
    shown = [row for row in measured if row.ahead and row.lead]
    drawn = lead(measured)
    assert (drawn is None) is (not shown)
    if drawn is None:
        return
    picture = ElementTree.fromstring(drawn)
    told = picture.findtext(f"{SVG}desc") or ""
    assert all(row.name.replace("`", "") in told for row in shown)
    bars = _bars(picture)
    assert len(bars) == len(shown)
    assert all(float(bar.get("x", 0)) >= LABELS for bar in bars)
    assert all(float(bar.get("x", 0)) + float(bar.get("width", 0)) <= LABELS + SCALE + 0.2 for bar in bars)


def _bars(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [bar for bar in picture.iter(f"{SVG}rect") if float(bar.get("x", 0)) > 0]


def test_a_bar_twice_as_long_stands_for_a_lead_squared() -> None:
    measured = [Row("x", "ms", (1.0,), peer=(figure,), lead=1) for figure in (10.0, 100.0)]
    ten, hundred = (float(bar.get("width", 0)) for bar in _bars(ElementTree.fromstring(lead(measured) or "")))
    assert hundred == pytest.approx(2 * ten, abs=0.2)


@given(st.lists(rows, min_size=1, max_size=6))
def test_a_plot_has_a_line_for_each_side_that_was_measured_and_stays_within_its_frame(
    measured: list[Row],
) -> None:
    drawn = lines(measured, "grown", "As it grows", "messages")
    shown = [row for row in measured if row.point]
    assert (drawn is None) is (len({row.point for row in shown}) < 2)
    if drawn is None:
        return
    picture = ElementTree.fromstring(drawn)
    found = {line.get("class", "") for line in picture.iter(f"{SVG}polyline")}
    sides = {"hone": True, "floor": any(row.floor for row in shown), "peer": any(row.peer for row in shown)}
    assert found == {side for side, there in sides.items() if there}
    for dot in picture.iter(f"{SVG}circle"):
        assert 0 <= float(dot.get("cx", -1)) <= WIDTH
        assert 0 <= float(dot.get("cy", -1)) <= float(picture.get("height", 0))
