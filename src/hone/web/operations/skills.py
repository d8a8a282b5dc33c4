"""List, search, read and edit skills, and pin, archive or restore them."""

from typing import Annotated, Any

import msgspec

from hone.core.errors import Conflict, Missing
from hone.core.ledger import ChangeQuery, skill
from hone.core.messages import digest
from hone.core.skill import DOCUMENT, ListedSkill, SkillOrigin, UsageCounts
from hone.core.value import replace
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.facts import content_digest, facts, split_facts
from hone.knowledge.skills.folder import (
    Archive,
    Create,
    Edit,
    Pin,
    RemoveFile,
    Restore,
    Rewrite,
    Unpin,
    WriteFile,
)
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.operations.changes import made, rows
from hone.web.state import ServerState

FOUND = 50


class SkillQuery(msgspec.Struct, frozen=True):
    """`query` searches those that are not archived. Without it, `limit` skills by name, of which the first
    `skip` are left out."""

    query: str = ""
    archived: bool = False
    skip: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100


class History(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class New(msgspec.Struct, frozen=True):
    """`text` is a whole SKILL.md."""

    name: str
    text: str


class SkillText(msgspec.Struct, frozen=True):
    """`seen` is the digest of the file that was read; empty for a new one."""

    text: str
    seen: str


def skill_row(each: ListedSkill) -> dict[str, Any]:
    return {
        "name": each.name,
        "description": each.description,
        "origin": each.origin,
        "pinned": each.pinned,
        "archived": each.archived,
        "project": each.project,
        "usage": each.counts,
    }


async def listed(call: OperationCall[SkillQuery, Nothing]) -> dict[str, Any]:
    """Skills by name, in pages; with a query, the best for it first. `total` counts all of them."""
    library, query = call.state.hone.library, call.query
    if not query.query.strip():
        found, total = await library.page(query.skip, query.limit, archived=query.archived)
        return {"skills": [skill_row(each) for each in found], "total": total}
    counts = await library.usage_counts()
    best = await library.search(query.query, FOUND)
    rows = [skill_row(replace(each, counts=counts.get(each.name, each.counts))) for each in best]
    return {"skills": rows, "total": len(rows)}


async def one(call: OperationCall[History, Nothing]) -> dict[str, Any]:
    """A skill with its files, what it was used for, what experiments found, and its history."""
    library, name = call.state.hone.library, call.path["name"]
    held = await library.files(name)
    known, files = facts(held), split_facts(held)[0]
    history = await library.keeper.ledger.entries(ChangeQuery(target=skill(name), limit=call.query.limit))
    return {
        "name": name,
        "origin": known.origin,
        "pinned": known.pinned,
        "archived": known.archived,
        "project": known.project,
        "source": known.source,
        "usage": (await library.usage_counts()).get(name, UsageCounts()),
        "measured": await call.state.hone.findings("skill", name, content_digest(held)),
        "files": [_file(path, data) for path, data in sorted(files.items(), key=_document_first)],
        "history": await rows(call.state, history),
    }


def _document_first(item: tuple[str, bytes]) -> tuple[bool, str]:
    return item[0] != DOCUMENT, item[0]


def _file(path: str, data: bytes) -> dict[str, Any]:
    try:
        text: str | None = data.decode()
    except UnicodeDecodeError:
        text = None
    return {"path": path, "bytes": len(data), "seen": digest(data), "text": text}


async def create(call: OperationCall[Nothing, New]) -> dict[str, Any]:
    """A new skill of the owner's."""
    return await _shelve(call.state, call.body.name, Create(call.body.text, SkillOrigin.USER))


async def write(call: OperationCall[Nothing, SkillText]) -> dict[str, Any]:
    """One of its files anew, unless somebody else wrote first."""
    name, path, body = call.path["name"], call.path["path"], call.body
    held = await call.state.hone.library.files(name)
    if path in held and not body.seen:
        raise Conflict(f"{name} has a file of that name already; read it first.")
    edit = (
        Rewrite(body.text, body.seen)
        if path == DOCUMENT
        else WriteFile(path, body.text.encode("utf-8", "replace"), body.seen)
    )
    return await _shelve(call.state, name, edit)


async def remove(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One of its files is taken away; undo brings it back."""
    name = call.path["name"]
    await call.state.hone.library.files(name)
    return await _shelve(call.state, name, RemoveFile(call.path["path"]))


MARKS: dict[str, Edit] = {"pin": Pin(), "unpin": Unpin(), "archive": Archive(), "restore": Restore()}


async def mark(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """`mark` is pin, unpin, archive or restore."""
    edit, name = MARKS.get(call.path["mark"]), call.path["name"]
    if edit is None:
        raise Missing(f"What can be done with a skill: {', '.join(MARKS)}.")
    await call.state.hone.library.files(name)
    return await _shelve(call.state, name, edit)


async def _shelve(state: ServerState, name: str, edit: Edit) -> dict[str, Any]:
    return await made(state, await state.hone.keeper.edit_skill(name, edit, OWNER))


OPERATIONS = (
    Operation("GET", "/api/skills", listed, query=SkillQuery),
    Operation("POST", "/api/skills", create, body=New, status=201),
    Operation("GET", "/api/skills/{name}", one, query=History),
    Operation("PUT", "/api/skills/{name}/files/{path:path}", write, body=SkillText),
    Operation("DELETE", "/api/skills/{name}/files/{path:path}", remove),
    Operation("POST", "/api/skills/{name}/{mark}", mark),
)
