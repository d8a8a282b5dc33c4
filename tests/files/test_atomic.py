"""Opening files without leaving any open."""

import os
from pathlib import Path

import pytest

from hone.files.atomic import open_file


def test_a_folder_is_no_file_and_leaves_nothing_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(10):
        with pytest.raises(IsADirectoryError):
            open_file(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == len(before)
