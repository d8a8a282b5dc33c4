"""Which rules files of projects the owner has approved: each by its path and its bytes."""

from pathlib import Path

from hone.core.errors import Refused
from hone.runtime.permissions.project import FILE, ProjectRules, read_project
from hone.runtime.permissions.rules import RuleSet
from hone.runtime.trust import OwnersList


class ProjectApprovals:
    """`approved` holds items of a path and a digest."""

    def __init__(self, approved: OwnersList) -> None:
        self._approved = approved

    def rules(self, folder: Path) -> RuleSet:
        """Return the rules of a project that count: what it denies, and what it allows if the owner approved
        this very file. Raises Refused for a file that cannot be used."""
        found = read_project(folder)
        return found.rules(approved=self.is_approved(folder, found)) if found else RuleSet()

    def is_approved(self, folder: Path, found: ProjectRules) -> bool:
        return _item(folder, found) in self._approved.items()

    def unapproved(self, folder: Path) -> str:
        """Return a sentence about what the file allows and does not count; empty if all counts."""
        found = read_project(folder)
        if found is None or not found.texts.allow or self.is_approved(folder, found):
            return ""
        known = any(item.rpartition(" ")[0] == _path(folder) for item in self._approved.items())
        why = "has changed since you approved it" if known else "was not approved yet"
        return f"{FILE} {why}: what it allows does not count. `hone trust` shows it."

    def approve(self, folder: Path, shown: ProjectRules) -> None:
        """Approve the file as it was shown. Raises Refused if it is another one by now."""
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
