"""Runs the probes in one mode, as the user it is started as, and tells what got out. See `areas.probe`.

Standard library, msgspec and the sandbox only: it also runs with an interpreter that has nothing installed.
"""

import asyncio
import ctypes
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hone.core.clock import SystemClock
from hone.core.value import replace
from hone.sandbox.choice import NONE, Sandbox
from hone.sandbox.examining import known_modes
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import run
from hone.sandbox.spec import ALL, SandboxMode

CHANGED = ("append", "truncate", "delete", "rename", "chmod", "utime", "xattr")
MARKS = ("/usr/local/bin/hone-probe", "/etc/hone-probe", "/hone-probe")
VICTIM = "import ctypes, os, sys; b = ctypes.create_string_buffer(b'canary'); f = open(sys.argv[1]);"
VICTIM += " print(ctypes.addressof(b), flush=True); sys.stdin.read()"


@contextmanager
def victim(area: Path) -> Iterator[tuple[int, int]]:
    """A process outside that has a secret in every place; its number and the address of one of them."""
    secret = str(area / "outside" / "secret")
    environment = {"SECRET": "canary"}
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", VICTIM, secret, "canary"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=area / "outside",
        env=environment,
    ) as process:
        assert process.stdout
        yield process.pid, int(process.stdout.readline())


@contextmanager
def segment() -> Iterator[int]:
    """Shared memory with a secret in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    key = 0x40000000 | os.getpid()
    number = libc.shmget(key, 4096, 0o1666)
    address = libc.shmat(number, None, 0)
    ctypes.memmove(address, b"canary", 6)
    try:
        yield key
    finally:
        libc.shmctl(number, 0, None)


class Ears:
    """Sockets and a terminal outside. `heard` names those that something came in on."""

    def __init__(self, area: Path, stack: ExitStack) -> None:
        self.abstract = f"hone-probes-{os.getpid()}"
        inet, unix = socket.AF_INET, socket.AF_UNIX
        self.ears: dict[str, socket.socket] = {
            "loopback": stack.enter_context(socket.create_server(("0.0.0.0", 0))),
            "loopback 6": stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6)),
            "datagrams": stack.enter_context(socket.socket(inet, socket.SOCK_DGRAM)),
            "abstract": stack.enter_context(socket.socket(unix)),
            "socket": stack.enter_context(socket.socket(unix)),
        }
        self.ears["datagrams"].bind(("0.0.0.0", 0))
        self.ears["abstract"].bind(f"\0{self.abstract}")
        self.ears["socket"].bind(str(area / "outside" / "socket"))
        os.chmod(area / "outside" / "socket", 0o777)
        for each in ("abstract", "socket"):
            self.ears[each].listen()
        self.master, slave = os.openpty()
        stack.callback(os.close, self.master)
        stack.callback(os.close, slave)
        os.fchmod(slave, 0o666)
        self.terminal = os.ttyname(slave)
        os.set_blocking(self.master, False)

    def port(self, name: str) -> int:
        return int(self.ears[name].getsockname()[1])

    def heard(self) -> list[str]:
        return [f"heard: {name}" for name in (*self.ears, "terminal") if self._hears(name)]

    def _hears(self, name: str) -> bool:
        try:
            if name == "terminal":
                return bool(os.read(self.master, 1))
            ear = self.ears[name]
            ear.setblocking(False)
            if ear.type == socket.SOCK_DGRAM:
                return bool(ear.recv(1))
            ear.accept()[0].close()
        except BlockingIOError:
            return False
        return True


def own_address() -> str:
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        try:
            each.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.2"
        return str(each.getsockname()[0])


def changes(area: Path) -> list[str]:
    """What is not as it was laid out."""
    outside = area / "outside"
    found = [f"appeared: {path}" for path in MARKS if os.path.lexists(path)]
    found += [
        f"appeared: {path.name}"
        for path in outside.iterdir()
        if path.name not in ("secret", "socket", *CHANGED)
    ]
    for name in CHANGED:
        path = outside / name
        if not _is_untouched(path):
            found.append(f"changed: {name}")
    for path in (area / "folder").iterdir():
        if path.name != "set-uid-id" and path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID):
            found.append(f"set-uid: {path.name}")
    return found


def _is_untouched(path: Path) -> bool:
    if not path.exists() or path.read_text() != path.name or os.listxattr(path):
        return False
    status = path.stat()
    return stat.S_IMODE(status.st_mode) == 0o666 and status.st_mtime != 1


def lay_out(area: Path) -> None:
    outside = area / "outside"
    outside.chmod(0o777)
    (outside / "secret").write_text("canary")
    for name in CHANGED:
        (outside / name).write_text(name)
    for path in outside.iterdir():
        path.chmod(0o666)
    (area / "home" / "hone.db").write_text("canary")
    (area / "folder" / "planted").symlink_to(outside)


async def examine(area: Path, mode: SandboxMode) -> dict[str, Any]:
    lay_out(area)
    sandbox = Sandbox(hidden=[area / "home"], modes=[mode], python=sys.executable)
    # Without the interpreter's own folders sealed the cell is the same, wherever the interpreter lives.
    spec = sandbox.spec(area / "folder", area / "scratch")
    finding = await sandbox.examine(mode, spec)
    if mode is not NONE and finding.held != ALL:
        return {"unclaimed": finding.complaint}
    with ExitStack() as stack:
        ears = Ears(area, stack)
        pid, address = stack.enter_context(victim(area))
        key = stack.enter_context(segment())
        shared = Path(f"/dev/shm/hone-probes-{os.getpid()}")
        shared.write_text("canary")
        stack.callback(shared.unlink)
        shared.chmod(0o666)
        device = os.stat("/").st_dev
        about = {
            "outside": str(area / "outside"),
            "home": str(area / "home"),
            "code": str(area / "code"),
            "shared": str(shared),
            "victim": pid,
            "address": address,
            "namespace": os.readlink("/proc/self/ns/pid"),
            "key": key,
            "terminal": ears.terminal,
            "port": ears.port("loopback"),
            "port6": ears.port("loopback 6"),
            "datagrams": ears.port("datagrams"),
            "abstract": ears.abstract,
            "address4": own_address(),
            "disk": [os.major(device), os.minor(device)],
            "unconfined": mode is NONE,
        }
        text = Path(__file__).with_name("probes.py").read_text("utf-8")
        argv = [os.path.realpath(sys.executable), "-I", "-S", "-c", text, json.dumps(about)]
        output = Output(Spill(area / "spill", ""))
        launch = mode.wrap(argv, replace(spec, network=False))
        ended = await run(launch, output=output, clock=SystemClock(), timeout=120)
        alive = os.path.exists(f"/proc/{pid}/cmdline")
        seen = [*ears.heard(), *changes(area), *([] if alive else ["the victim is gone"])]
    said = ended.output.splitlines() or [""]
    return {"probes": json.loads(said[-1]) if said[-1].startswith("{") else ended.output, "seen": seen}


def main() -> None:
    area, name = Path(sys.argv[1]), sys.argv[2]
    found = {each.name.partition(",")[0]: each for each in known_modes()}
    mode = NONE if name == "none" else found.get(name)
    result = asyncio.run(examine(area, mode)) if mode else {"unclaimed": "not installed"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
