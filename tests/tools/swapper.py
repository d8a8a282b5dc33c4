"""Swaps names in a folder for links out of it, as fast as it can, until it is killed."""

import ctypes
import os
import sys
from pathlib import Path

EXCHANGE = 2


def main(folder: Path, pairs: list[str]) -> None:
    """Each pair of names is exchanged in one step, so that both exist at every moment."""
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    names = [os.fsencode(each) for each in pairs]
    print("swapping", flush=True)
    while True:
        for one, other in zip(names[::2], names[1::2], strict=True):
            rename(at, one, at, other, EXCHANGE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
