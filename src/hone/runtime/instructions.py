"""Find a project's instruction file in a working folder, and use it once the owner has approved it.

The file is the first that exists of AGENTS.md, CLAUDE.md and .hone/instructions.md. Parent folders are not
searched. A conversation's prompt is put together here, since that is where the file goes.
"""

import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Refused
from hone.core.knowledge import Snapshot
from hone.core.messages import digest
from hone.core.secrets import redact
from hone.files.opening import Place, find_path
from hone.prompt.compose import index, instructions, journal, order_sections, surroundings
from hone.runtime.trust import Folders, OwnersList

NAMES = ("AGENTS.md", "CLAUDE.md", ".hone/instructions.md")
LIMIT = 32_000
"""The most bytes to read."""


class FoundInstructions(Struct, frozen=True):
    """`digest` is that of the exact bytes that were read."""

    name: str
    text: str
    digest: str


class UnusedInstructions(Struct, frozen=True):
    """The file exists, and `why` says in one sentence why it is not used."""

    why: str


def look(folder: Path) -> FoundInstructions | UnusedInstructions | None:
    """Return the file that exists, trusted or not."""
    for name in NAMES:
        try:
            with find_path(folder.resolve(), name) as place:
                if not place.exists and not (folder / name).is_symlink():
                    continue
                data = _read(place, folder.resolve())
        except NotADirectoryError:
            continue
        except FileNotFoundError:
            return UnusedInstructions(f"{name} is a link that leads nowhere and is not used.")
        except Refused as refusal:
            return UnusedInstructions(f"{name} {refusal} and is not used.")
        except OSError:
            return UnusedInstructions(f"{name} cannot be read and is not used.")
        return _understood(name, data)
    return None


def _read(place: Place, folder: Path) -> bytes:
    """Read a file. Links within the folder may be followed."""
    if not place.path.is_relative_to(folder):
        raise Refused("is a link out of this folder")
    if not place.exists:
        raise FileNotFoundError
    if not place.is_file:
        raise Refused("is not a file")
    if place.size > LIMIT:
        raise Refused(f"is longer than {LIMIT:,} bytes")
    return place.read(LIMIT)


def _understood(name: str, data: bytes) -> FoundInstructions | UnusedInstructions | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return UnusedInstructions(f"{name} is not written in UTF-8 and is not used.")
    return FoundInstructions(name, text, digest(data)) if text.strip() else None


class Instructions:
    """The instruction files that the owner has seen, by their bytes. `seen` holds items of a path and a
    digest."""

    def __init__(self, folders: Folders, seen: OwnersList) -> None:
        self._folders = folders
        self._seen = seen

    def of(self, folder: Path) -> FoundInstructions | UnusedInstructions | None:
        """Return what may enter a prompt, or why it may not. An untrusted folder yields nothing."""
        if not self._folders.trusts(folder):
            return None
        found = look(folder)
        if not isinstance(found, FoundInstructions) or self._is_seen(folder, found):
            return found
        if self._items(folder, found.name):
            return UnusedInstructions(
                f"{found.name} has changed since you trusted it and is not used; `hone trust` shows it."
            )
        return UnusedInstructions(f"{found.name} is not used until you have seen it: `hone trust` shows it.")

    def trust(self, folder: Path, shown: FoundInstructions | None) -> None:
        """Trust the folder, and its instructions as they were shown. Raises Refused if they have changed
        since."""
        if shown and look(folder) != shown:
            raise Refused(f"{shown.name} has changed meanwhile; nothing was trusted. Look again: hone trust")
        if shown:
            known = self._items(folder, shown.name)
            self._seen.add(_item(folder, shown.name, shown.digest))
            for item in known - {_item(folder, shown.name, shown.digest)}:
                self._seen.remove(item)
        self._folders.trust(folder)

    def forget(self, folder: Path) -> None:
        self._folders.forget(folder)
        for item in {item for name in NAMES for item in self._items(folder, name)}:
            self._seen.remove(item)

    def _is_seen(self, folder: Path, found: FoundInstructions) -> bool:
        return _item(folder, found.name, found.digest) in self._seen.items()

    def _items(self, folder: Path, name: str) -> set[str]:
        path = _path(folder, name)
        return {item for item in self._seen.items() if item.rpartition(" ")[0] == path}


def _path(folder: Path, name: str) -> str:
    return str(folder.resolve() / name)


def _item(folder: Path, name: str, digest: str) -> str:
    return f"{_path(folder, name)} {digest}"


class PromptSections(Struct, frozen=True):
    """Builds a new conversation's prompt from what is known and trusted now. `say` takes a sentence for the
    owner, such as that a folder's instructions are not used."""

    clock: Clock
    instructions: Instructions
    say: Callable[[str], None]

    def order(
        self, folder: Path, known: Snapshot, added: Iterable[str], tools: Collection[str]
    ) -> Iterable[str]:
        """Return all sections; `added` are those of plugins and programs. Sections about missing tools are
        left out."""
        return order_sections(
            added,
            index(known.skills, known.total) if "skill_view" in tools else "",
            self._instructed(folder),
            redact(journal(known)),
            surroundings(folder, self.clock.now().astimezone().date(), sys.platform),
            tools,
        )

    def _instructed(self, folder: Path) -> str:
        found = self.instructions.of(folder)
        if isinstance(found, UnusedInstructions):
            self.say(found.why)
        return instructions(found.name, found.text) if isinstance(found, FoundInstructions) else ""
