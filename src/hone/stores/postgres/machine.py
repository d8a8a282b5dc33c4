"""Name the machine that a home is on, among all that share a database."""

import os
import socket
from contextlib import suppress
from pathlib import Path

from hone.core.messages import canonical, digest
from hone.files.atomic import write

CHECKOUT = "checkout"
"""The file that names a home with a remote database."""
MACHINE = Path("/etc/machine-id")


def read_name(home: Path) -> str:
    """Return the random name of a home, created if necessary. Raises OSError."""
    path = home / CHECKOUT
    with suppress(FileExistsError):
        write(path, os.urandom(16).hex().encode(), over=False)
    return path.read_text("utf-8")


def name_machine(home: Path) -> str:
    """Return a name that no other machine has, even with a copy of the home: a trusted path here could be any
    folder there. Two homes of one machine differ, as they do without a database. Raises OSError."""
    number = ""
    with suppress(OSError):  # a container often has none
        number = MACHINE.read_text("utf-8").strip()
    return digest(canonical((read_name(home), socket.gethostname(), number)).encode())
