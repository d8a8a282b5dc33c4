"""Read a git repository as a source tree: fetch it bare and shallow, read objects, never check out files.

So nothing in it can run: no hook, no filter, no submodule. No link is created that could be followed.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from hone.core.errors import Refused
from hone.core.regex import regex
from hone.core.secrets import redact
from hone.core.visible import one_line
from hone.knowledge.skills.source_tree import SourceTree, find_fault, refuse

PATIENCE = 120.0
"""In seconds."""
LARGEST = 200 * 2**20
"""The most bytes of a repository with one commit."""
GLANCE = 0.1
_ADDRESS = regex(r"(?:https|ssh|file)://\S+|[\w.-]+@[\w.-]+:(?!//)\S+")
_COMMIT = regex(r"[0-9a-f]{40,64}")
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    "fetch.recurseSubmodules": "false",
    "transfer.fsckObjects": "true",
}
_KEPT = regex(r"PATH|HOME|LANG|TMPDIR|SSH_AUTH_SOCK|(?:https?|all|no)_proxy", re.IGNORECASE)
_KINDS = {"120000": "is a link", "160000": "is a repository of its own"}


def address(source: str) -> str:
    """Return the address of a repository; empty if it is none."""
    if _ADDRESS.fullmatch(source):
        return source
    path = Path(source).expanduser()
    if (path / "HEAD").is_file() and (path / "objects").is_dir():
        return path.resolve().as_uri()
    return ""


@contextmanager
def fetch(url: str, ref: str = "") -> Iterator[tuple[SourceTree, str]]:
    """Yield its files, and their commit. Raises Refused with git's own words."""
    if not _ADDRESS.fullmatch(url) or ref.startswith("-"):
        raise Refused("A repository is named by https://…, ssh://…, file://… or user@host:path.")
    with TemporaryDirectory(prefix="hone-git-") as name:
        folder = Path(name) / "repository"
        branch = ("--branch", ref) if ref else ()
        shallow = ("--bare", "--depth=1", "--single-branch", "--no-tags", "--template=")
        _git(Path(name), "clone", "--quiet", *shallow, *branch, "--", url, str(folder))
        commit = _git(folder, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
        if not _COMMIT.fullmatch(commit):
            raise Refused("The repository has no commit to install from.")
        yield _source_tree(folder, commit), commit


def _source_tree(folder: Path, commit: str) -> SourceTree:
    sizes: dict[str, int] = {}
    faults: dict[str, str] = {}
    objects: dict[str, str] = {}
    for row in _git(folder, "ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0")[:-1]:
        about, _, name = row.partition(b"\t")
        mode, _, object, size = about.decode().split()
        path = os.fsdecode(name)
        objects[path] = object
        if mode in _KINDS:
            faults[path] = _KINDS[mode]
        else:
            sizes[path] = int(size)
    refuse(f"{path!r} {find_fault(path)}" for path in (*sizes, *faults) if find_fault(path))

    def read(paths: Sequence[str]) -> Mapping[str, bytes]:
        return {path: _git(folder, "cat-file", "blob", objects[path]) for path in paths}

    return SourceTree(sizes, faults, read)


def _git(folder: Path, *arguments: str) -> bytes:
    settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    try:
        process = subprocess.Popen(
            ["git", *settings, *arguments],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Refused("git is not installed, and a skill from a repository needs it.") from None
    with process:
        out, err = _ended(process, folder)
    if process.returncode:
        words = one_line(redact(err.decode("utf-8", "replace").strip()), 500)
        raise Refused(f"git could not do it: {words or f'it ended with {process.returncode}'}")
    return out


def _environment() -> dict[str, str]:
    """Return the environment. No other setting has an effect, not even the owner's git configuration."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    return kept | {
        "GIT_ALLOW_PROTOCOL": "file:https:ssh",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }


def _ended(process: "subprocess.Popen[bytes]", folder: Path) -> tuple[bytes, bytes]:
    """Return git's output. If it takes too long, or too much space, it is ended with all its children."""
    until = monotonic() + PATIENCE
    while True:
        try:
            return process.communicate(timeout=GLANCE)
        except subprocess.TimeoutExpired:
            late, large = monotonic() > until, _size(folder) > LARGEST
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if late or large:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            why = f"took more than {PATIENCE:.0f} seconds" if late else f"is larger than {LARGEST:,} bytes"
            raise Refused(f"The repository {why}; nothing was installed.")


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue  # it was there a moment ago
    return total
