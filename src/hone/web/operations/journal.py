"""Read the journal, with the source of each entry, and edit it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from hone.app import Hone
from hone.core.errors import Missing
from hone.core.ledger import PROJECT, ChangeKind, Entry, Target
from hone.core.messages import digest
from hone.core.visible import path_to_text
from hone.knowledge.journal import Add, Edit, PinEntry, Remove, ReplaceEntry, SetText, UnpinEntry
from hone.knowledge.keeper import OWNER
from hone.knowledge.sections import Section, data, sections, targets
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.operations.changes import rows
from hone.web.state import ServerState


class Folder(msgspec.Struct, frozen=True):
    """Whose project's entries are meant; empty: the folder the server works in."""

    folder: str = ""


class JournalText(msgspec.Struct, frozen=True):
    """The whole part anew. `seen` is the digest that came with what was read."""

    text: str
    seen: str


class JournalEntryEdit(msgspec.Struct, frozen=True):
    """`match` names the entry to replace, remove, pin or unpin by its words."""

    action: Literal["add", "replace", "remove", "pin", "unpin"]
    text: str = ""
    match: str = ""

    def edit(self) -> Edit:
        match self.action:
            case "add":
                return Add(self.text)
            case "replace":
                return ReplaceEntry(self.match, self.text)
            case "remove":
                return Remove(self.match)
            case "pin":
                return PinEntry(self.match)
            case "unpin":
                return UnpinEntry(self.match)


class Lines(msgspec.Struct, frozen=True):
    """All of them or none."""

    edits: list[JournalEntryEdit]


async def read(call: OperationCall[Folder, Nothing]) -> dict[str, Any]:
    """The parts of the journal, and the folders that have one of their own."""
    keeper = call.state.hone.keeper
    found = await sections(keeper, await find_folder(call.state, call.query.folder))
    parts = [await _part(call.state.hone, each) for each in found]
    return {"parts": parts, "folders": await _folders(call.state)}


async def _part(hone: Hone, section: Section) -> dict[str, Any]:
    """With what experiments found out about each entry."""
    part = data(section)
    entries = [
        {**each, "measured": await hone.findings("entry", section.target, digest(each["text"].encode()))}
        for each in part["entries"]
    ]
    return {**part, "entries": entries, "text": section.text, "seen": digest(section.text.encode())}


async def write(call: OperationCall[Folder, JournalText]) -> dict[str, Any]:
    """A part as a whole, unless somebody else wrote first."""
    edit = SetText(call.body.text, call.body.seen or digest(b""))
    return await _noted(call.state, await _target(call), [edit], ChangeKind.EDIT)


async def change(call: OperationCall[Folder, Lines]) -> dict[str, Any]:
    """Some entries of a part."""
    return await _noted(call.state, await _target(call), [each.edit() for each in call.body.edits])


async def _noted(
    state: ServerState, target: Target, edits: Sequence[Edit], kind: ChangeKind | None = None
) -> dict[str, Any]:
    made: Sequence[Entry] = ()
    if edits:
        made = await state.hone.keeper.note([(target, edit) for edit in edits], OWNER, kind)
    return {"changes": await rows(state, made)}


async def _target(call: OperationCall[Folder, Any]) -> Target:
    found = targets(await find_folder(call.state, call.query.folder)).get(call.path["part"])
    if found is None:
        raise Missing("The parts of the journal are memory, user and project.")
    return found


async def find_folder(state: ServerState, wanted: str) -> Path:
    """Return the folder whose journal is meant. Raises Missing."""
    if wanted and wanted not in await _folders(state):
        raise Missing("There is no journal of that folder.")
    return Path(wanted) if wanted else state.hone.folder


async def _folders(state: ServerState) -> list[str]:
    held = await state.hone.ledger.held_below(PROJECT)
    return sorted({path_to_text(state.hone.folder), *(target.removeprefix(PROJECT) for target in held)})


OPERATIONS = (
    Operation("GET", "/api/journal", read, query=Folder),
    Operation("PUT", "/api/journal/{part}", write, query=Folder, body=JournalText),
    Operation("POST", "/api/journal/{part}", change, query=Folder, body=Lines),
)
