"""Remove a folder that commands have written in."""

import os
from pathlib import Path

from hone.core import seldom


def cleared(folder: Path) -> None:
    """A command may have left folders that nobody may enter, and links that must not be followed."""
    for root, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    seldom.shutil.rmtree(folder, ignore_errors=True)
