"""What becomes of a job, what is refused, and in which words: the same in every store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hone.core.errors import Conflict, Missing, Refused
from hone.core.ids import SessionId
from hone.core.jobs import Job, JobId, State
from hone.core.ledger import ChangeId
from hone.core.messages import sound

DELETED = "its session was deleted"


def queued(job: Job) -> Job:
    """The job itself. Raises Conflict unless it is queued."""
    if job.state is not State.QUEUED:
        raise Conflict(f"Review {job.id} is {job.state} by now; nothing was changed.")
    return job


def begun(job: Job, review: SessionId) -> Job:
    return replace(queued(job), tries=job.tries + 1, review=SessionId(sound(review)))


def completed(job: Job, cached: float | None, at: datetime, changes: Sequence[ChangeId]) -> Job:
    return replace(queued(job), state=State.DONE, cached=cached, error="", ended=at, changes=tuple(changes))


def failed(job: Job, error: str, at: datetime, *, again: bool) -> Job:
    queued(job)
    if again:
        return replace(job, error=sound(error))
    return replace(job, state=State.FAILED, error=sound(error), ended=at)


def cancelled(job: Job, at: datetime) -> Job:
    return replace(queued(job), state=State.CANCELLED, ended=at)


def orphaned(job: Job) -> Job:
    """Nobody says when a session is deleted."""
    return replace(job, state=State.CANCELLED, error=DELETED) if job.state is State.QUEUED else job


def retried(job: Job) -> Job:
    """It has all its tries before it again."""
    if job.state not in (State.FAILED, State.CANCELLED):
        raise Conflict(
            f"Review {job.id} is {job.state}; only one that failed or was cancelled can be retried."
        )
    return replace(job, state=State.QUEUED, tries=0, error="", ended=None)


def reach(session: SessionId, messages: int, length: int) -> None:
    """Raises Refused unless a session of this length has so many messages to look at."""
    if not 1 <= messages <= length:
        raise Refused(f"Session {session} has {length} messages, so {messages} cannot be reviewed.")


def absent(id: JobId) -> Missing:
    return Missing(f"There is no review {id}.")
