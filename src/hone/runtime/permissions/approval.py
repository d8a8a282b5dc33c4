"""The project files that the owner has approved: rules, hooks, agents and servers, by path and bytes."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from hone.core.errors import Refused
from hone.runtime.permissions.project import FILE, ProjectRules, read_project
from hone.runtime.permissions.rules import RuleSet
from hone.runtime.trust import OwnersList

HOOKS_FILE = ".hone/hooks.toml"
AGENTS_FOLDERS = (".hone/agents", ".claude/agents")
MCP_FILES = (".mcp.json", ".hone/mcp.json")
"""Servers of a project; the second file wins."""
STEERING = (HOOKS_FILE, *MCP_FILES, *(f"{each}/" for each in AGENTS_FOLDERS))


class ProjectFile(Struct, frozen=True):
    """A project's file that steers Hone. `name` is its path below the folder, `digest` that of its bytes,
    `text` what the owner is shown."""

    name: str
    text: str
    digest: str


class FileApprovals:
    """Decides which hooks, agents and servers of projects count. `approved` holds items of a path and a
    digest."""

    def __init__(self, approved: OwnersList) -> None:
        self._approved = approved

    def is_approved(self, folder: Path, file: ProjectFile) -> bool:
        return f"{folder.resolve() / file.name} {file.digest}" in self._approved.items()

    def explain(self, folder: Path, file: ProjectFile) -> str:
        """Return a sentence on why a file does not count."""
        path = str(folder.resolve() / file.name)
        known = any(item.rpartition(" ")[0] == path for item in self._approved.items())
        why = "has changed since you approved it" if known else "was not approved yet"
        return f"{file.name} {why} and is not used. `hone trust` shows it."

    def approve(self, folder: Path, files: Iterable[ProjectFile]) -> None:
        """Approve these files as they were shown, and no others."""
        self.forget(folder)
        for file in files:
            self._approved.add(f"{folder.resolve() / file.name} {file.digest}")

    def forget(self, folder: Path) -> None:
        place = folder.resolve()
        for item in self._approved.items():
            path = item.rpartition(" ")[0]
            if path.startswith(tuple(f"{place}/{each}" for each in STEERING)):
                self._approved.remove(item)


class ProjectApprovals:
    """Decides which rules of projects count. `approved` holds items of a path and a digest."""

    def __init__(self, approved: OwnersList) -> None:
        self._approved = approved
        self.files = FileApprovals(approved)

    def rules(self, folder: Path) -> RuleSet:
        """Return the rules of a project that count: what it denies, and what it allows if the owner approved
        this exact file. Raises Refused for a file that cannot be used."""
        found = read_project(folder)
        return found.rules(approved=self.is_approved(folder, found)) if found else RuleSet()

    def is_approved(self, folder: Path, found: ProjectRules) -> bool:
        return _item(folder, found) in self._approved.items()

    def unapproved(self, folder: Path) -> str:
        """Return a sentence about what the file allows without counting; empty if everything counts."""
        found = read_project(folder)
        if found is None or not found.texts.allow or self.is_approved(folder, found):
            return ""
        known = any(item.rpartition(" ")[0] == _path(folder) for item in self._approved.items())
        why = "has changed since you approved it" if known else "was not approved yet"
        return f"{FILE} {why}: what it allows does not count. `hone trust` shows it."

    def approve(self, folder: Path, shown: ProjectRules) -> None:
        """Approve the file as it was shown. Raises Refused if it has changed since."""
        if read_project(folder) != shown:
            raise Refused(f"{FILE} has changed meanwhile; nothing was approved. Look again: hone trust")
        self.forget(folder)
        self._approved.add(_item(folder, shown))

    def forget(self, folder: Path) -> None:
        for item in self._approved.items():
            if item.rpartition(" ")[0] == _path(folder):
                self._approved.remove(item)


def _path(folder: Path) -> str:
    return str(folder.resolve() / FILE)


def _item(folder: Path, found: ProjectRules) -> str:
    return f"{_path(folder)} {found.digest}"
