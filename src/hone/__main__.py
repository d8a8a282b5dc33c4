"""Run the `hone` command, also as `python -m hone`. Quick answers come before the heavy imports."""

import gc
import os
import sys

from hone import __version__

YOUNG = 100_000
"""New objects between two garbage collections. Nothing that the start loads is garbage, and with Python's
default of 700 the start spends a tenth of its time on collections."""


def main() -> None:
    if sys.argv[1:] == ["--version"] and told(f"hone {__version__}"):
        return
    gc.set_threshold(YOUNG)
    from hone.cli.main import main

    try:
        main()
    finally:
        gc.freeze()  # otherwise the interpreter scans every object once more before it exits


def told(line: str) -> bool:
    """Write past the buffer: what is left in it could not be written at the end either."""
    try:
        os.write(1, f"{line}\n".encode())
    except OSError:
        return False  # the full command reports the error
    return True


if __name__ == "__main__":
    main()
