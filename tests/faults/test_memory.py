"""A8: a provider that never stops takes a bounded part of the memory."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import lines
from tests.conftest import Figures, Tier
from tests.faults.house import FORMATS

FLOODS = (
    "text-endless",
    "thinking-endless",
    "arguments-endless",
    "calls-endless",
    "line-endless",
    "event-endless",
    "json-endless",
    "comments-endless",
    "headers-endless",
    "refusal-endless",
)
MOST = 100.0
"""MB of a whole process with Hone in it."""


async def flood(name: str, format: Format, folder: Path) -> tuple[str, float]:
    async with FakeProvider(lines("never"), fault=name, keep=False) as stage:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.faults.greedy", format, stage.url, str(folder)),
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        out, _ = await child.communicate()
    told = json.loads(out)
    return f"{told['stop']} {told['error']}", told["peak"]


@pytest.mark.parametrize("format", FORMATS)
def test_an_endless_reply_takes_less_than_100_mb(
    format: Format, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    peaks: dict[str, float] = {}
    failures: dict[int, str] = {}
    drawn = list(tier.draws(short=1, full=len(FLOODS)))
    for draw in drawn:
        name = FLOODS[draw.index]
        told, peaks[name] = asyncio.run(flood(name, format, tmp_path / name))
        if not told.startswith("failed ") or peaks[name] > MOST:
            failures[draw.index] = f"{name}: {told}, {peaks[name]} MB"
    note = f"floods, {format}: at most {max(peaks.values()):.0f} MB"
    figures.tally(len(drawn), got_in=len(failures), lost=0, note=note, at=failures)
    assert failures == {}
