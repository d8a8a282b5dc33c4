"""Sessions, jobs and the outbox in the memory of this process: the reference for every other store."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from hone.core.ids import SessionId
from hone.core.jobs import (
    CUT_OFF,
    ENOUGH,
    FOLLOWED,
    USUAL,
    Counters,
    Job,
    JobId,
    Look,
    Needed,
    PendingLook,
    State,
    TopicCount,
    Topics,
    count_topics,
    find_ripe,
)
from hone.core.ledger import NO_SESSION, Change, ChangeId, ChangeState, Entry, Ledger
from hone.core.messages import sound
from hone.core.outbox import OutboxItem, OutboxStatus
from hone.core.ports import Header, SessionSummary, Spending, SpendingTotal, StoredSession
from hone.core.prefix import Prefix
from hone.core.topics import NAMES
from hone.core.transcript import Node, Transcript
from hone.core.turn import Origin
from hone.core.value import replace
from hone.stores import jobs as stages
from hone.stores import rules


class InMemorySessions:
    """The dict is in the order of activity: whoever is active is taken out and put at the end. The queue and
    the counters are for the jobs beside it."""

    def __init__(self) -> None:
        self._stored: dict[SessionId, StoredSession] = {}
        self._left: dict[SessionId, tuple[StoredSession, ...]] = {}
        self._spent: list[tuple[SessionId, Spending]] = []
        self.trees: dict[SessionId, SessionId] = {}
        self.counters: dict[SessionId, Counters] = {}
        self.queue: list[Job] = []
        self.pending: dict[SessionId, PendingLook] = {}

    async def start(
        self, header: Header, prefix: Prefix, nodes: Sequence[Node], look: Look | None = None
    ) -> None:
        if header.id in self._stored:
            raise rules.taken(header.id)
        rules.begin(header, nodes)
        base: tuple[Node, ...] = ()
        if header.parent is not None:
            parent = self._get(header.parent)
            rules.reach(header, parent.prefix.digest, prefix.digest, len(parent.transcript))
            base = parent.transcript.nodes[: header.shared]
        rules.follow(header.id, base[-1].hash if base else prefix.digest, nodes)
        transcript = Transcript(prefix.digest, (*base, *nodes), header.shared)
        self.trees[header.id] = header.id if header.parent is None else self.trees[header.parent]
        self._put(StoredSession(rules.storable(header), prefix, transcript))
        if look:
            self._look(header.id, look)

    async def append(
        self,
        session: SessionId,
        nodes: Sequence[Node],
        spending: Spending | None = None,
        counts: Sequence[TopicCount] = (),
        look: Look | None = None,
    ) -> Job | None:
        stored = self._get(session)
        rules.follow(session, stored.transcript.head, nodes)
        transcript = replace(stored.transcript, nodes=(*stored.transcript.nodes, *nodes))
        tree = self.trees[session]
        counters = self.counters.get(tree, {})
        after, due, why = count_topics(counters, counts)
        self._put(replace(stored, transcript=transcript))
        if spending is not None:
            self._spent.append((session, spending))
        topics = due | (look.topics if look else frozenset()) if due else due
        self.counters[tree] = {
            name: number for name, number in after.items() if number and name not in topics - due
        }
        if due:
            self.pending.pop(session, None)
            return self.enqueue(session, len(transcript), topics, why, transcript.nodes[-1].at)
        if look:
            self._look(session, look)
        return None

    def length(self, session: SessionId) -> int:
        return len(self._get(session).transcript)

    def _look(self, session: SessionId, look: Look) -> None:
        stored, before = self._get(session), self.pending.get(session)
        if before is None and not look.is_new:
            return
        self.pending[session] = PendingLook(
            session,
            self.trees[session],
            len(stored.transcript),
            stored.header.folder,
            look.at,
            self._merge_cue(session, before.cue if before else "", look),
            (before.turns if before else 0) + look.turns,
            bool(before and before.tainted) or look.tainted,
        )

    def _merge_cue(self, session: SessionId, before: str, look: Look) -> str:
        """One that only puts off what is to come changes no reason for it."""
        return _merge(before, sound(look.cue) or self._follow(session, look)) if look.is_new else before

    def _follow(self, session: SessionId, look: Look) -> str:
        since = look.since if look.is_new else None
        early = [job for job in self.queue if since and job.created > since]
        return FOLLOWED if any(session in (job.session, *dict(job.others)) for job in early) else ""

    def enqueue(self, session: SessionId, messages: int, topics: Topics, why: str, at: datetime) -> Job:
        id = JobId(len(self.queue) + 1)
        self.queue.append(Job(id, session, self.trees[session], messages, topics, at, sound(why)))
        return self.queue[-1]

    def review(self, group: Sequence[PendingLook], topics: Topics, at: datetime) -> Job:
        for look in group:
            del self.pending[look.session]
            counters = self.counters.get(look.tree, {})
            self.counters[look.tree] = {name: counters[name] for name in counters if name not in topics}
        first, *rest = group
        turns = sum(look.turns for look in group)
        why = first.cue or ("1 turn" if turns == 1 else f"{turns} turns")
        job = self.enqueue(first.session, first.messages, topics, why, at)
        self.queue[-1] = replace(job, others=tuple((look.session, look.messages) for look in rest))
        return self.queue[-1]

    async def move(self, session: SessionId, prefix: Prefix, transcript: Transcript) -> None:
        stored = self._get(session)
        rules.follow(session, prefix.digest, transcript.nodes)
        if [node.digest for node in stored.transcript.nodes] != [node.digest for node in transcript.nodes]:
            raise rules.changed(session)
        moved = Transcript(prefix.digest, transcript.nodes, stored.header.shared)
        self._left[session] = (*self._left.get(session, ()), stored)
        self._put(StoredSession(stored.header, prefix, moved))

    async def shorten(
        self,
        session: SessionId,
        after: str,
        transcript: Transcript,
        topics: Topics = frozenset(),
        look: Look | None = None,
    ) -> Job | None:
        stored = self._get(session)
        rules.replaces(session, stored.transcript.head, after, transcript.nodes)
        rules.follow(session, stored.prefix.digest, transcript.nodes)
        header = replace(stored.header, shared=0)
        self._left[session] = (*self._left.get(session, ()), stored)
        self._put(StoredSession(header, stored.prefix, Transcript(stored.prefix.digest, transcript.nodes)))
        due = self.pending.get(session) if topics else None
        whole = [replace(due, messages=len(stored.transcript))] if due else []
        job = self.review(whole, topics, transcript.nodes[-1].at) if due else None
        if look:
            self._look(session, look)
        return job

    async def load(self, session: SessionId) -> StoredSession:
        return self._get(session)

    async def earlier(self, session: SessionId) -> Sequence[StoredSession]:
        header = self._get(session).header
        return tuple(replace(line, header=header) for line in self._left.get(session, ()))

    async def find(self, beginning: str) -> SessionId:
        return rules.select(beginning, [id for id in self._stored if id.startswith(beginning)])

    async def list(
        self, limit: int | None = None, origin: Origin | None = Origin.USER, *, own: bool = False
    ) -> Sequence[SessionSummary]:
        chosen = [each for each in self._stored.values() if origin is None or each.header.origin is origin]
        latest = [_summary(each) for each in reversed(chosen)]
        brought = sorted(
            (each for each in latest if each.source), key=lambda each: each.updated, reverse=True
        )
        ours = (each for each in latest if not each.source)
        return tuple(rules.interleave(ours, () if own else brought))[:limit]

    async def rename(self, session: SessionId, title: str) -> None:
        stored = self._get(session)
        self._stored[session] = replace(stored, header=replace(stored.header, title=sound(title)))

    async def delete(self, session: SessionId) -> None:
        self._get(session)
        del self._stored[session]
        self._left.pop(session, None)
        self.pending.pop(session, None)
        self.queue = [self._orphaned(job) if job.session == session else job for job in self.queue]
        tree = self.trees.pop(session)
        if tree not in self.trees.values():
            self.counters.pop(tree, None)
        for each in [stored.header for stored in self._stored.values()]:
            if each.parent == session and each.origin is not Origin.USER and each.id in self._stored:
                await self.delete(each.id)

    async def find_deleted(self, beginning: str) -> Sequence[SessionId]:
        known = {session for session, _ in self._spent}
        return sorted(id for id in known - self._stored.keys() if id.startswith(beginning))

    async def spending(
        self,
        session: SessionId | None = None,
        *,
        since: datetime | None = None,
        origins: Collection[Origin] = (),
    ) -> Sequence[Spending]:
        return tuple(
            spent
            for id, spent in self._spent
            if (session is None or id == session)
            and (since is None or spent.at >= since)
            and (not origins or spent.origin in origins)
        )

    async def total_spending(
        self, since: datetime, until: datetime, origins: Collection[Origin]
    ) -> SpendingTotal:
        rows = [each for _, each in self._spent if since <= each.at < until and each.origin in origins]
        unpriced = sum(each.usage.input + each.usage.output for each in rows if each.usage.cost is None)
        return SpendingTotal(sum(each.usage.cost or 0.0 for each in rows), unpriced)

    def _orphaned(self, job: Job) -> Job:
        """It reads what is left of the others, if there are some. Nobody says when a session is deleted."""
        if job.state is not State.QUEUED:
            return job
        left = [place for place, (id, _) in enumerate(job.others) if id in self._stored]
        if not left:
            return replace(job, state=State.CANCELLED, error=stages.DELETED)
        id, messages = job.others[left[0]]
        return replace(
            job, session=id, tree=self.trees[id], messages=messages, others=job.others[left[0] + 1 :]
        )

    def lines(self) -> Iterator[tuple[SessionId, StoredSession, bool]]:
        """Each line of each session with its tree, oldest session first; True: the session has left it."""
        for stored in sorted(self._stored.values(), key=lambda each: each.header.created):
            id = stored.header.id
            yield self.trees[id], stored, False
            yield from (
                (self.trees[id], replace(line, header=stored.header), True) for line in self._left.get(id, ())
            )

    def _get(self, session: SessionId) -> StoredSession:
        if session not in self._stored:
            raise rules.missing(session)
        return self._stored[session]

    def _put(self, stored: StoredSession) -> None:
        self._stored.pop(stored.header.id, None)
        self._stored[stored.header.id] = stored


def _merge(before: str, new: str) -> str:
    """What was found in the owner's words stays; what only says how they came gives way to it."""
    weak = ("", CUT_OFF)
    return new if before in weak or (before == FOLLOWED and new not in weak) else before


class InMemoryJobs:
    """Looks into the sessions for every answer, since it is they who queue jobs and count."""

    def __init__(self, ledger: Ledger, sessions: InMemorySessions) -> None:
        self._ledger = ledger
        self._sessions = sessions

    async def enqueue(self, session: SessionId, messages: int, topics: Topics, why: str, at: datetime) -> Job:
        stored = await self._sessions.load(session)
        stages.reach(session, messages, len(stored.transcript))
        look = self._sessions.pending.get(session)
        if look and self._sessions.length(session) <= messages and topics >= NAMES:
            del self._sessions.pending[session]
        return self._sessions.enqueue(session, messages, topics, why, at)

    async def job(self, id: JobId) -> Job:
        if not 1 <= id <= len(self._sessions.queue):
            raise stages.absent(id)
        return self._sessions.queue[id - 1]

    async def jobs(self, limit: int | None = None) -> Sequence[Job]:
        return tuple(self._sessions.queue[::-1][:limit])

    async def waiting(self, session: SessionId | None = None) -> Sequence[Job]:
        queued = (job for job in self._sessions.queue if job.state is State.QUEUED)
        return tuple(job for job in queued if session in (None, job.session))

    async def begin(self, id: JobId, review: SessionId) -> Job:
        return self._save(stages.begun(await self.job(id), review))

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
        job = stages.latest(await self.job(id), review)
        entries = await self._ledger.record(changes, contents, at)
        self._save(stages.completed(job, cached, at, [entry.id for entry in entries]))
        for other in covered:
            self._save(stages.completed_with(await self.job(other), id, at))
        return entries

    async def fail(self, id: JobId, error: str, at: datetime, *, again: bool) -> None:
        self._save(stages.failed(await self.job(id), error, at, again=again))

    async def cancel(self, id: JobId, at: datetime) -> None:
        self._save(stages.cancelled(await self.job(id), at))

    async def retry(self, id: JobId) -> None:
        job = stages.retried(await self.job(id))
        await self._sessions.load(job.session)
        self._save(job)

    async def looks(self) -> Sequence[PendingLook]:
        found = self._sessions.pending.values()
        now = (replace(look, messages=self._sessions.length(look.session)) for look in found)
        return tuple(sorted(now, key=lambda look: (look.due, look.session)))

    async def hasten(self, sessions: Collection[SessionId], now: datetime) -> None:
        for look in [self._sessions.pending[each] for each in sessions if each in self._sessions.pending]:
            if look.cue != FOLLOWED or look.turns >= ENOUGH:
                self._sessions.pending[look.session] = replace(look, due=min(look.due, now))

    async def promote(self, now: datetime, topics: Topics, needed: Needed = USUAL) -> Sequence[Job]:
        due = [look for look in await self.looks() if look.due <= now]
        groups = find_ripe(due, first=not self._sessions.queue, needed=needed)
        return tuple(self._sessions.review(group, topics, now) for group in groups)

    async def counters(self, session: SessionId) -> Counters:
        await self._sessions.load(session)
        return self._sessions.counters.get(self._sessions.trees[session], {})

    def _save(self, job: Job) -> Job:
        self._sessions.queue[job.id - 1] = job
        return job


class InMemoryOutbox:
    """Looks into the ledger for every answer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._home = os.urandom(8).hex()
        self._backend = ""
        self._told: set[ChangeId] = set()
        self._tries: dict[ChangeId, tuple[int, bool, str]] = {}

    async def home(self) -> str:
        return self._home

    async def address(self, backend: str) -> None:
        if sound(backend) != self._backend:
            self._backend, self._told, self._tries = sound(backend), set(), {}

    async def letters(self, limit: int = 100) -> Sequence[OutboxItem]:
        known = ((id, *self._tries.get(id, (0, False, ""))) for id in await self._kept())
        return tuple(OutboxItem(id, tries) for id, tries, refused, _ in known if not refused)[:limit]

    async def delivered(self, change: ChangeId) -> None:
        if change in await self._kept():
            self._told.add(change)
            self._tries.pop(change, None)

    async def failed(self, change: ChangeId, error: str, *, final: bool = False) -> None:
        if change in await self._kept():
            tries, _, _ = self._tries.get(change, (0, False, ""))
            self._tries[change] = (tries + 1, final, sound(error))

    async def post(self) -> OutboxStatus:
        refused = {id for id, (_, final, _) in self._tries.items() if final}
        errors = sorted((id in refused, -id, error) for id, (_, _, error) in self._tries.items() if error)
        waiting = len(await self._kept()) - len(refused)
        return OutboxStatus(waiting, len(refused), errors[0][2] if errors else "")

    async def _kept(self) -> list[ChangeId]:
        made = reversed(await self._ledger.entries())
        active = (each for each in made if each.change.standing is ChangeState.ACTIVE and each.change.deltas)
        return [each.id for each in active if each.id not in self._told]


def _summary(stored: StoredSession) -> SessionSummary:
    return SessionSummary(
        header=stored.header,
        model=stored.prefix.model,
        messages=len(stored.transcript),
        updated=stored.transcript.nodes[-1].at,
        opening=rules.opening(stored.transcript)[1],
    )
