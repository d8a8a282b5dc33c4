"""What servers offered when they were last seen, and what the owner has approved of it: one file in the home.

Reading it starts no server, so that a conversation can begin without any.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.errors import Refused, StoreError
from hone.core.screen import screen
from hone.core.value import replace
from hone.core.visible import visible
from hone.features.mcp.client.values import McpServer, WireTool, name_tools
from hone.files.atomic import locked, open_file, write

FOLDER, FILE, LOCK = "mcp", "catalog.json", "catalog.lock"
MOST_KEPT = 4_000_000
"""The most characters of one server's offer to store."""


class ToolState(StrEnum):
    APPROVED = "approved"
    NEW = "new"
    """The owner has not approved it yet."""
    CHANGED = "changed"
    """It differs from what the owner approved: it is in quarantine."""
    GONE = "gone"
    """The owner approved it, and the server no longer offers it."""


class CatalogEntry(Struct, frozen=True):
    """What one server offers. `tools` are raw wire objects as last seen, `approved` those that the owner
    approved, by the tool's name. `errors` is the end of its error output when it last failed."""

    name: str
    source: str
    version: str = ""
    title: str = ""
    purpose: str = ""
    tools: Mapping[str, str] = {}
    approved: Mapping[str, str] = {}
    errors: str = ""
    unusable: tuple[str, ...] = ()

    def states(self) -> dict[str, ToolState]:
        """Return the state of each tool by its name."""
        found = {}
        for name in sorted({*self.tools, *self.approved}):
            seen, pinned = self.tools.get(name), self.approved.get(name)
            if seen is None:
                found[name] = ToolState.GONE
            elif pinned is None:
                found[name] = ToolState.NEW
            else:
                found[name] = ToolState.APPROVED if seen == pinned else ToolState.CHANGED
        return found

    def pick(self, *states: ToolState) -> list[str]:
        """Return the names of the tools in one of these states."""
        return [name for name, state in self.states().items() if state in states]


class Catalog:
    """Reads and writes the file. Every change reads it again, under a lock."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def read(self) -> Mapping[str, CatalogEntry]:
        """Return the entries by the key of their server. Raises StoreError."""
        path = self._folder / FILE
        try:
            with open_file(path) as file:
                return msgspec.json.decode(file.read(), type=dict[str, CatalogEntry])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{visible(str(path))} cannot be read. Remove it, and approve servers anew: hone mcp approve"
            ) from error

    def get(self, server: McpServer) -> CatalogEntry:
        return self.read().get(server.key) or CatalogEntry(server.name, server.source)

    def change(self, server: McpServer, act: Callable[[CatalogEntry], CatalogEntry]) -> CatalogEntry:
        """Change the entry of a server, and return it. Raises StoreError."""
        with locked(self._folder, LOCK):
            entries = dict(self.read())
            before = entries.get(server.key) or CatalogEntry(server.name, server.source)
            after = act(before)
            if after != before or server.key not in entries:
                self._write({**entries, server.key: after})
        return after

    def remove(self, keys: Iterable[str]) -> None:
        with locked(self._folder, LOCK):
            gone = set(keys)
            self._write({key: entry for key, entry in self.read().items() if key not in gone})

    def forget_errors(self, holds: Callable[[CatalogEntry], bool]) -> None:
        """Remove the error output of matching entries. Raises StoreError."""
        if not any(map(holds, self.read().values())):
            return
        with locked(self._folder, LOCK):
            entries = self.read()
            self._write(
                {key: replace(each, errors="") if holds(each) else each for key, each in entries.items()}
            )

    def _write(self, entries: Mapping[str, CatalogEntry]) -> None:
        path = self._folder / FILE
        try:
            write(path, msgspec.json.encode(entries))
        except OSError as error:
            raise StoreError(f"{visible(str(path))} cannot be written: {error.strerror}.") from error


def note_seen(entry: CatalogEntry, items: Iterable[Mapping[str, object]]) -> CatalogEntry:
    """Return the entry with the tools that a server offers now. If two share a name, neither counts: one
    could pass for the other."""
    tools: dict[str, str] = {}
    unusable: list[str] = []
    twice: set[str] = set()
    size = 0
    for item in items:
        try:
            tool = WireTool(item)
        except Refused as refusal:
            unusable.append(str(refusal))
            continue
        size += len(tool.raw)
        if size > MOST_KEPT:
            unusable.append(f"only tools of {MOST_KEPT:,} characters together are kept")
            break
        if tool.name in tools:
            twice.add(tool.name)
        tools[tool.name] = tool.raw
    unusable += [f"the tool {name} is offered twice" for name in sorted(twice)]
    kept = {name: raw for name, raw in sorted(tools.items()) if name not in twice}
    return replace(entry, tools=kept, unusable=tuple(unusable[:20]))


def approve(entry: CatalogEntry, shown: Mapping[str, str], purpose: str = "") -> CatalogEntry:
    """Approve tools as they were shown, by their raw wire objects. Forget one that a server no longer offers.
    A purpose with suspicious words is left out: it would be in the prompt."""
    kept = {name: raw for name, raw in entry.approved.items() if name in entry.tools}
    fine = "" if screen(purpose).flags else purpose
    return replace(entry, approved={**kept, **shown}, purpose=fine or entry.purpose)


def find_flags(raw: str) -> tuple[str, ...]:
    """Return what is suspicious about a tool's words. This is advice for the owner."""
    return screen(_texts(json.loads(raw))).flags


def _texts(value: object) -> str:
    """Return all words in a wire object: those of its schema reach the model, too."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(_texts(each) for each in (*value.keys(), *value.values()))
    return "\n".join(map(_texts, value)) if isinstance(value, list) else ""


def describe_difference(before: str, after: str) -> list[str]:
    """Return a diff of the lines in which two wire objects differ."""
    old, new = (
        json.dumps(json.loads(raw), indent=2, ensure_ascii=False).splitlines() for raw in (before, after)
    )
    return [visible(line) for line in unified_diff(old, new, "approved", "offered now", n=1, lineterm="")]


class Offer(Struct, frozen=True):
    """An approved tool of a server, under the name that the model knows."""

    name: str
    server: McpServer
    tool: WireTool


def list_offers(servers: Iterable[McpServer], entries: Mapping[str, CatalogEntry]) -> list[Offer]:
    """Return the tools that may be called: approved, and unchanged since."""
    offers = []
    for server in servers:
        entry = entries.get(server.key)
        if entry is None:
            continue
        names = name_tools(server.name, entry.approved)  # a server's additions change no name
        offers += [
            Offer(names[tool], server, WireTool.parse(entry.approved[tool]))
            for tool in entry.pick(ToolState.APPROVED)
        ]
    return sorted(offers, key=lambda offer: offer.name)
