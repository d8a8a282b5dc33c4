"""Conversations: listed, read, named, branched, and the tree of forks and reviews they form."""

from typing import Annotated, Any

import msgspec

from hone.core.model import total
from hone.core.ports import SessionSummary
from hone.core.secrets import redact
from hone.core.turn import Origin
from hone.runtime.export import lineage, to_data
from hone.web.events import spent
from hone.web.operation import Nothing, Operation, OperationCall


class SessionQuery(msgspec.Struct, frozen=True):
    """`origin`: whose; without it, the user's own. `all` counts those that Hone made for itself, too."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    origin: Origin = Origin.USER
    all: bool = False


class Title(msgspec.Struct, frozen=True):
    title: Annotated[str, msgspec.Meta(max_length=500)]


class BranchRequest(msgspec.Struct, frozen=True):
    """`at` is the last message that the new one shares; without it, all are."""

    at: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None


def row(each: SessionSummary) -> dict[str, Any]:
    header = each.header
    return {
        "session": header.id,
        "title": header.title,
        "opening": each.opening,
        "origin": header.origin,
        "parent": header.parent,
        "shared": header.shared,
        "folder": header.folder,
        "model": each.model,
        "messages": each.messages,
        "created": header.created.isoformat(),
        "updated": each.updated.isoformat(),
    }


async def listed(asked: OperationCall[SessionQuery, Nothing]) -> dict[str, Any]:
    """Latest activity first."""
    query, house = asked.query, asked.house
    found = await house.hone.sessions.list(query.limit, None if query.all else query.origin)
    return {"sessions": [row(each) for each in found], "busy": house.talks.busy}


async def one(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """A whole conversation, with secrets taken out, and what it took."""
    sessions = asked.house.hone.sessions
    id = await sessions.find(asked.path["session"])
    stored, spendings = await sessions.load(id), await sessions.spending(id)
    earlier = await sessions.earlier(id)
    return {
        **to_data(stored, redact),
        "usage": spent(total(each.usage for each in spendings)),
        "calls": len(spendings),
        "earlier": [{"messages": len(each.transcript), "model": each.prefix.model} for each in earlier],
        "busy": id in asked.house.talks.busy,
    }


async def tree(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """All that belongs to one conversation: branches, reviews, children, by parent."""
    sessions = asked.house.hone.sessions
    id = await sessions.find(asked.path["session"])
    found = await sessions.list(None, None)
    headers = {each.header.id: each.header for each in found}
    tops = {each.header.id: lineage(headers, each.header)[-1].id for each in found}
    own = [each for each in found if tops[each.header.id] == tops.get(id)]
    return {"root": tops.get(id), "sessions": [row(each) for each in own]}


async def rename(asked: OperationCall[Nothing, Title]) -> dict[str, Any]:
    """Gives it a title."""
    sessions = asked.house.hone.sessions
    id = await sessions.find(asked.path["session"])
    title = " ".join(asked.body.title.split())
    await sessions.rename(id, title)
    return {"session": id, "title": title}


async def branch(asked: OperationCall[Nothing, BranchRequest]) -> dict[str, Any]:
    """A new conversation with the first messages of this one."""
    hone = asked.house.hone
    id = await hone.sessions.find(asked.path["session"])
    return {"session": await hone.branch(id, asked.body.at)}


OPERATIONS = (
    Operation("GET", "/api/sessions", listed, query=SessionQuery),
    Operation("GET", "/api/sessions/{session}", one),
    Operation("PATCH", "/api/sessions/{session}", rename, body=Title),
    Operation("GET", "/api/sessions/{session}/tree", tree),
    Operation("POST", "/api/sessions/{session}/branch", branch, body=BranchRequest, status=201),
)
