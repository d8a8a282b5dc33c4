"""Reduce the cost of learning where it does not pay: by folder, over 30 days.

A review pays if something it wrote lasts: on the owner's word, approved, confirmed, or a skill that was used.
Any other cost is unpaid, whether the lesson was undone, rejected, refused or never needed so far. A folder
may cost `learning.unpaid` plus as much as its reviews that paid. As it nears that limit, its conversations
are collected longer and read together. What the owner asks Hone to learn is always read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.jobs import BY_HAND, ENOUGH, USUAL, Job, JobId, Jobs, Needed, State
from hone.core.ledger import SKILL, ChangeId, ChangeKind, ChangeQuery, ChangeState, Entry
from hone.core.messages import Role
from hone.core.overview import Overview, SpentCall
from hone.core.skill import UsageCounts
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.knowledge import places
from hone.knowledge.library import Library
from hone.knowledge.reasons import LABELS, find_cue
from hone.learning.budget import Bounds
from hone.settings import Settings
from hone.stores.home import Stores

DAYS = 30
SLACK = 1.05
"""A folder's limit is kept within a twentieth."""
JOBS = 1_000
"""The most recent reviews to check."""
KEPT_FOR = 60.0
"""Seconds for which a result is cached: each turn asks for it."""
TOKENS = Bounds().daily_tokens / Bounds().daily
"""Tokens that count as a dollar if no price is known."""
UNPAID = "Reviews here cost"
"""The start of the reason why a review waits."""
_LATEST = 5
"""How many reviews to estimate the next one's cost from."""
_STEPS = ((0.75, 16, 8), (0.5, 8, 4), (0.25, 4, 2))
"""From this share of the limit on, or after this many reviews in a row that wrote nothing lasting, this many
times as many turns are needed."""


class ReviewWorth(StrEnum):
    PAID = "paid"
    OPEN = "open"
    """Nothing it wrote was taken back, and nothing was needed so far."""
    JUNK = "junk"
    """Everything it wrote was undone, rejected or refused."""
    EMPTY = "empty"
    """It found nothing to write, which is fine."""


class SpentReview(Struct, frozen=True):
    """A review with its cost in dollars, and its result."""

    job: JobId
    folder: str
    cost: float
    worth: ReviewWorth


class Payback(Struct, frozen=True):
    """What learning in a folder cost and brought. `estimate` is the likely cost of the next review,
    `reserved` that of the running ones."""

    folder: str
    limit: float
    paid: float = 0.0
    unpaid: float = 0.0
    streak: int = 0
    junk: int = 0
    reviews: int = 0
    estimate: float = 0.0
    reserved: float = 0.0

    @property
    def allowed(self) -> float:
        return self.limit + self.paid

    @property
    def factor(self) -> int:
        """Return how many times as many turns are needed before conversations are read."""
        share = self.unpaid / self.allowed if self.allowed else 0.0
        return next((more for from_, in_row, more in _STEPS if share >= from_ or self.streak >= in_row), 1)

    @property
    def is_over(self) -> bool:
        """Whether one more review would exceed the folder's limit."""
        return self.unpaid + self.reserved + self.estimate > SLACK * self.allowed

    @property
    def is_spent(self) -> bool:
        return self.unpaid >= self.allowed


def is_automatic(job: Job) -> bool:
    """Tell whether a review was due without any words of the owner's that asked for it."""
    return job.why != BY_HAND and job.why not in LABELS.values()


def asks_to_learn(node: Node) -> bool:
    """Tell whether these words of the owner's are a reason to learn."""
    message = node.message
    is_owners = message.role is Role.USER and node.trust is Trust.OWNER and not message.template
    return is_owners and bool(find_cue(message.text))


def explain(payback: Payback) -> str:
    """Return why a review waits."""
    return (
        f"{UNPAID} {payback.unpaid:.2f} USD in {DAYS} days for nothing that lasted, and "
        f"learning.unpaid allows {payback.allowed:.2f}. Hone still learns what you ask it to remember, "
        "correct or state; hone review reads a conversation anyway."
    )


def describe(payback: Payback) -> str:
    """Describe a folder where learning does not pay; empty elsewhere."""
    where = payback.folder or "conversations without a folder"
    cost = f"{payback.unpaid:.2f} of {payback.allowed:.2f} USD in {DAYS} days brought nothing that lasted"
    if payback.is_over or payback.is_spent:
        return f"{where}: only what you ask for is reviewed, because {cost}."
    if payback.factor == 1:
        return ""
    needed = ENOUGH * payback.factor
    lasting = f"the last {payback.streak} reviews wrote nothing that lasted"
    why = cost if payback.streak < _STEPS[-1][1] else lasting
    return f"{where}: conversations are read after {needed} turns instead of {ENOUGH}, because {why}."


class Paying:
    """`limit` is in US dollars; 0: none."""

    def __init__(self, overview: Overview, jobs: Jobs, library: Library, clock: Clock, limit: float) -> None:
        self._overview = overview
        self._jobs = jobs
        self._library = library
        self._clock = clock
        self._limit = limit
        self._reserved: dict[JobId, tuple[str, float]] = {}
        self._needed: tuple[float, Needed] = (-KEPT_FOR, USUAL)
        self._refused: dict[SessionId, bool] = {}

    async def needed(self) -> Needed:
        """Return the folders that need more turns, and how many. A result is cached for a minute."""
        at, found = self._needed
        if self._limit and self._clock.monotonic() - at >= KEPT_FOR:
            every = await self.all()
            found = {each.folder: ENOUGH * each.factor for each in every if each.factor > 1}
            self._needed = self._clock.monotonic(), found
        return found

    async def find(self, folder: str, but: JobId | None = None) -> Payback:
        """Return the state of a folder. What job `but` reserved does not count."""
        known = {each.folder: each for each in await self.all(but)}
        return known.get(folder) or Payback(folder, self._limit)

    async def all(self, but: JobId | None = None) -> Sequence[Payback]:
        """Return all folders with reviews, by name."""
        spent = await self._spent() if self._limit else ()
        held: dict[str, float] = {}
        for id, (folder, cost) in self._reserved.items():
            held[folder] = held.get(folder, 0.0) + (cost if id != but else 0.0)
        return [
            add_up(
                folder, self._limit, [each for each in spent if each.folder == folder], held.get(folder, 0.0)
            )
            for folder in sorted({each.folder for each in spent})
        ]

    @contextmanager
    def reserve(self, job: JobId, payback: Payback) -> Iterator[None]:
        """Count what a running review may cost."""
        self._reserved[job] = payback.folder, payback.estimate
        try:
            yield
        finally:
            self._reserved.pop(job, None)

    async def _spent(self) -> Sequence[SpentReview]:
        now = self._clock.now()
        since = now - timedelta(days=DAYS)
        calls = await self._overview.calls(since, now + timedelta(seconds=1), (Origin.REVIEW,))
        jobs = {each.review: each for each in await self._jobs.jobs(JOBS) if each.review}
        made = await self._made([job for job in jobs.values() if job.created >= since])
        uses = await self._library.usage_counts()
        by_session: dict[SessionId, list[SpentCall]] = {}
        for call in calls:
            by_session.setdefault(call.session, []).append(call)
        found = []
        for session, own in by_session.items():
            job = jobs.get(session)
            if job and is_automatic(job):
                worth = await self._judge(job, made, uses, len(own))
                found.append(SpentReview(job.id, own[0].folder, sum(map(_cost, own)), worth))
        return found

    async def _made(self, jobs: Sequence[Job]) -> Mapping[ChangeId, Entry]:
        """Return what these reviews wrote, and its fate."""
        first = min((id for job in jobs for id in job.changes), default=None)
        if first is None:
            return {}
        entries = await self._library.keeper.ledger.entries(ChangeQuery(after=ChangeId(first - 1)))
        return {each.id: each for each in entries}

    async def _judge(
        self, job: Job, made: Mapping[ChangeId, Entry], uses: Mapping[str, UsageCounts], calls: int
    ) -> ReviewWorth:
        if job.state is State.QUEUED:
            return ReviewWorth.OPEN
        if not job.changes:
            return ReviewWorth.JUNK if calls > 1 and await self._was_refused(job) else ReviewWorth.EMPTY
        fates = {judge(made[id], made, uses) for id in job.changes if id in made}
        if ReviewWorth.PAID in fates:
            return ReviewWorth.PAID
        return ReviewWorth.JUNK if fates == {ReviewWorth.JUNK} else ReviewWorth.OPEN

    async def _was_refused(self, job: Job) -> bool:
        """Tell whether a review tried to write something that was refused."""
        if job.review not in self._refused:
            try:
                window = await self._overview.window(job.review, None, 12)
            except StoreError:
                return False
            own = max(0, window.header.shared + 1 - window.first)
            results = [node.message.result for node in window.nodes[own:]]
            self._refused[job.review] = any(each and each.failed for each in results)
        return self._refused[job.review]


def judge(entry: Entry, made: Mapping[ChangeId, Entry], uses: Mapping[str, UsageCounts]) -> ReviewWorth:
    """Return the fate of a change."""
    answer = made.get(entry.settled) if entry.settled else None
    kind = answer.change.kind if answer and not answer.settled else None
    if kind in (ChangeKind.UNDO, ChangeKind.REJECT):
        return ReviewWorth.JUNK
    if kind in (ChangeKind.APPROVE, ChangeKind.CONFIRM):
        return ReviewWorth.PAID
    change = entry.change
    if change.standing is ChangeState.PENDING:
        return ReviewWorth.OPEN
    if change.confirmed:
        return ReviewWorth.PAID
    used = change.target.startswith(SKILL) and uses.get(places.name_of(change.target), UsageCounts()).uses
    return ReviewWorth.PAID if used else ReviewWorth.OPEN


def add_up(folder: str, limit: float, spent: Iterable[SpentReview], reserved: float = 0.0) -> Payback:
    """Add up the reviews of a folder."""
    rows = sorted(spent, key=lambda each: each.job)
    streak = 0
    for each in rows:
        if each.worth is ReviewWorth.JUNK:
            streak += 1
        elif each.worth is ReviewWorth.PAID:
            streak = 0
    return Payback(
        folder,
        limit,
        sum(each.cost for each in rows if each.worth is ReviewWorth.PAID),
        sum(each.cost for each in rows if each.worth in (ReviewWorth.OPEN, ReviewWorth.JUNK)),
        streak,
        sum(each.worth is ReviewWorth.JUNK for each in rows),
        len(rows),
        max((each.cost for each in rows[-_LATEST:]), default=0.0),
        reserved,
    )


def _cost(call: SpentCall) -> float:
    usage = call.spending.usage
    return (usage.input + usage.output) / TOKENS if usage.cost is None else usage.cost


class PayingHome(Protocol):
    """The parts of a home that tell where learning does not pay."""

    @property
    def stores(self) -> Stores: ...
    @property
    def library(self) -> Library: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...


async def explain_slower(home: PayingHome) -> list[str]:
    """Return a sentence for each place where reviews are rarer or wait, with the reason."""
    stores, limit = home.stores, home.settings.learning.unpaid
    paying = Paying(stores.overview, stores.jobs, home.library, home.clock, limit)
    return [said for each in await paying.all() if (said := describe(each))]
