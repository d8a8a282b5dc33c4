"""Report on reviews: what triggered them, their progress, what they cost and what they changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from hone.core.errors import Missing, Refused
from hone.core.ids import SessionId
from hone.core.jobs import BY_HAND, Job, Jobs, Topics
from hone.core.ledger import NO_SESSION
from hone.core.model import Usage, total
from hone.core.ports import Sessions
from hone.core.turn import Origin
from hone.knowledge.library import Library
from hone.stores.home import Stores

AT_WORK = "at work"


class Home(Protocol):
    """The parts of a home that a report is made from."""

    @property
    def stores(self) -> Stores: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def library(self) -> Library: ...


class Report(Struct, frozen=True):
    """`usage` is that of each call of its last try; `waiting` counts its pending changes."""

    job: Job
    working: bool = False
    usage: tuple[Usage, ...] = ()
    waiting: int = 0

    @property
    def state(self) -> str:
        return AT_WORK if self.working else self.job.state

    @property
    def cached(self) -> float | None:
        """The share of its first request that the provider's cache held."""
        first = self.usage[0] if self.usage else None
        if self.job.cached is not None or first is None or not first.input:
            return self.job.cached
        return first.cached / first.input


async def reports(home: Home, jobs: Sequence[Job]) -> list[Report]:
    """Return reports. Of a conversation's queued jobs, the oldest is the running one."""
    pending = {entry.id for entry in await home.library.keeper.ledger.pending()}
    oldest: dict[SessionId, Job] = {}
    for job in await home.jobs.waiting():
        oldest.setdefault(job.tree, job)
    found = []
    held = await home.stores.claims.find_held(oldest)
    for job in jobs:
        first = oldest.get(job.tree)
        working = first is not None and first.id == job.id and job.tree in held
        spent = await home.sessions.spending(job.review) if job.review != NO_SESSION else ()
        waiting = len(pending.intersection(job.changes))
        found.append(Report(job, working, tuple(each.usage for each in spent), waiting))
    return found


def data(report: Report) -> dict[str, Any]:
    """Return a report for programs."""
    job, spent = report.job, total(report.usage)
    return {
        "id": job.id,
        "session": job.session,
        "messages": job.messages,
        "topics": sorted(job.topics),
        "why": job.why,
        "state": report.state,
        "tries": job.tries,
        "created": job.created.isoformat(),
        "ended": job.ended.isoformat() if job.ended else None,
        "review": job.review or None,
        "calls": len(report.usage),
        "input": spent.input,
        "cached": spent.cached,
        "output": spent.output,
        "first_request_cached": report.cached,
        "cost": spent.cost if report.usage else None,
        "changes": list(job.changes),
        "waiting": report.waiting,
        "error": job.error,
    }


async def queued(home: Home, beginning: str, topics: Topics, now: datetime) -> Job:
    """Queue a review by hand, of the latest session if none is named. Raises Missing or Refused if there is
    nothing to look back over."""
    latest = [] if beginning else await home.sessions.list(limit=1, own=True)
    if not beginning and not latest:
        raise Missing("There is no conversation to review yet.")
    id = await home.sessions.find(beginning) if beginning else latest[0].header.id
    stored = await home.sessions.load(id)
    if stored.header.origin is not Origin.USER:
        parent = stored.header.parent
        raise Refused(f"Session {id} is no conversation of yours, but a {stored.header.origin} of {parent}.")
    return await home.jobs.enqueue(id, len(stored.transcript), topics, BY_HAND, now)
