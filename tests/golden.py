"""Whole commands, and what they said when the golden files were made.

`WRITE_GOLDENS=1` makes a test write what it would compare. What lies in a `data` folder is written once, and
then never again: other programs, stores and caches rely on these bytes. To make one anew, remove it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.provider import Provider

WRITE = os.environ.get("WRITE_GOLDENS") == "1"
PATIENCE = 60.0

_KEY = re.compile(r'("prompt_cache_key":")[0-9a-f]{32}"')
_DATE = re.compile(r"(\bDate: )\d{4}-\d{2}-\d{2}\b")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def environment(home: Path, provider: Provider | None = None, **more: str) -> dict[str, str]:
    """The same on every machine, but for the path."""
    basis = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HONE_HOME": str(home),
        "TERM": "dumb",
        "COLUMNS": "120",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "LOGNAME": "somebody",
        "USER": "somebody",
    }
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


def still(text: str, places: Mapping[str, Path]) -> str:
    """Without what differs by machine and day: where folders lie, the date, and the digest of both."""
    for name, path in places.items():
        text = text.replace(str(path), f"{{{name}}}")
    return _KEY.sub(r'\1{digest}"', _DATE.sub(r"\1{date}", text))


def assert_golden(path: Path, found: str) -> None:
    data = found.encode()
    if WRITE and not (path.exists() and "data" in path.parts):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert path.exists(), f"{path.name} is missing; make it with WRITE_GOLDENS=1"
    assert data == path.read_bytes(), f"{path} was made by another Hone and says something else"
