"""List reviews with their cost and their changes, and start, retry or cancel them."""

from typing import Annotated, Any

import msgspec

from hone.core.errors import Missing
from hone.core.jobs import JobId
from hone.core.ledger import NO_SESSION
from hone.core.secrets import redact
from hone.core.topics import NAMES
from hone.learning.paying import explain_slower
from hone.learning.reports import data, queued, reports
from hone.runtime.export import to_data
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.operations.changes import rows
from hone.web.state import ServerState

TopicName = Annotated[
    str,
    msgspec.Meta(pattern=f"^(?:{'|'.join(sorted(NAMES))})$", extra_json_schema={"enum": sorted(NAMES)}),
]


class ReviewQuery(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50


class About(msgspec.Struct, frozen=True):
    """What to look for; both, if nothing is named."""

    topics: list[TopicName] = []


async def listed(call: OperationCall[ReviewQuery, Nothing]) -> dict[str, Any]:
    """The newest first: done, at work, to come. `slower` says where learning does not pay and is rarer."""
    hone = call.state.hone
    found = await reports(hone, await hone.jobs.jobs(call.query.limit))
    return {"reviews": [data(each) for each in found], "slower": await explain_slower(hone)}


async def one(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One review: what was said in it from its question on, and what it changed."""
    hone = call.state.hone
    job = await hone.jobs.job(_id(call))
    entries = [await hone.ledger.entry(each) for each in job.changes]
    said: list[Any] = []
    if job.review != NO_SESSION:
        try:
            stored = await hone.sessions.load(job.review)
            said = to_data(stored, redact)["messages"][stored.header.shared :]
        except Missing:
            said = []  # deleted with its conversation
    return {**await _told(call.state, job.id), "made": await rows(call.state, entries), "said": said}


async def start(call: OperationCall[Nothing, About]) -> dict[str, Any]:
    """Looks back over a conversation for what is worth keeping: queued, and done soon."""
    state = call.state
    topics = frozenset(call.body.topics or NAMES)
    job = await queued(state.hone, call.path["session"], topics, state.clock.now())
    state.hone.background.notify()
    return await _told(state, job.id)


async def retry(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One that failed or was cancelled goes into the queue again."""
    await call.state.hone.jobs.retry(_id(call))
    call.state.hone.background.again(_id(call))
    return await _told(call.state, _id(call))


async def cancel(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Out of the queue; if it is at work, what it learns is dropped."""
    await call.state.hone.jobs.cancel(_id(call), call.state.clock.now())
    return await _told(call.state, _id(call))


async def _told(state: ServerState, id: JobId) -> dict[str, Any]:
    [report] = await reports(state.hone, [await state.hone.jobs.job(id)])
    return data(report)


def _id(call: OperationCall[Any, Any]) -> JobId:
    return JobId(call.path["review"])


OPERATIONS = (
    Operation("GET", "/api/reviews", listed, query=ReviewQuery),
    Operation("GET", "/api/reviews/{review:int}", one),
    Operation("POST", "/api/reviews/{review:int}/retry", retry, spends=True),
    Operation("POST", "/api/reviews/{review:int}/cancel", cancel),
    Operation("POST", "/api/sessions/{session}/review", start, body=About, status=202, spends=True),
)
