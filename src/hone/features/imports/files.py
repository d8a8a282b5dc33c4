"""The files of another agent: where they lie, and their lines as objects. Nothing in them is changed."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hone.core.errors import HoneError
from hone.core.visible import one_line
from hone.features.imports.conversation import ImportReport, Row
from hone.files.atomic import open_file

LONGEST = 64 * 1024 * 1024
"""Bytes of a line."""


def find(path: Path, below: str, pattern: str) -> list[Path]:
    """The file, or those of a folder (and rather those `below` it, if there is such a folder), oldest first.
    Raises HoneError if there is no such path."""
    if not path.is_dir():
        if not path.exists():
            raise HoneError(f"{one_line(str(path), 200)} is not there.")
        return [path]
    top = path / below if (path / below).is_dir() else path
    return sorted(
        (each for each in top.rglob(pattern) if each.is_file()), key=lambda each: (_age(each), each)
    )


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def opened(path: Path) -> BinaryIO:
    """Raises OSError; a pipe or device is not waited for."""
    file = open_file(path, follow=True)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "it is no plain file", str(path))
    return file


def rows(file: BinaryIO, name: str, report: ImportReport) -> Iterator[tuple[int, Row]]:
    """Each line that is a JSON object, with its number. The others are counted."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        whole = line.endswith(b"\n") or len(line) < LONGEST
        while not whole:
            rest = file.readline(LONGEST)
            whole = rest.endswith(b"\n") or len(rest) < LONGEST
            line = b""
        if not line:
            report.fault(f"{name}, line {number}", "it is too long")
        elif line.strip():
            try:
                value = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                report.fault(f"{name}, line {number}", "it is no JSON")
                continue
            if isinstance(value, dict):
                yield number, value
            else:
                report.fault(f"{name}, line {number}", "it is no object")
