"""Places to try a sandbox in that every user can reach, and the users to try it as."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from hone.sandbox.choice import NONE
from hone.sandbox.examining import known_modes
from hone.sandbox.spec import SandboxMode

ROOT = Path(__file__).parents[2]
STRANGER = 65531
"""An ordinary user as far as the kernel is concerned."""


_BOOT = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """A mode, and who runs Hone."""

    mode: str
    uid: int

    @property
    def name(self) -> str:
        return f"{self.mode}, run by {'root' if self.uid == 0 else 'a user'}"


def settings() -> list[Setting]:
    """Root can try everything as itself and as somebody else; it always mounts."""
    users = (0, STRANGER) if os.geteuid() == 0 else (os.geteuid(),)
    modes = ("bubblewrap", "landlock with mounts", "landlock")
    return [Setting(mode, uid) for mode in modes for uid in users if uid or mode != "landlock"]


def shared_python() -> str | None:
    """An interpreter that every user can start: this one, or the system's."""
    for each in (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        path = Path(each).resolve() if os.path.exists(each) else None
        if (
            path
            and all(parent.stat().st_mode & 0o001 for parent in (path, *path.parents))
            and _is_alike(each)
        ):
            return each
    return None


def _is_alike(python: str) -> bool:
    """Whether it can load what was compiled for this interpreter: Hone's values need msgspec."""
    code = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    return subprocess.run([python, "-I", "-c", code], check=False).returncode == 0


@contextmanager
def area(uid: int) -> Iterator[Path]:
    """folder, outside, home and scratch, which belong to the user."""
    place = Path(tempfile.mkdtemp(prefix="hone-area-")).resolve()
    try:
        place.chmod(0o755)
        for name in ("folder", "outside", "home", "scratch"):
            (place / name).mkdir()
            if os.geteuid() == 0:
                os.chown(place / name, uid, uid)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def modes() -> list[SandboxMode]:
    """Those that this process can start, trusted or not; the last one confines nothing."""
    return [*known_modes(), NONE]


def probe(setting: Setting, python: str) -> dict[str, Any]:
    """What the worker tells, see there."""
    result: dict[str, Any] = _tell(setting, python, "worker.py")
    return result


def attack(setting: Setting, python: str, ways: Sequence[str]) -> list[dict[str, Any]]:
    """What the worker tells that tries to change sensitive files, see there."""
    result: list[dict[str, Any]] = _tell(setting, python, "seal_worker.py", *ways)
    return result


def _tell(setting: Setting, python: str, worker: str, *arguments: str) -> Any:
    with area(setting.uid) as place:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src" / "hone", place / "code" / "hone", ignore=ignored)
        shutil.copytree(Path(msgspec.__file__).parent, place / "code" / "msgspec", ignore=ignored)
        shutil.copytree(ROOT / "tests" / "sandbox", place / "tests", ignore=ignored)
        if os.geteuid() == 0:
            shutil.copy("/usr/bin/id", place / "folder" / "set-uid-id")
            (place / "folder" / "set-uid-id").chmod(0o4755)
        argv = [
            python,
            "-I",
            "-c",
            _BOOT,
            str(place / "code"),
            str(place / "tests" / worker),
            str(place),
            setting.mode,
            *arguments,
        ]
        user = setting.uid if os.geteuid() == 0 else None
        ended = subprocess.run(
            argv,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])
