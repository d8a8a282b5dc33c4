"""`hone demo`: the main job in an empty environment."""

import os
import re
from pathlib import Path

from tests.cli.driving import environment, hone, terminal


async def test_the_demo_needs_nothing_shows_the_main_job_and_leaves_nothing(
    home: Path, tmp_path: Path
) -> None:
    env = environment(home, TMPDIR=str(tmp_path))
    del env["HONE_HOME"]
    shown = await hone("demo", env=env)
    assert (shown.code, shown.err) == (0, "")
    assert "The model is scripted" in shown.out.split("\n> ")[0]
    for expected in (
        "→ search_files gross\n  ✓ ",
        "→ patch prices.py\n  ✓ ",
        "return round(net * (1 + TAX), 2)",
        "✗ write_file is not permitted here.",
        "NOTES.md was not written.",
    ):
        assert expected in shown.out
    shares = [int(share) for share in re.findall(r"call \d: [\d,]+ tokens in, (\d+) % cached", shown.out)]
    assert shares[0] == 0
    assert min(shares[1:]) > 50
    found = re.findall(r"last had ([\d,]+)\.\nThe first ([\d,]+) bytes are the same", shown.out)
    parent, shared = (int(number.replace(",", "")) for number in found[0])
    assert shared == parent - 2
    assert os.listdir(tmp_path) == []
    assert os.listdir(home) == []
    assert "\x1b" not in shown.out


async def test_the_demo_is_coloured_at_a_terminal(home: Path) -> None:
    async with terminal("demo", env=environment(home, TERM="xterm")) as user:
        await user.sees("✓ patch prices.py", "Your turn.")
        assert await user.ended() == 0
    assert "\x1b[32m✓ \x1b[0m".encode() in user.data
