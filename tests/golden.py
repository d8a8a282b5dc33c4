"""Runs commands and compares what they print and send with golden files.

`WRITE_GOLDENS=1` makes a test write what it would compare. What lies in a `data` folder is written once, and
then never again: other programs, stores and caches rely on these bytes. To make one anew, remove it.
"""

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.provider import Provider

WRITE = os.environ.get("WRITE_GOLDENS") == "1"
PATIENCE = 60.0
CLOCK = ("LD_PRELOAD", "FAKETIME", "NO_FAKE_STAT")

_KEY = re.compile(r'("prompt_cache_key":")[0-9a-f]{32}"')
_DATE = re.compile(r"(\\nDate: )\d{4}-\d{2}-\d{2}\b")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def environment(home: Path, provider: Provider | None = None, **more: str) -> dict[str, str]:
    """Return what is the same on every machine, but for the path. A clock set by `faketime` gets through."""
    basis = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HONE_HOME": str(home),
        "HONE_LEARNING": "queue",
        "HONE_LOCAL": "false",
        "TERM": "dumb",
        "COLUMNS": "120",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "LOGNAME": "somebody",
        "USER": "somebody",
    }
    basis |= {name: value for name, value in os.environ.items() if name in CLOCK}
    if provider:
        basis |= {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-test"}
        basis |= {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-test"}
    return basis | more


def hone(*arguments: str, env: Mapping[str, str], folder: Path) -> Ended:
    done = subprocess.run(
        (sys.executable, "-m", "hone", *arguments),
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def placed(text: str, places: Mapping[str, Path]) -> str:
    """Put names in the place of paths, which differ by machine."""
    for name, path in places.items():
        text = text.replace(str(path), f"{{{name}}}")
    return text


def still(request: str, places: Mapping[str, Path]) -> str:
    """Do the same for a new session's request, and for the date in it and the digest of both."""
    return _KEY.sub(r'\1{digest}"', _DATE.sub(r"\1{date}", placed(request, places)))


def assert_golden(path: Path, found: str) -> None:
    data = found.encode()
    if WRITE and not (path.exists() and "data" in path.parts):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert path.exists(), f"{path.name} is missing; make it with WRITE_GOLDENS=1"
    assert data == path.read_bytes(), f"{path} was made by another Hone and says something else"


def unpack(archive: Path, folder: Path) -> None:
    """Unpack our own fixture. Early versions of Python 3.11 know no filters, later ones ask for one."""
    with tarfile.open(archive) as file:
        if hasattr(tarfile, "tar_filter"):
            file.extractall(folder, filter="tar")
        else:
            file.extractall(folder)
