"""The review: the same agent, on the same prefix and messages, with a narrower permit and one question.

What it writes is staged; that and the job's completion are one transaction. A review that is killed leaves
nothing but its job, and starts again from nothing.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hone.core.agent import Agent, Limits
from hone.core.clock import Clock
from hone.core.errors import Conflict, HoneError, Missing
from hone.core.events import Emit, Learned
from hone.core.jobs import Job, JobId, Jobs, State
from hone.core.ledger import Change, Entry
from hone.core.permits import REVIEW
from hone.core.ports import Header, Sessions, StoredSession
from hone.core.tool import Tool
from hone.core.transcript import Source, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop, Turn
from hone.core.value import dataclass
from hone.knowledge.library import Library
from hone.knowledge.staging import StagedLedger
from hone.knowledge.tools import knowledge_tools
from hone.learning.budget import USUAL, Bounds, spent
from hone.learning.outcomes import result
from hone.learning.warmth import Reading, is_warm
from hone.models.metered import Metered
from hone.models.polite import Aside, Polite, unhindered
from hone.models.priced import Price
from hone.prompt.review import digest, question, text
from hone.runtime.claims import claim, sweep
from hone.runtime.session import Session, SessionDeps, new_id

TRIES = 3
"""How often a review is begun before it counts as failed."""


@dataclass(frozen=True, slots=True)
class ReviewDeps:
    """What a reviewer works with. `agent` is who had the conversation, or whom reviews were routed to; `wall`
    goes around every tool."""

    home: Path
    sessions: Sessions
    jobs: Jobs
    library: Library
    clock: Clock
    agent: Callable[[StoredSession], Awaitable[Agent]]
    services: SessionDeps
    wall: Callable[[Tool], Tool]
    price: Callable[[str], Price | None] = lambda _: None
    bounds: Bounds = USUAL
    more: Callable[[Source], Sequence[Tool]] = lambda _: ()
    """Tools of a review beside those of the journal and the skills, for what is read in it."""


class Reviewer:
    def __init__(self, bench: ReviewDeps) -> None:
        self._bench = bench

    async def work(self, id: JobId, emit: Emit, aside: Aside = unhindered) -> Sequence[Entry] | None:
        """Takes a job from the queue to its end. None if somebody else has it, or it must wait. Whatever goes
        wrong is written down with the job and raised to nobody. `aside` is awaited before each step."""
        bench = self._bench
        job = await bench.jobs.job(id)
        with claim(bench.home, job.tree) as held:
            if not held or (await bench.jobs.job(id)).state is not State.QUEUED:
                return None
            try:
                return await self._attempt(job, emit, aside)
            except Conflict:
                return None  # it was cancelled or completed meanwhile
            except HoneError as error:
                await self._failed(job, str(error))
            except TimeoutError:
                await self._failed(job, f"It took more than {bench.bounds.seconds:.0f} seconds.")
            except Exception as error:  # noqa: BLE001  the wall: a model or plugin that raises is a line in a list
                await self._failed(job, f"It broke off with {type(error).__name__}.")
        return None

    def tidy(self, waiting: Iterable[Job]) -> None:
        """Takes away the locks that killed processes left."""
        sweep(self._bench.home, {job.tree for job in waiting})

    async def _attempt(self, job: Job, emit: Emit, aside: Aside) -> Sequence[Entry] | None:
        bench = self._bench
        await aside()
        if reason := await spent(bench.sessions, bench.bounds, bench.clock.now()):
            await bench.jobs.fail(job.id, reason, bench.clock.now(), again=True)
            return None
        stored = await bench.sessions.load(job.session)
        whole = await self._whole(job, stored)
        source = Source(job.session, whole.upto(job.messages))
        library, staged = bench.library.staged()
        session, asked = await self._session(job, stored, source, library, aside)
        await bench.jobs.begin(job.id, session.id)
        async with bench.clock.timeout(bench.bounds.seconds):
            turn = await session.send(asked)
            await aside()
        if turn.stop in (Stop.FAILED, Stop.INTERRUPTED):
            await self._failed(job, turn.error)
            return None
        return await self._complete(job, turn, source, staged, emit)

    async def _session(
        self, job: Job, stored: StoredSession, source: Source, library: Library, aside: Aside
    ) -> tuple[Session, str]:
        """The fork, and what to ask it."""
        bench = self._bench
        agent = await bench.agent(stored)
        nodes = source.transcript.nodes
        shares = stored.transcript.upto(len(nodes)).head == source.transcript.head
        warm = shares and is_warm(self._reading(stored, source, agent))
        own = (*knowledge_tools(library, stored.header.folder, source), *bench.more(source))
        tools = map(bench.wall, own)
        agent = _narrowed(agent, tools, bench.bounds)
        agent = replace(agent, model=Polite(agent.model, aside))
        shared = len(nodes) if warm else 0
        header = Header(
            new_id(),
            bench.clock.now(),
            origin=Origin.REVIEW,
            folder=stored.header.folder,
            parent=job.session,
            shared=shared,
        )
        transcript = source.transcript.forked() if warm else Transcript(agent.prefix.digest)
        asked = (question if warm else digest)(job.topics, nodes, self._text)
        return Session(header, agent, transcript, bench.services, voice=Trust.AGENT), asked

    async def _whole(self, job: Job, stored: StoredSession) -> Transcript:
        """The conversation as it was when the review was due; since then it may have been shortened."""
        if len(stored.transcript) >= job.messages:
            return stored.transcript
        lines = [line.transcript for line in await self._bench.sessions.earlier(job.session)]
        return next((line for line in reversed(lines) if len(line) >= job.messages), stored.transcript)

    def _reading(self, stored: StoredSession, source: Source, agent: Agent) -> Reading:
        nodes = source.transcript.nodes
        age = (self._bench.clock.now() - nodes[-1].at).total_seconds() if nodes else 0.0
        size = len(stored.prefix.encode()) + sum(len(node.encoded) for node in nodes)
        same = agent.prefix.digest == stored.prefix.digest
        price = self._bench.price(agent.prefix.model)
        prices = (price.input, price.cached) if price else (None, None)
        return Reading(age, self._bench.bounds.lasts, size // 4, same, *prices)

    def _text(self, name: str) -> str:
        return text(name, self._bench.home / "prompts")

    async def _complete(
        self, job: Job, turn: Turn, source: Source, staged: StagedLedger, emit: Emit
    ) -> Sequence[Entry]:
        """What was staged takes effect with the job's completion."""
        bench = self._bench
        first = turn.usage[0] if turn.usage else None
        cached = first.cached / first.input if first and first.input else None

        async def finish(changes: Sequence[Change], contents: Mapping[str, bytes]) -> Sequence[Entry]:
            return await bench.jobs.complete(job.id, changes, contents, cached, bench.clock.now())

        entries = await bench.library.keeper.settle(staged, finish)
        emit(Learned(await bench.jobs.job(job.id), tuple(entries)))
        await self._rate(job, source, entries)
        return entries

    async def _rate(self, job: Job, source: Source, entries: Sequence[Entry]) -> None:
        """How the skills did that were used in what was reviewed."""
        said = tuple(message for message in source.transcript if not message.template)
        await self._bench.library.rate(job.session, lambda name: result(name, said, entries))

    async def _failed(self, job: Job, error: str) -> None:
        jobs = self._bench.jobs
        try:
            now = await jobs.job(job.id)
            await jobs.fail(job.id, error, self._bench.clock.now(), again=now.tries < TRIES)
        except (Conflict, Missing):
            return  # it is no longer ours


def _narrowed(agent: Agent, staged: Iterable[Tool], bounds: Bounds) -> Agent:
    """The same schemas, other hands: what the tools of a review write is staged."""
    toolbox = {**agent.toolbox, **{tool.spec.name: tool for tool in staged}}
    narrow = agent.narrowed(REVIEW, Limits(calls=bounds.calls))
    return replace(narrow, toolbox=toolbox, model=Metered(agent.model, bounds.tokens))
