"""Reviews as durable jobs: queued with the last message of a turn, completed together with their changes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NewType, Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.ledger import NO_SESSION, Change, ChangeId, Entry
from hone.core.permit import REVIEW, Effect

JobId = NewType("JobId", int)


Topics = frozenset[str]
"""What a review is about, by name; see hone.core.topics."""


class State(StrEnum):
    QUEUED = "queued"
    """Waiting, or running in a process that holds its lock."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


Counters = Mapping[str, int]
"""For each topic, the count toward its next review; a missing topic has counted nothing."""


class TopicCount(Struct, frozen=True):
    """What a turn adds to the counter of a topic, or that it `resets` it. A review is due when the counter
    reaches `interval` (0: never), for the reason `why`; then the counter starts over."""

    topic: str
    adds: int = 0
    interval: int = 0
    resets: bool = False
    why: str = ""

    def advance(self, counters: Counters) -> int:
        """Return the counter after the turn."""
        return 0 if self.resets else counters.get(self.topic, 0) + self.adds

    def is_due(self, counters: Counters) -> bool:
        return bool(self.interval) and self.advance(counters) >= self.interval


def count_topics(counters: Counters, counts: Sequence[TopicCount]) -> tuple[Counters, Topics, str]:
    """Return the counters after a turn, the topics that are due, and why. A store calls this inside its
    transaction."""
    due = [each for each in counts if each.is_due(counters)]
    after = {each.topic: each.advance(counters) for each in counts}
    why = " and ".join(each.why for each in due if each.why)
    return (
        {**counters, **after, **{each.topic: 0 for each in due}},
        frozenset(each.topic for each in due),
        why,
    )


CUT_OFF = "a turn that was cut off"
"""The cue of words that were not searched yet. It stays if their turn never got an answer."""
FOLLOWED = "what followed a review"
"""The cue of words without another one, in a conversation that was left, reviewed and resumed before it
counted as silent. Had the owner stayed, one review would have read it all. It waits for that silence."""
BY_HAND = "by hand"
"""The reason of a review that the owner asked for."""
ENOUGH = 4
"""The owner's turns that justify a review without any cue."""
TOGETHER = 12
"""The most conversations in one review."""


class Look(Struct, frozen=True):
    """When to look back over a conversation if nothing follows. It is stored with the owner's words, so that
    leaving in any way loses nothing. `cue` names why these words alone justify a review; without one, the
    conversation waits until enough was said in its folder. `turns` are the owner's turns that it adds, where
    a turn in which owners tell about themselves counts as three; a look that adds none only delays what is to
    come. `is_examined`: the owner's last words were searched, which happens only after they are sent to the
    model. `topics` are the topics of the review. `since` is the moment that the conversation had reached
    before these words, unless it was silent for long: a review queued since then came early, and they belong
    to it."""

    at: datetime
    cue: str = ""
    turns: int = 1
    tainted: bool = False
    topics: Topics = frozenset()
    is_examined: bool = False
    since: datetime | None = None

    @property
    def is_new(self) -> bool:
        return bool(self.turns or self.cue or self.is_examined)


class TurnSummary(Struct, frozen=True):
    """What a turn adds: replies that called tools, and the tools that changed something. `fixed`: a tool
    failed and then worked. `answered`: the turn reached its end."""

    iterations: int = 0
    changed_by: frozenset[str] = frozenset()
    fixed: bool = False
    answered: bool = True


class PendingLook(Struct, frozen=True):
    """A conversation whose last `turns` of the owner's are not reviewed yet. `tainted`: it holds foreign
    text."""

    session: SessionId
    tree: SessionId
    messages: int
    folder: str
    due: datetime
    cue: str
    turns: int
    tainted: bool = False


Needed = Mapping[str, int]
"""By folder, how many turns justify a review without any cue, where that is not ENOUGH."""
USUAL: Needed = {}


def find_ripe(
    looks: Sequence[PendingLook], *, first: bool, needed: Needed = USUAL
) -> list[list[PendingLook]]:
    """Return the groups of looks that become reviews. A look with a cue or enough turns is reviewed alone;
    the others of one folder are reviewed together once they have enough. `first`: no review was ever queued
    in this home, so one turn is enough. Conversations with foreign text never share a review with others,
    whose lessons would then have to wait for approval."""
    found = [[look] for look in looks if _is_enough(look, needed)]
    groups: dict[tuple[str, bool], list[PendingLook]] = {}
    for look in looks:
        if not _is_enough(look, needed):
            groups.setdefault((look.folder, look.tainted), []).append(look)
    for (folder, _), group in groups.items():
        least = 1 if first and not found else needed.get(folder, ENOUGH)
        found += [each for each in batched(group, TOGETHER) if _is_ripe(each, least)]
    return found


def _is_ripe(group: Sequence[PendingLook], least: int) -> bool:
    """Tell whether a group has enough turns. Where more than usual is needed, a full group is enough."""
    return sum(look.turns for look in group) >= least or (least > ENOUGH and len(group) >= TOGETHER)


def find_next(
    looks: Sequence[PendingLook], now: datetime, *, first: bool, needed: Needed = USUAL
) -> datetime | None:
    """Return when the next review becomes due if nothing happens until then; None if none does."""
    if find_ripe([look for look in looks if look.due <= now], first=first, needed=needed):
        return now
    ripe = [look for group in find_ripe(looks, first=first, needed=needed) for look in group]
    return min((look.due for look in ripe if look.due > now), default=None)


def _is_enough(look: PendingLook, needed: Needed) -> bool:
    return bool(look.cue) or look.turns >= needed.get(look.folder, ENOUGH)


def batched(looks: Sequence[PendingLook], size: int) -> Iterator[list[PendingLook]]:
    for start in range(0, len(looks), size):
        yield list(looks[start : start + size])


class Topic(Struct, frozen=True):
    """Something a review can be about. `name` is stored and never changes. A review is due when `counts` has
    added up to `interval` (0: never), for which `setting` is the key below `learning`; a turn that `resets`
    makes it less urgent. `unit` is what is counted, in words. `question` is what a review is asked, unless
    the user has put a text of their own in its place."""

    name: str
    unit: str
    counts: Callable[[TurnSummary], int]
    resets: Callable[[TurnSummary], bool]
    question: str
    interval: int = 10
    setting: str = ""
    effects: frozenset[Effect] = REVIEW.effects
    """What a review of it may do, within the permit of all reviews."""


class Job(Struct, frozen=True):
    """A review of the first `messages` of a session. `tree` is the conversation that all its branches and
    forks come from. `why` is what triggered it. `review` is the session of its last try, `cached` the share
    of that session's first request that came from the provider's cache."""

    id: JobId
    session: SessionId
    tree: SessionId
    messages: int
    topics: Topics
    created: datetime
    why: str
    state: State = State.QUEUED
    tries: int = 0
    review: SessionId = NO_SESSION
    cached: float | None = None
    error: str = ""
    ended: datetime | None = None
    changes: tuple[ChangeId, ...] = ()
    others: tuple[tuple[SessionId, int], ...] = ()
    """Further conversations in the same review, each with its number of messages."""


class Jobs(Protocol):
    """Writes are durable when a method returns. A lock, not this port, decides who may work on a job."""

    async def enqueue(self, session: SessionId, messages: int, topics: Topics, why: str, at: datetime) -> Job:
        """Queue a review by hand. Raises Missing if there is no such session, Refused if it has fewer
        messages."""
        ...

    async def job(self, id: JobId) -> Job:
        """Raises Missing."""
        ...

    async def jobs(self, limit: int | None = None) -> Sequence[Job]:
        """Return jobs, newest first."""
        ...

    async def waiting(self, session: SessionId | None = None) -> Sequence[Job]:
        """Return queued jobs, of all sessions or of one, oldest first."""
        ...

    async def begin(self, id: JobId, review: SessionId) -> Job:
        """Begin another try, in this session. Raises Conflict unless the job is queued."""
        ...

    async def complete(
        self,
        id: JobId,
        changes: Sequence[Change],
        contents: Mapping[str, bytes],
        cached: float | None,
        at: datetime,
        covered: Sequence[JobId] = (),
        review: SessionId = NO_SESSION,
    ) -> Sequence[Entry]:
        """Record the changes and mark the job done, both or neither. Queued jobs that it `covered` are done
        with it. Raises Conflict unless it is queued, or if another try has begun since the one in the session
        `review`; and what Ledger.record raises."""
        ...

    async def fail(self, id: JobId, error: str, at: datetime, *, again: bool) -> None:
        """Mark a try as failed. `again`: the job stays queued, with the reason. Raises Conflict unless it is
        queued."""
        ...

    async def cancel(self, id: JobId, at: datetime) -> None:
        """Cancel a job. Raises Conflict unless it is queued."""
        ...

    async def retry(self, id: JobId) -> None:
        """Queue a failed or cancelled job again. Raises Conflict for any other."""
        ...

    async def looks(self) -> Sequence[PendingLook]:
        """Return the conversations that still have to be looked back over, the first that is due first."""
        ...

    async def hasten(self, sessions: Collection[SessionId], now: datetime) -> None:
        """Make the looks of these conversations due now, since the owner has left them. Skip what followed a
        review and is not enough for another."""
        ...

    async def promote(self, now: datetime, topics: Topics, needed: Needed = ...) -> Sequence[Job]:
        """Queue reviews of what is due and ripe; some folders need more turns, as `needed` says. The counters
        of their topics start over. Each look becomes part of one job, however many processes do this."""
        ...

    async def counters(self, session: SessionId) -> Counters:
        """Return the counters of a session's tree."""
        ...
