"""Find out how this Hone was installed, and which command removes it."""

import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct

PACKAGE = "hone-agent"
CACHED = "archive-v0"
"""The folder of uv's cache in which `uvx` keeps its environments."""


class Installation(Struct, frozen=True):
    """How Hone was installed. `command` removes it; without one, `advice` says what the owner does."""

    kind: str
    command: tuple[str, ...] = ()
    advice: str = ""


class _DirInfo(Struct, frozen=True):
    editable: bool = False


class _Origin(Struct, frozen=True):
    """What a package says about its origin."""

    url: str = ""
    dir_info: _DirInfo = _DirInfo()


def find_installation(prefix: Path | None = None, interpreter: str = "") -> Installation:
    """Return how the package of this interpreter was installed."""
    prefix, interpreter = prefix or Path(sys.prefix), interpreter or sys.executable
    if (prefix / "uv-receipt.toml").exists():
        return Installation("uv tool", ("uv", "tool", "uninstall", PACKAGE))
    if (prefix / "pipx_metadata.json").exists():
        return Installation("pipx", ("pipx", "uninstall", PACKAGE))
    if CACHED in prefix.parts:
        return Installation("uvx", ("uv", "cache", "clean", PACKAGE))
    if folder := _find_checkout():
        advice = f"Hone runs from a checkout. To remove it, delete the folder {folder}."
        return Installation("checkout", advice=advice)
    return Installation("pip", _pip(interpreter))


def _pip(interpreter: str) -> tuple[str, ...]:
    if find_spec("pip"):
        return (interpreter, "-m", "pip", "uninstall", "--yes", PACKAGE)
    return (shutil.which("uv") or "uv", "pip", "uninstall", "--python", interpreter, PACKAGE)


def _find_checkout() -> str:
    """Return the folder of the source code, if it is an editable installation."""
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return str(Path(__file__).parents[4])
    origin = msgspec.json.decode(text, type=_Origin) if text else _Origin()
    return origin.url.removeprefix("file://") if origin.dir_info.editable else ""
