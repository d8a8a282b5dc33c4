"""List, search, read, rename and branch sessions, and show the tree of their forks and reviews."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from hone.core.ports import SessionSummary
from hone.core.recall import Hit, Passage, Query, excerpt, is_own_question, pieces
from hone.core.secrets import redact
from hone.core.turn import Origin
from hone.core.value import replace
from hone.runtime.export import lineage, window_to_data
from hone.tools.recall import nothing
from hone.web.events import spent
from hone.web.operation import Nothing, Operation, OperationCall

WINDOW, WIDEST = 200, 1000
"""Messages of a window, and the most that one may have."""


class SessionQuery(msgspec.Struct, frozen=True):
    """`origin`: whose; without it, the user's own. `all` counts those that Hone made for itself, too. The
    first `skip` are left out."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    skip: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0
    origin: Origin = Origin.USER
    all: bool = False


class WindowQuery(msgspec.Struct, frozen=True):
    """At most `limit` messages: from number `from` on, or the last ones."""

    from_: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = msgspec.field(name="from", default=None)
    limit: Annotated[int, msgspec.Meta(ge=1, le=WIDEST)] = WINDOW


class Title(msgspec.Struct, frozen=True):
    title: Annotated[str, msgspec.Meta(max_length=500)]


class BranchRequest(msgspec.Struct, frozen=True):
    """`at` is the last message that the new one shares; without it, all are."""

    at: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None


def row(each: SessionSummary) -> dict[str, Any]:
    header = each.header
    return {
        "session": header.id,
        "title": redact(header.title),
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


async def listed(call: OperationCall[SessionQuery, Nothing]) -> dict[str, Any]:
    """Latest activity first, in pages. `more`: there are older ones."""
    query, state = call.query, call.state
    busy = await state.busy()  # first: a conversation that is not busy has its last answer in its row
    upto = query.skip + query.limit
    found = await state.hone.sessions.list(upto + 1, None if query.all else query.origin)
    rows = [row(each) for each in found[query.skip : upto]]
    return {"sessions": rows, "more": len(found) > upto, "busy": busy}


async def one(call: OperationCall[WindowQuery, Nothing]) -> dict[str, Any]:
    """A window of a conversation, with secrets taken out, and what the conversation took. `total` counts its
    messages."""
    hone, query = call.state.hone, call.query
    id = await hone.sessions.find(call.path["session"])
    overview = hone.stores.overview
    busy = id in await call.state.busy()  # first: what is not busy has its answer among its messages
    window = await overview.window(id, query.from_, query.limit)
    sums = await overview.session_sum(id)
    usage = sums.usage if not sums.unpriced else replace(sums.usage, cost=None)
    earlier = await overview.former_lines(id)
    return {
        **window_to_data(window, redact),
        "total": window.total,
        "usage": spent(usage),
        "calls": sums.calls,
        "earlier": [{"messages": messages, "model": model} for messages, model in earlier],
        "busy": busy,
    }


async def tree(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """All that belongs to one conversation: branches, reviews, children, by parent."""
    sessions = call.state.hone.sessions
    id = await sessions.find(call.path["session"])
    found = await sessions.list(None, None)
    headers = {each.header.id: each.header for each in found}
    tops = {each.header.id: lineage(headers, each.header)[-1].id for each in found}
    own = [each for each in found if tops[each.header.id] == tops.get(id)]
    return {"root": tops.get(id), "sessions": [row(each) for each in own]}


async def rename(call: OperationCall[Nothing, Title]) -> dict[str, Any]:
    """Gives it a title."""
    sessions = call.state.hone.sessions
    id = await sessions.find(call.path["session"])
    title = " ".join(call.body.title.split())
    await sessions.rename(id, title)
    return {"session": id, "title": title}


async def branch(call: OperationCall[Nothing, BranchRequest]) -> dict[str, Any]:
    """A new conversation with the first messages of this one."""
    hone = call.state.hone
    id = await hone.sessions.find(call.path["session"])
    return {"session": await hone.branch(id, call.body.at)}


class SearchQuery(msgspec.Struct, frozen=True):
    """A whole question, or words, "phrases" and prefix*. `all`: also what Hone said to itself."""

    query: Annotated[str, msgspec.Meta(max_length=2_000)]
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    all: bool = False


async def search(call: OperationCall[SearchQuery, Nothing]) -> dict[str, Any]:
    """Passages that may answer a question, the best first. Where there is none, `explanation` says why."""
    state, question = call.state, call.query
    today = state.clock.now().astimezone().date()
    query = Query(question.query, question.limit, today=today, asides=question.all)
    found = await state.hone.recall.search(query)
    return {
        "hits": [_hit(each, found.tried) for each in found.hits],
        "tried": found.tried,
        "dropped": found.dropped,
        "waiting": found.waiting,
        "explanation": "" if found.hits else nothing(found),
    }


def _hit(hit: Hit, terms: Sequence[str]) -> dict[str, Any]:
    header = hit.header
    return {
        "session": header.id,
        "tree": hit.tree,
        "title": redact(hit.title),
        "begun": header.created.isoformat(),
        "origin": header.origin,
        "left": hit.left,
        "score": hit.score,
        "passage": _passage(hit, hit.passage, terms),
        "before": _passage(hit, hit.before, terms) if hit.before else None,
        "after": _passage(hit, hit.after, terms) if hit.after else None,
    }


def _passage(hit: Hit, passage: Passage, terms: Sequence[str]) -> dict[str, Any]:
    """`pieces` are those of the text, each with whether it is a word that was looked for."""
    text = excerpt(redact(passage.text), terms)
    return {
        "number": passage.number,
        "itself": is_own_question(hit.header, passage.number, passage.role, passage.trust),
        "pieces": pieces(text, terms),
        "role": passage.role,
        "trust": passage.trust.name.lower(),
        "at": passage.at.isoformat(),
        "text": text,
    }


OPERATIONS = (
    Operation("GET", "/api/sessions", listed, query=SessionQuery),
    Operation("GET", "/api/sessions/{session}", one, query=WindowQuery),
    Operation("PATCH", "/api/sessions/{session}", rename, body=Title),
    Operation("GET", "/api/sessions/{session}/tree", tree),
    Operation("POST", "/api/sessions/{session}/branch", branch, body=BranchRequest, status=201),
    Operation("GET", "/api/search", search, query=SearchQuery),
)
