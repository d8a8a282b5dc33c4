"""List changes with their authors and evidence, and approve, reject or undo them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from hone.core.errors import Conflict
from hone.core.ledger import SKILL, Actor, ChangeId, ChangeQuery, Entry
from hone.core.messages import canonical, digest
from hone.knowledge.descriptions import WAITS, DescribedChange, data, describe, diff, stat
from hone.knowledge.journal import entries
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.resemblance import contradicts, find_alike
from hone.knowledge.sections import find_new_entries
from hone.knowledge.snapshots import journals
from hone.knowledge.sources import quote
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.state import ServerState


class Timeline(msgspec.Struct, frozen=True):
    """`target` is one target, or the beginning of some if it ends with a colon."""

    target: str = ""
    actor: Actor | None = None
    session: str = ""
    since: datetime | None = None
    before: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class Approval(msgspec.Struct, frozen=True):
    """`seen` is the digest that came with the change: what was shown takes effect, or nothing does."""

    seen: str


def row(change: DescribedChange) -> dict[str, Any]:
    target = change.entry.change.target
    return {
        **data(change),
        "text": change.words,
        "marks": change.marks,
        "lines": stat(change.steps),
        "rows": [{"sign": sign, "text": text} for sign, text in diff(target, change.steps)],
    }


def seen(group: Iterable[Entry]) -> str:
    """Of what changes do that are answered together, by content."""
    told = [
        [entry.id, entry.change.target, entry.change.kind, _contents(entry)]
        for entry in sorted(group, key=lambda entry: entry.id)
    ]
    return digest(canonical(told).encode())


def _contents(entry: Entry) -> list[list[str | None]]:
    return [[each.path, each.before, each.after] for each in entry.change.deltas]


async def rows(state: ServerState, made: Iterable[Entry]) -> list[dict[str, Any]]:
    """With each that waits `others` that are answered with it, so that they are shown with it."""
    keeper, found = state.hone.keeper, []
    for change in await describe(keeper, made):
        group = await keeper.together(change.entry) if change.fate == WAITS else [change.entry]
        others = await describe(keeper, [each for each in group if each.id != change.entry.id])
        found.append({**row(change), "others": [row(each) for each in others], "seen": seen(group)})
    return found


async def timeline(call: OperationCall[Timeline, Nothing]) -> dict[str, Any]:
    """Changes of the journal and the skills, the newest first; `before` leads to the older ones."""
    state, query = call.state, call.query
    keeper = state.hone.keeper
    if query.before is None:
        for target in journals(state.hone.folder):
            await keeper.text(target)  # what was edited by hand belongs to it
    latest = await keeper.ledger.latest()
    found = await keeper.ledger.entries(
        ChangeQuery(
            target=query.target,
            actor=query.actor,
            session=query.session,
            since=_aware(query.since) if query.since else None,
            before=ChangeId(query.before) if query.before else None,
            limit=query.limit,
        )
    )
    return {"changes": await rows(state, found), "latest": latest}


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


async def one(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One change, with the words it rests on."""
    hone = call.state.hone
    entry = await hone.ledger.entry(_id(call))
    [change] = await rows(call.state, [entry])
    grounds = [
        {**each, "words": await quote(hone.sessions, evidence)}
        for each, evidence in zip(change["evidence"], entry.change.author.evidence, strict=True)
    ]
    return {**change, "evidence": grounds}


async def pending(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """What waits for the owner, the oldest first; of a group the first one, which has the others with it.
    `near` are entries that it resembles or contradicts."""
    found: dict[str, Entry] = {}
    keeper = call.state.hone.keeper
    for entry in await keeper.ledger.pending():
        found.setdefault(entry.change.group or str(entry.id), entry)
    told = await rows(call.state, found.values())
    near = [await _near(keeper, entry) for entry in found.values()]
    return {"changes": [{**each, "near": beside} for each, beside in zip(told, near, strict=True)]}


async def _near(keeper: Keeper, entry: Entry) -> list[dict[str, str]]:
    """Return the entries of the same part that a new one may repeat or contradict."""
    target = entry.change.target
    if target.startswith(SKILL):
        return []
    held = entries(await keeper.text(target))
    return [
        {"text": each, "new": new, "relation": "contradicts" if contradicts(new, each) else "resembles"}
        for new in sorted(await find_new_entries(keeper, entry))
        for each in find_alike(new, held)
        if each != new
    ]


async def approve(call: OperationCall[Nothing, Approval]) -> dict[str, Any]:
    """What waits takes effect, byte for byte as it was shown."""
    keeper, id = call.state.hone.keeper, _id(call)
    if seen(await keeper.together(await keeper.ledger.entry(id))) != call.body.seen:
        raise Conflict("This is not what was shown; read the change again. Nothing was approved.")
    return await made(call.state, await keeper.approve(id))


async def reject(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """What waits is turned down; it stays in the timeline."""
    return await made(call.state, await call.state.hone.keeper.reject(_id(call)))


async def undo(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """A change is taken back, and nothing that came later."""
    return await made(call.state, await call.state.hone.keeper.undo(_id(call)))


async def confirm(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """What took effect by itself is confirmed by its owner."""
    return await made(call.state, await call.state.hone.keeper.confirm(_id(call), OWNER))


async def made(state: ServerState, entry: Entry) -> dict[str, Any]:
    [change] = await rows(state, [entry])
    return change


def _id(call: OperationCall[Any, Any]) -> ChangeId:
    return ChangeId(call.path["change"])


OPERATIONS = (
    Operation("GET", "/api/changes", timeline, query=Timeline),
    Operation("GET", "/api/changes/{change:int}", one),
    Operation("GET", "/api/pending", pending),
    Operation("POST", "/api/changes/{change:int}/approve", approve, body=Approval),
    Operation("POST", "/api/changes/{change:int}/reject", reject),
    Operation("POST", "/api/changes/{change:int}/undo", undo),
    Operation("POST", "/api/changes/{change:int}/confirm", confirm),
)
