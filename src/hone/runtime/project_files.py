"""Find the files of a project that steer Hone besides its instructions and rules: hooks, agents, and servers
for the Model Context Protocol.

None of them counts before the owner has approved its bytes with `hone trust`.
"""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hone.core.errors import Refused
from hone.core.messages import digest
from hone.files.opening import find_path
from hone.runtime.permissions.approval import AGENTS_FOLDERS, HOOKS_FILE, MCP_FILES, ProjectFile
from hone.settings.sections import HookSettings

LIMIT = 64_000
"""The most bytes of one file."""
MOST = 100
"""The most agents in one folder."""


def read_file(folder: Path, name: str) -> ProjectFile | None:
    """Return a project's file; None if there is none. Raises Refused for one that cannot be used."""
    folder = folder.resolve()
    try:
        with find_path(folder, name) as place:
            if not place.exists:
                return None
            if not place.path.is_relative_to(folder):
                raise Refused(f"{name} is a link out of this folder and is not used. Replace it by a file.")
            data = place.read(LIMIT)
        return ProjectFile(name, data.decode("utf-8-sig"), digest(data))
    except NotADirectoryError:
        return None
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not written in UTF-8 and is not used.") from error
    except OSError as error:
        raise Refused(f"{name} cannot be read and is not used: {error.strerror or error}.") from error


class _HooksFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hooks: tuple[HookSettings, ...] = ()


def parse_hooks(file: ProjectFile) -> tuple[HookSettings, ...]:
    """Return the hooks of a project's file. Raises Refused."""
    try:
        hooks = msgspec.convert(tomllib.loads(file.text), _HooksFile).hooks
    except (ValueError, RecursionError) as error:
        why = str(error).rstrip(".")
        raise Refused(f"{file.name} cannot be used: {why}. Its hooks do not run.") from error
    if any(not hook.sandbox for hook in hooks):
        raise Refused(
            f"{file.name} cannot be used: only hone.toml can have `sandbox = false`. Its hooks do not run."
        )
    return hooks


def list_names(folder: Path) -> Iterator[str]:
    """Yield the names of the files that may exist."""
    yield HOOKS_FILE
    yield from MCP_FILES
    for place in AGENTS_FOLDERS:
        yield from list_agents(folder, place)


def list_agents(folder: Path, place: str) -> Iterator[str]:
    """Yield the names of the files with agents, in order."""
    try:
        names = sorted(name for name in os.listdir(folder / place) if name.endswith(".md"))
    except OSError:
        return
    yield from (f"{place}/{name}" for name in names[:MOST])


def find_files(folder: Path) -> tuple[list[ProjectFile], list[str]]:
    """Return the files that exist, and why others cannot be used."""
    found, unused = [], []
    for name in list_names(folder):
        try:
            if file := read_file(folder, name):
                _ = parse_hooks(file) if name == HOOKS_FILE else ()
                found.append(file)
        except Refused as refusal:
            unused.append(str(refusal))
    return found, unused
