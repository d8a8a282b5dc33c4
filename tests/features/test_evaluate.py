"""G3: the arithmetic of scores, and backends measured by use."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from hone.core.clock import ManualClock, SystemClock
from hone.features.backends.evaluate import (
    Measured,
    Score,
    advice,
    data,
    label,
    latency,
    recommend,
    score,
    svg,
    table,
)
from hone.features.backends.evaluation import USER, measure
from hone.features.backends.guarded import GuardedBackend
from tests import databases
from tests.backing import opened
from tests.doubles.odd import Odd

postgres = databases.postgres

WHOLE = frozenset({"store", "retrieve", "query"})


def measured(name: str = "x", **more: Any) -> Measured:
    return Measured(name, **{"worked": WHOLE, "times": {"store": [1.0]}, **more})


@pytest.mark.parametrize(
    ("mean", "points"),
    [
        (0.0, 20),
        (9.99, 20),
        (10.0, 15),
        (49.9, 15),
        (50.0, 10),
        (199.9, 10),
        (200.0, 5),
        (9_000.0, 5),
        (None, 0),
    ],
)
def test_points_for_speed(mean: float | None, points: int) -> None:
    assert latency(mean) == points


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (measured(), Score(20, 40, 20, 20)),
        (measured(is_cloud=True), Score(20, 40, 20, 5)),
        (measured(worked=frozenset()), Score(20, 0, 20, 20)),
        (measured(worked=frozenset({"store"})), Score(20, 15, 20, 20)),
        (measured(worked=frozenset({"retrieve"})), Score(20, 15, 20, 20)),
        (measured(worked=frozenset({"query"})), Score(20, 10, 20, 20)),
        (measured(times={"store": [5.0], "query": [25.0]}), Score(20, 40, 15, 20)),
        (measured(times={"store": [500.0]}, is_cloud=True), Score(20, 40, 5, 5)),
        (measured(why="It is down."), Score(0, 0, 0, 0)),
    ],
)
def test_a_score_is_the_sum_of_its_four_parts(seen: Measured, expected: Score) -> None:
    assert score(seen) == expected
    assert score(seen).total == sum(
        (expected.availability, expected.function, expected.latency, expected.privacy)
    )


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (measured(), "recommended"),
        (measured(times={"s": [60.0]}, is_cloud=True), "acceptable"),  # 75
        (measured(worked=frozenset({"store"}), times={"s": [100.0]}, is_cloud=True), "marginal"),  # 50
        (measured(worked=frozenset(), times={"s": [300.0]}, is_cloud=True), "not recommended"),  # 30
        (measured(why="It is down."), "not recommended"),
        (measured(worked=WHOLE - {"store"}, times={"s": [20.0]}), "recommended"),  # 80
        (measured(worked=frozenset(), times={"s": [1.0]}), "acceptable"),  # 60
        (measured(worked=frozenset(), times={"s": [20.0]}, is_cloud=True), "marginal"),  # 40
    ],
)
def test_labels_stand_at_80_60_and_40(seen: Measured, word: str) -> None:
    assert label(seen) == word


async def test_the_null_backend_has_no_label_and_never_wins() -> None:
    async with opened("null", Path(), "") as backend:
        null = await measure(backend, ManualClock())
    assert (null.worked, null.recall) == (frozenset(), 0.0)
    assert data(null)["label"] is None
    assert label(null) == "baseline"
    assert recommend([null]) is None
    worst = measured("worst", times={"s": [60.0]}, is_cloud=True)
    best = recommend([null, worst])
    assert best is not None
    assert best.name == "worst"


def test_of_two_as_good_the_local_one_is_recommended_and_the_cloud_has_its_warning() -> None:
    cloud = measured("cloud", is_cloud=True, times={"s": [1.0]})  # 85
    here = measured("here", worked=WHOLE, times={"s": [220.0]})  # 85
    for order in ([cloud, here], [here, cloud]):
        best = recommend(order)
        assert best is not None
        assert best.name == "here"
        assert advice(order) == ["Recommended: here.", "cloud: What is stored leaves this machine."]
    alone = recommend([cloud])
    assert alone is not None
    assert alone.name == "cloud"
    assert "cloud: What is stored leaves this machine." in table([cloud])


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "honcho"])
async def test_a_backend_that_works_makes_whole_round_trips_and_leaves_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres") if kind == "postgres" else ""
    async with opened(kind, tmp_path, url) as backend:
        seen = await measure(backend, SystemClock())
        assert list(await backend.list_keys(USER)) == []
    assert seen.worked == WHOLE
    assert seen.recall >= 0.75
    assert set(seen.times) == WHOLE
    assert (seen.calls["store"] > 0) == (kind != "sqlite")


@pytest.mark.parametrize("mood", ["fails", "slow", "types"])
async def test_a_backend_that_does_not_work_has_no_points_for_what_it_did_not_do(mood: str) -> None:
    clock = ManualClock()
    odd = Odd(clock)
    odd.mood = mood
    seen = await measure(GuardedBackend(odd), clock)
    expected = {"store", "retrieve"} if mood == "types" else set()
    assert seen.worked == expected
    assert score(seen).function == (30 if mood == "types" else 0)
    assert f"odd: {seen.error}" in table([seen])
    assert seen.error


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (measured("null", worked=frozenset()), None),
        (measured("down", why="It is down."), "not available"),
        (measured("slow", times={"store": [60.0]}, is_cloud=True), "acceptable"),
        (measured("lossy", durable=False, recall=0.5, calls={"store": 2.0}, needs_key=True), "recommended"),
    ],
)
def test_programs_are_told_what_the_table_says(seen: Measured, word: str | None) -> None:
    told, [titles, row, *_] = data(seen), table([seen]).splitlines()
    assert told["label"] == word
    assert row.split("  ")[0].strip() == told["name"]
    at = titles.index("label")
    assert row[at : titles.index("avail")].strip() == (word or "baseline")
    assert next(each for each in row.split() if each.isdigit()) == str(told["score"])
    assert ("lost" in row) == (told["survives_kill"] is False)
    assert ("50%" in row) == (told["recall"] == 0.5)


def test_the_drawing_is_sound_and_has_a_bar_for_each() -> None:
    drawn = ET.fromstring(
        svg([measured("<odd&name>"), measured("null", worked=frozenset()), measured(why="no")])
    )
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "<odd&name>" in texts
    assert "100 · recommended" in texts
    assert "60 · baseline" in texts
    assert "0 · not available" in texts
