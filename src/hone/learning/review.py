"""Run a review: the same agent, prefix and messages, with a narrower permit and one question.

Its changes are staged, then committed in one transaction with the completion of the job. A review that is
killed leaves only its job, and starts over.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from hone.core.agent import Agent, Limits
from hone.core.claims import Claims
from hone.core.clock import Clock
from hone.core.errors import Conflict, HoneError, Missing
from hone.core.events import Emit, Learned, ReviewFailed
from hone.core.ids import SessionId
from hone.core.jobs import USUAL as USUAL_TURNS
from hone.core.jobs import Job, JobId, Jobs, Needed, State, Topics
from hone.core.ledger import NO_SESSION, Change, Entry, Ledger, LessonText, skill
from hone.core.messages import Message, Role
from hone.core.monitor import ReviewEnd, ReviewStep
from hone.core.overview import Overview
from hone.core.permit import REVIEW, Effect, Permit
from hone.core.ports import Header, Sessions, StoredSession
from hone.core.skill import SkillResult
from hone.core.tool import Tool
from hone.core.topics import TOPICS
from hone.core.transcript import Node, Source, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop, Turn
from hone.core.value import replace
from hone.knowledge.library import Library
from hone.knowledge.staging import StagedLedger
from hone.knowledge.tools import knowledge_tools
from hone.knowledge.wording import find_lessons
from hone.learning.budget import USUAL, Bounds, Reading, Watched, is_warm, spent
from hone.learning.known import describe_known
from hone.learning.paying import UNPAID, Payback, Paying, asks_to_learn, explain, is_automatic
from hone.learning.source import find_starts, find_topics, read_widest, split
from hone.models.wrappers import Aside, Metered, ModelTerms, Polite, Windowed, unhindered
from hone.prompt.review import digest, question, read_title, text
from hone.runtime.session import Session, SessionDeps, new_id

TRIES = 3
"""How many tries a review gets before it counts as failed."""
RECENT = 500
"""How many reviews to search for the last one of a conversation."""
SHARES = (1.0, 0.5, 0.25)
"""The shares of the model's context window that a review may fill: smaller ones after an overflow."""
LOST = "The claim of this conversation was lost."
"""Another process may review it by now."""
WINDOW = 150_000
"""Tokens that fit into a request, if its limit is unknown."""


class ReviewDeps(Struct, frozen=True):
    """What a reviewer works with. `agent` returns the agent that had the conversation, or the one that
    reviews are routed to; `wall` wraps every tool."""

    home: Path
    claims: Claims
    sessions: Sessions
    jobs: Jobs
    library: Library
    clock: Clock
    agent: Callable[[StoredSession], Awaitable[Agent]]
    session_deps: SessionDeps
    wall: Callable[[Tool], Tool]
    terms: Callable[[str], ModelTerms] = lambda _: ModelTerms()
    bounds: Bounds = USUAL
    more: Callable[[Source, Ledger], Sequence[Tool]] = lambda *_: ()
    """Further tools of a review, for what it reads. Their changes are staged in the ledger they are given."""
    off: str = ""
    """Why no review is done here; empty if reviews are on."""
    tell: Callable[[Learned, str], Awaitable[None]] | None = None
    """Tells features what was learned, and in which folder."""
    overview: Overview | None = None
    """Tells what reviews cost; without it, they need not pay."""


class Assignment(Struct, frozen=True):
    """A job with its topics, and the jobs that are done with it; `jobs` are all of them."""

    job: Job
    stored: StoredSession
    source: Source
    covered: Sequence[JobId] = ()
    jobs: Sequence[Job] = ()
    review: SessionId = NO_SESSION
    """The session of this try."""

    @property
    def folder(self) -> str:
        return self.stored.header.folder

    @property
    def nodes(self) -> Sequence[Node]:
        return self.source.transcript.nodes

    @property
    def is_untitled(self) -> bool:
        """Tell whether the review is of one conversation that has no title yet."""
        return not self.stored.header.title and not self.source.origins


class Reviewer:
    def __init__(self, deps: ReviewDeps) -> None:
        self.deps = deps
        known, unpaid = deps.overview, deps.bounds.unpaid
        self._paying = (
            Paying(known, deps.jobs, deps.library, deps.clock, unpaid) if known and unpaid else None
        )

    async def needed(self) -> Needed:
        """Return where learning does not pay, and more turns are needed for a review without a cue."""
        return await self._paying.needed() if self._paying else USUAL_TURNS

    async def work(self, id: JobId, emit: Emit, aside: Aside = unhindered) -> Sequence[Entry] | None:
        """Work on a job from the queue until it ends. Return None if another process holds it, or if it must
        wait. Errors are recorded with the job and emitted, never raised. `aside` is awaited before each
        step."""
        deps = self.deps
        job = await deps.jobs.job(id)
        async with deps.claims.hold(job.tree) as held:
            if not held or (await deps.jobs.job(id)).state is not State.QUEUED:
                return None
            end, result = deps.session_deps.monitors.begin(ReviewStep(id)), "interrupted"
            try:
                entries, result = await self._settle(job, emit, aside)
                return entries
            finally:
                end(ReviewEnd(result))

    async def _settle(self, job: Job, emit: Emit, aside: Aside) -> tuple[Sequence[Entry] | None, str]:
        """Return what was learned, and the result in the terms of ReviewEnd."""
        deps = self.deps
        try:
            entries = await self._attempt(job, emit, aside)
            if entries is not None:
                return entries, "done"
        except Conflict:
            return None, "dropped"  # it was cancelled or completed in the meantime
        except HoneError as error:
            await self._failed(job, str(error))
        except TimeoutError:
            await self._failed(job, f"It took more than {deps.bounds.seconds:.0f} seconds.")
        except Exception as error:  # noqa: BLE001  the wall: a model or plugin that raises is a line in a list
            await self._failed(job, f"It broke off with {type(error).__name__}.")
        now = await deps.jobs.job(job.id)
        if now.error and not await self._was_said(now):
            emit(ReviewFailed(now))
        return None, "failed" if now.state is State.FAILED else "waiting"

    async def _was_said(self, job: Job) -> bool:
        """Tell whether another review already waits because learning does not pay: that is reported once."""
        if not job.error.startswith(UNPAID):
            return False
        others = [each for each in await self.deps.jobs.waiting() if each.id != job.id]
        return any(each.error.startswith(UNPAID) for each in others)

    def tidy(self, waiting: Iterable[Job]) -> None:
        """Remove the locks of killed processes."""
        self.deps.claims.sweep({job.tree for job in waiting})

    async def _attempt(self, job: Job, emit: Emit, aside: Aside) -> Sequence[Entry] | None:
        """Read the conversation. If it does not fit into the model's window, read it again as a shorter
        digest."""
        deps = self.deps
        await aside()
        if reason := deps.off or await self._over_budget():
            await deps.jobs.fail(job.id, reason, deps.clock.now(), again=True)
            return None
        stored = await deps.sessions.load(job.session)
        given = await self._assign(job, stored)
        allowance = await self._find_allowance(given)
        if allowance and allowance.is_over:
            await deps.jobs.fail(job.id, explain(allowance), deps.clock.now(), again=True)
            return None
        with self._paying.reserve(job.id, allowance) if self._paying and allowance else nullcontext():
            async with deps.clock.timeout(deps.bounds.seconds):
                for share in SHARES:
                    given, turn, staged, model = await self._try(given, aside, share)
                    if not model.overflowed:
                        break
        if not await self._is_ours(job, given.review):
            raise Conflict(LOST)
        if turn.stop in (Stop.FAILED, Stop.INTERRUPTED):
            await self._failed(job, turn.error, again=model.over_budget)
            return None
        return await self._complete(given, turn, staged, emit)

    async def _assign(self, job: Job, stored: StoredSession) -> Assignment:
        """Add the topics of later jobs of this conversation. Nobody else works on them, since we hold the
        claim of the tree."""
        deps = self.deps
        source, others = await read_widest(deps.sessions, job, stored, await deps.jobs.waiting(job.session))
        topics = job.topics.union(*(each.topics for each in others))
        covered = [each.id for each in others]
        return Assignment(replace(job, topics=topics), stored, source, covered, (job, *others))

    async def _is_ours(self, job: Job, review: SessionId) -> bool:
        """Tell whether no other process has worked on the job since this try began: a process may have been
        suspended for long and lost its claim."""
        if not await self.deps.claims.confirm(job.tree):
            return False
        now = await self.deps.jobs.job(job.id)
        return now.state is State.QUEUED and now.review == review

    async def _hindered(self, given: Assignment) -> str:
        """Return why no further call is made; empty if one is."""
        return await self._over_budget(given) if await self._is_ours(given.job, given.review) else LOST

    async def _try(
        self, given: Assignment, aside: Aside, share: float
    ) -> tuple[Assignment, Turn, StagedLedger, Watched]:
        deps = self.deps
        library, staged = deps.library.stage()
        agent = await deps.agent(given.stored)
        given = replace(given, review=new_id())
        model = Watched(agent.model, partial(self._hindered, given))
        warm, asked = await self._ask(given, agent, share)
        tools = (*knowledge_tools(library, given.folder, given.source), *deps.more(given.source, staged))
        narrow = _narrowed(agent, given.job.topics, map(deps.wall, tools), deps.bounds)
        reader = replace(narrow, model=Polite(Metered(model, deps.bounds.tokens), aside))
        # The question quotes the conversation, and a search could find it.
        voice = min(Trust.AGENT, given.source.transcript.trust)
        session = Session(*self._fork(given, reader, warm=warm), deps.session_deps, voice=voice)
        await deps.jobs.begin(given.job.id, given.review)
        turn = await session.send(asked)
        await aside()
        return given, turn, staged, model

    def _fork(self, given: Assignment, reader: Agent, *, warm: bool) -> tuple[Header, Agent, Transcript]:
        header = Header(
            given.review,
            self.deps.clock.now(),
            origin=Origin.REVIEW,
            folder=given.folder,
            parent=given.job.session,
            shared=len(given.nodes) if warm else 0,
        )
        return header, reader, given.source.transcript.forked() if warm else Transcript(reader.prefix.digest)

    async def _ask(self, given: Assignment, agent: Agent, share: float) -> tuple[bool, str]:
        """Return whether the conversation itself is read, and the question."""
        deps, nodes = self.deps, given.nodes
        topics = find_topics(given.job.topics, nodes)
        own_text = partial(text, own=deps.home / "prompts")
        known = await describe_known(deps.library, given.folder, nodes, topics)
        room = _room(agent)
        if share == 1.0 and self._is_warm(given, agent):
            asked = question(topics, nodes, own_text, known, untitled=given.is_untitled)
            if sum(len(node.encoded) for node in nodes) + len(asked.encode()) <= room:
                return True, asked
        starts = find_starts(given.source)
        room, untitled = int(room * share), given.is_untitled
        return False, digest(topics, nodes, own_text, known, starts, room, untitled=untitled)

    def _is_warm(self, given: Assignment, agent: Agent) -> bool:
        transcript, stored = given.source.transcript, given.stored
        shares = stored.transcript.upto(len(transcript)).head == transcript.head
        return shares and not given.source.origins and is_warm(self._reading(stored, given.source, agent))

    async def _over_budget(self, given: Assignment | None = None) -> str:
        """Return why nothing more may be spent today, or on this; empty if it may."""
        deps = self.deps
        if reason := await spent(deps.sessions, deps.bounds, deps.clock.now()):
            return reason
        allowance = await self._find_allowance(given) if given else None
        return explain(allowance) if allowance and allowance.is_spent else ""

    async def _find_allowance(self, given: Assignment) -> Payback | None:
        """Return what reviews of the folder cost and brought; None if this one is done in any case."""
        if self._paying is None or not all(map(is_automatic, given.jobs)) or await self._is_asked_for(given):
            return None
        return await self._paying.find(given.folder, given.job.id)

    async def _is_asked_for(self, given: Assignment) -> bool:
        """Tell whether the owner has said something since the last review that is a reason for this one. A
        review that is due by its count does not name it."""
        done = [each for each in await self.deps.jobs.jobs(RECENT) if each.session == given.job.session]
        read = max((each.messages for each in done if each.state is State.DONE), default=0)
        return any(asks_to_learn(node) for node in given.nodes[0 if given.source.origins else read :])

    def _reading(self, stored: StoredSession, source: Source, agent: Agent) -> Reading:
        nodes = source.transcript.nodes
        age = (self.deps.clock.now() - nodes[-1].at).total_seconds() if nodes else 0.0
        size = len(stored.prefix.encode()) + sum(len(node.encoded) for node in nodes)
        same = agent.prefix.digest == stored.prefix.digest
        terms = self.deps.terms(agent.prefix.model)
        return Reading(age, terms.rule.lasts, size // 4, same, terms.read)

    async def _complete(
        self, given: Assignment, turn: Turn, staged: StagedLedger, emit: Emit
    ) -> Sequence[Entry]:
        """Apply what was staged and complete the job."""
        deps, job = self.deps, given.job
        first = turn.usage[0] if turn.usage else None
        cached = first.cached / first.input if first and first.input else None

        async def finish(changes: Sequence[Change], contents: Mapping[str, bytes]) -> Sequence[Entry]:
            now = deps.clock.now()
            return await deps.jobs.complete(
                job.id, changes, contents, cached, now, given.covered, given.review
            )

        # Most reviews change nothing, and need not wait for the lock.
        entries = await (deps.library.keeper.commit(staged, finish) if staged.changes else finish((), {}))
        learned = Learned(await deps.jobs.job(job.id), tuple(entries), await self._lessons(entries))
        emit(learned)
        if entries and deps.tell:
            await deps.tell(learned, given.folder)
        await self._give_title(given, turn)
        for session, said in split(given.source).items():
            await deps.library.rate(session, partial(result, messages=said, entries=entries))
        return entries

    async def _give_title(self, given: Assignment, turn: Turn) -> None:
        """Give the conversation the review's title, unless it has one by now. A failure does not matter: the
        lessons are stored."""
        replies = (node.message.text for node in turn.nodes if node.message.role is Role.ASSISTANT)
        title = read_title(next(replies, "")) if given.is_untitled else ""
        with suppress(HoneError):
            sessions = self.deps.sessions
            if title and not (await sessions.load(given.job.session)).header.title:
                await sessions.rename(given.job.session, title)

    async def _lessons(self, entries: Sequence[Entry]) -> tuple[LessonText, ...]:
        """Return the lessons in their own words. They are in the ledger, even if they cannot be read now."""
        with suppress(HoneError):
            return await find_lessons(self.deps.library.keeper.ledger, entries)
        return ()

    async def _failed(self, job: Job, error: str, *, again: bool = False) -> None:
        """Mark the job as failed. `again`: try again, however often it was tried."""
        jobs = self.deps.jobs
        try:
            now = await jobs.job(job.id)
            await jobs.fail(job.id, error, self.deps.clock.now(), again=again or now.tries < TRIES)
        except (Conflict, Missing):
            return  # another process has it


def _room(agent: Agent) -> int:
    """Return the bytes that fit into a request besides the prefix."""
    tokens = agent.model.most if isinstance(agent.model, Windowed) else WINDOW
    return max(0, 4 * tokens - len(agent.prefix.encode()))


def _narrowed(agent: Agent, topics: Topics, staged: Iterable[Tool], bounds: Bounds) -> Agent:
    """Return the tools with the same schemas, but with changes staged in the review's ledger."""
    toolbox = {**agent.toolbox, **{tool.spec.name: tool for tool in staged}}
    effects = frozenset[Effect]().union(*(topic.effects for topic in TOPICS if topic.name in topics))
    narrow = agent.narrowed(REVIEW & Permit(effects), Limits(calls=bounds.calls, until_done=True))
    return replace(narrow, toolbox=toolbox)


def result(name: str, messages: Sequence[Message], entries: Iterable[Entry]) -> SkillResult:
    """Return how a conversation that used a skill turned out, judged by the facts. `entries` are the review's
    changes: a review reports a corrected skill by changing it on the user's own words."""
    changed = (entry.change for entry in entries if entry.change.target == skill(name))
    if any(each.trust is Trust.OWNER for change in changed for each in change.author.evidence):
        return SkillResult.CORRECTED
    last = _last_results(messages)
    return SkillResult.SUCCEEDED if last and not any(last) else SkillResult.UNKNOWN


def _last_results(messages: Sequence[Message]) -> list[bool]:
    """Return, for each call of the last reply with calls, whether it failed."""
    failed: list[bool] = []
    for message in reversed(messages):
        if message.result:
            failed.append(message.result.failed)
        elif failed and message.role is Role.ASSISTANT:
            break
    return failed
