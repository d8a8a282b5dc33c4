"""What runs by itself cannot be changed by commands, in any mode, whether or not it existed before."""

import os
from typing import Any

import pytest

from tests.conftest import Figures, Tier, requires
from tests.sandbox.areas import Setting, attack, settings, shared_python
from tests.sandbox.planting import WAYS
from tests.sandbox.seal_worker import TARGETS

pytestmark = pytest.mark.rights


def run(setting: Setting, ways: list[str]) -> list[dict[str, Any]]:
    requires("git")
    python = shared_python()
    if python is None:
        pytest.skip("no interpreter that every user can start")
    results = attack(setting, python, ways)
    if "unclaimed" in results[0]:
        pytest.skip(f"not claimed here: {results[0]['unclaimed']}")
    return results


@pytest.mark.parametrize("setting", settings(), ids=lambda each: each.name)
def test_no_sensitive_file_stays_changed(setting: Setting, figures: Figures, tier: Tier) -> None:
    single = tier.size(short=0, full=len(WAYS))
    ways = ["all", *map(str, sorted(tier.random().sample(range(len(WAYS)), single)))]
    results = run(setting, ways)
    tried = sum(len(TARGETS) * (len(WAYS) if way == "all" else 1) * 4 for way in ways)
    changed, lost = ([path for result in results for path in result[key]] for key in ("changed", "lost"))
    note = f"changes of sensitive files, {setting.name}"
    figures.tally(tried, got_in=len(changed), lost=len(lost), note=note)
    assert changed == []
    assert lost == []
    assert [result["code"] for result in results] == [0] * len(results)
    told = [note for result in results for note in result["notes"]]
    assert any("use write_file" in note for note in told)


def test_without_protection_the_attempts_succeed() -> None:
    """Most of them do something, so the figures above mean something."""
    [existing, new] = run(Setting("none", os.geteuid()), ["0"])
    assert int(existing["done"]) == int(new["done"]) == len(TARGETS)
    assert existing["changed"] == new["changed"] == []
