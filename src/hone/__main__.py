"""Run the `hone` command, also as `python -m hone`. Quick answers come before the heavy imports."""

import gc
import os
import sys

from hone import __version__

YOUNG = 100_000
"""New objects between two looks for garbage. What is loaded at the start is none, and with the 700 that are
usual in Python a tenth of the start goes into looking."""


def main() -> None:
    if sys.argv[1:] == ["--version"] and told(f"hone {__version__}"):
        return
    gc.set_threshold(YOUNG)
    from hone.cli.main import main

    try:
        main()
    finally:
        gc.freeze()  # or else the interpreter looks through everything once more before it ends


def told(line: str) -> bool:
    """Past the buffer: what is left in there could not be written at the end either."""
    try:
        os.write(1, f"{line}\n".encode())
    except OSError:
        return False  # the command itself knows what to say about it
    return True


if __name__ == "__main__":
    main()
