"""A root folder made from Debian's packages, one for all tests of a process."""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from time import monotonic

import pytest

from tests.conftest import requires

MIRROR = "http://deb.debian.org/debian"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
BINDS = (
    *("--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf"),
    *("--ro-bind", CERTIFICATES, "/host-certificates"),
)


def check() -> None:
    """Skip where no root folder can be made."""
    requires("debootstrap")
    requires("bwrap")
    if os.geteuid() != 0:
        pytest.skip("only root can make a root folder of Debian's packages")


@cache
def base() -> tuple[Path, float]:
    """The folder, and the seconds that it took."""
    folder = Path(tempfile.mkdtemp(prefix="hone-debian-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    begun = monotonic()
    command = ["debootstrap", "--variant=minbase", "bookworm", str(folder / "base"), MIRROR]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "base", monotonic() - begun


def copy(target: Path) -> None:
    subprocess.run(["cp", "--archive", "--reflink=auto", base()[0], target], check=True)
    (target / "host-certificates").touch()


def host_variables() -> dict[str, str]:
    """This machine's proxy and certificates, for what is fetched in there."""
    return {name: os.environ[name] for name in PROXIES if name in os.environ} | {
        "PIP_CERT": "/host-certificates"
    }
