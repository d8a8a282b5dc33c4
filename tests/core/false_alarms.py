"""Count what is taken for a secret in ordinary files: `python -m tests.core.false_alarms FOLDER…`"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hone.core.secrets import redact

LARGEST = 2 * 2**20
_SKIPPED = frozenset((".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis", "site-packages"))
_MARK = re.compile(r"\[redacted: ([^\]\n]{1,40})\]")


def texts(folder: Path) -> Iterator[str]:
    """The text files below a folder, in the order of their names."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in sorted(names):
            file = Path(path, name)
            if file.is_symlink() or file.stat().st_size > LARGEST:
                continue
            data = file.read_bytes()
            if b"\0" not in data[:8192]:
                try:
                    yield data.decode()
                except UnicodeDecodeError:
                    continue


def alarms(text: str) -> Counter[str]:
    """The kinds of secrets that were recognized in a text."""
    return Counter(_MARK.findall(redact(text))) - Counter(_MARK.findall(text))


def main(folders: list[str]) -> None:
    for folder in folders:
        size, found = 0, Counter[str]()
        for text in texts(Path(folder)):
            size += len(text)
            found += alarms(text)
        count = found.total()
        print(f"{folder}: {size / 1e6:.1f} MB, {count} alarms, {count / size * 1e6:.2f} per MB", dict(found))


if __name__ == "__main__":
    main(sys.argv[1:])
