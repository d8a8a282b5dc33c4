"""A draft is moved or gone; one that a killed process left goes with the next, one in use stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hone.files.atomic import draft, sweep

WRITE = """
import os, sys
from pathlib import Path
from hone.files.atomic import draft
with draft(Path(sys.argv[1]), 0o600) as (file, _):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_a_draft_is_moved_or_gone(tmp_path: Path) -> None:
    with draft(tmp_path, 0o600) as (file, path):
        file.write(b"whole")
        file.flush()
        path.replace(tmp_path / "x")
    with pytest.raises(ZeroDivisionError), draft(tmp_path, 0o600):
        raise ZeroDivisionError
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("x", b"whole")]


def test_a_draft_in_use_is_left_alone_and_one_of_a_killed_process_is_not(tmp_path: Path) -> None:
    (tmp_path / ".hone-mine").write_text("not a draft")
    os.mkfifo(tmp_path / ".hone-pipe.tmp")
    command = [sys.executable, "-c", WRITE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"writing\n"
        sweep(tmp_path)
        assert [each.read_bytes() for each in tmp_path.glob(".hone-????????????????.tmp")] == [b"half"]
        process.kill()
    assert process.returncode == -signal.SIGKILL
    with draft(tmp_path, 0o600):
        pass
    assert {each.name for each in tmp_path.iterdir()} <= {".hone-mine", ".hone-pipe.tmp"}
