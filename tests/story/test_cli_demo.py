"""`hone demo`: work, a correction, what was learned from it and how it is taken back, nothing set up."""

import os
import re
from pathlib import Path

from hone.models.fake_provider.caching import BLOCK
from tests.cli.driving import environment, hone, terminal


def figures(pattern: str, text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(pattern, text)[0]]


async def test_the_demo_needs_nothing_shows_the_main_job_and_leaves_nothing(
    home: Path, tmp_path: Path
) -> None:
    env = environment(home, TMPDIR=str(tmp_path))
    del env["HONE_HOME"]
    shown = await hone("demo", env=env)
    assert (shown.code, shown.err) == (0, "")
    assert "The model is scripted" in shown.out.split("\n> ")[0]
    one, review, two, undo, three = re.split(
        r"\n(?:The review: a fork|Session two|hone undo 1\n|Session three)", shown.out
    )
    assert "→ search_files gross\n  ✓ " in one
    assert "> Right. But answer in one sentence, always.\ngross() now adds the tax.\n" in one
    assert (
        '\n✎ learned about you: "Always answer in one sentence." · hone undo 1\n'
        "✗ write_file NOTES.md: write_file is not permitted"
    ) in review
    assert "\n  # Journal\n  ## About the user\n  - Always answer in one sentence.\n" in two
    assert "Change 1 is undone by change 2." in undo
    assert "\n  (no journal)\n" in three
    parent, shared = figures(r"one had ([\d,]+)\.\nThe first ([\d,]+) bytes are the same", review)
    assert shared == parent - 2
    cached, tokens = figures(r"had ([\d,]+) of the latter's ([\d,]+) tokens cached", review)
    assert cached >= 0.99 * tokens - BLOCK > 1000
    assert os.listdir(tmp_path) == []
    assert os.listdir(home) == []
    assert "\x1b" not in shown.out


async def test_the_demo_is_coloured_at_a_terminal(home: Path) -> None:
    async with terminal("demo", env=environment(home, TERM="xterm")) as user:
        await user.sees("✓ patch prices.py", "✎ learned about you:", "Your turn.")
        assert await user.ended() == 0
    assert "\x1b[32m✓ \x1b[0m".encode() in user.data
