"""Reviews: the queue, what each took and changed; started, tried again, cancelled."""

from typing import Annotated, Any

import msgspec

from hone.core.errors import Missing
from hone.core.jobs import JobId
from hone.core.ledger import NO_SESSION
from hone.core.secrets import redact
from hone.core.topics import NAMES
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


async def listed(asked: OperationCall[ReviewQuery, Nothing]) -> dict[str, Any]:
    """The newest first: done, at work, to come."""
    hone = asked.house.hone
    found = await reports(hone, await hone.jobs.jobs(asked.query.limit))
    return {"reviews": [data(each) for each in found]}


async def one(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One review: what was said in it from its question on, and what it changed."""
    hone = asked.house.hone
    job = await hone.jobs.job(_id(asked))
    entries = [await hone.library.keeper.ledger.entry(each) for each in job.changes]
    said: list[Any] = []
    if job.review != NO_SESSION:
        try:
            stored = await hone.sessions.load(job.review)
            said = to_data(stored, redact)["messages"][stored.header.shared :]
        except Missing:
            said = []  # deleted with its conversation
    return {**await _told(asked.house, job.id), "made": await rows(asked.house, entries), "said": said}


async def start(asked: OperationCall[Nothing, About]) -> dict[str, Any]:
    """Looks back over a conversation for what is worth keeping: queued, and done soon."""
    house = asked.house
    topics = frozenset(asked.body.topics or NAMES)
    job = await queued(house.hone, asked.path["session"], topics, house.clock.now())
    house.hone.background.notify()
    return await _told(house, job.id)


async def retry(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One that failed or was cancelled goes into the queue again."""
    await asked.house.hone.jobs.retry(_id(asked))
    asked.house.hone.background.again(_id(asked))
    return await _told(asked.house, _id(asked))


async def cancel(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Out of the queue; if it is at work, what it learns is dropped."""
    await asked.house.hone.jobs.cancel(_id(asked), asked.house.clock.now())
    return await _told(asked.house, _id(asked))


async def _told(house: ServerState, id: JobId) -> dict[str, Any]:
    [report] = await reports(house.hone, [await house.hone.jobs.job(id)])
    return data(report)


def _id(asked: OperationCall[Any, Any]) -> JobId:
    return JobId(asked.path["review"])


OPERATIONS = (
    Operation("GET", "/api/reviews", listed, query=ReviewQuery),
    Operation("GET", "/api/reviews/{review:int}", one),
    Operation("POST", "/api/reviews/{review:int}/retry", retry),
    Operation("POST", "/api/reviews/{review:int}/cancel", cancel),
    Operation("POST", "/api/sessions/{session}/review", start, body=About, status=202),
)
