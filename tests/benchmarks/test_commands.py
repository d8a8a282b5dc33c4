"""What tools and seals add to a command is measured in one run."""

import re
import subprocess
import sys

from benchmarks.bench import ROOT
from tests.conftest import requires


def test_a_folder_gets_both_sides() -> None:
    requires("git")
    command = [sys.executable, "-m", "benchmarks.commands", "--quick"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if "No sandbox holds here" in done.stderr:
        return
    assert done.returncode == 0, done.stderr
    _, _, row = done.stdout.splitlines()
    assert re.fullmatch(r"\|[^|]+(\| -?\d+\.\d ){4}\| ≤ 15 \| [^|]+ \| \d+ \|", row)
