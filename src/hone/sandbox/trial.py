"""Test a sandbox from the inside before it is used: a mode holds if a trial run shows that it does.

The bait outside the sandbox is open to every user, so only the sandbox can stop the attempt to reach it.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from hone.sandbox.spec import Claim, SandboxSpec, inside

FITS = "fits"
"""The last word of a complete attempt that could do what a command must be able to do."""

_SAMPLES = 3
_ATTEMPT = Path(__file__).with_name("attempt.py").read_text("utf-8")


class Bait(Struct, frozen=True):
    """Its place, the port of its listener, a socket for datagrams, the name of its abstract socket."""

    folder: Path
    port: int
    datagrams: socket.socket
    name: str

    def attempt(self, python: str, spec: SandboxSpec, tmp: str) -> list[str]:
        hidden = [path for each in spec.hidden for path in _samples(str(each), spec)]
        sealed = [str(each) for each in (*spec.sealed, *spec.guarded) if each.exists()]
        ports = (str(self.port), str(self.datagrams.getsockname()[1]))
        about = (str(os.getpid()), os.readlink("/proc/self/ns/pid"), *ports, self.name)
        # A folder that Hone itself cannot write need not be writable in a sandbox.
        writable = not spec.read_only and os.access(spec.folder, os.W_OK)
        folder = str(spec.folder) if writable else ""
        paths = (str(len(hidden)), *hidden, *sealed)
        return [python, "-I", "-S", "-c", _ATTEMPT, str(self.folder), *about, folder, tmp, *paths]

    def broken(self, said: str) -> frozenset[Claim] | None:
        """Return the claims that did not hold; None if the attempt was incomplete."""
        lines = said.splitlines()
        if FITS not in lines:
            return None
        claims = {claim for claim in Claim if claim.name in lines}
        with suppress(BlockingIOError):  # a datagram may go nowhere; whether it arrived is visible here
            self.datagrams.recv(1)
            claims.add(Claim.NETWORK)
        return frozenset(claims)


@contextmanager
def bait(spec: SandboxSpec) -> Iterator[Bait]:
    """Raise OSError where there is no place for it."""
    name = f"hone-{os.urandom(8).hex()}"
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="hone-bait-", dir=_place(spec)))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o777)
        (folder / "file").write_text("bait")
        (folder / "file").chmod(0o666)
        for address in (str(folder / "socket"), "\0" + name):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        (folder / "socket").chmod(0o777)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        yield Bait(folder, listener.getsockname()[1], datagrams, name)


def _samples(path: str, spec: SandboxSpec) -> list[str]:
    """Return a hidden file, or a sample of a hidden folder that is not shown on purpose."""
    if not os.path.isdir(path):
        return [path] if os.path.isfile(path) else []
    try:
        inner = [f"{path}/{name}" for name in sorted(os.listdir(path))]
    except OSError:
        return []
    shown = [f"{each}/" for each in (spec.folder, *spec.readable, *spec.writable)]
    found = [each for each in inner if not any(one.startswith(f"{each}/") for one in shown)]
    return [each for each in found if os.path.isdir(each) or os.path.isfile(each)][:_SAMPLES]


def _place(spec: SandboxSpec) -> Path:
    """Return a world-accessible folder outside the sandbox."""
    candidates = (Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/dev/shm"))
    known = (each.resolve() for each in candidates if each.is_dir() and os.access(each, os.W_OK))
    for each in known:
        if not inside(each, (spec.folder, *spec.writable)):
            return each
    raise OSError("there is no folder to lay bait in")
