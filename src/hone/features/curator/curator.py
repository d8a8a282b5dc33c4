"""The curator: archive unused learned skills, and ask a model which skills to merge.

A run is planned without writing anything, then committed in one transaction together with its record. The
model returns a plan as data; it can read skills but change nothing. A killed run leaves nothing behind and
is due again.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

from hone.core.agent import Agent, Limits
from hone.core.claims import Claims
from hone.core.clock import Clock
from hone.core.curation import UNNUMBERED, CuratorRun, CuratorRunId, CuratorRuns
from hone.core.documents import Documents
from hone.core.errors import HoneError, Refused
from hone.core.events import Curated, Emit
from hone.core.ids import SessionId
from hone.core.ledger import (
    NO_SESSION,
    START,
    Actor,
    Author,
    Change,
    ChangeQuery,
    ChangeState,
    Entry,
    Evidence,
    LessonText,
    skill,
)
from hone.core.permit import CURATE
from hone.core.ports import Header, Sessions
from hone.core.transcript import Transcript
from hone.core.trust import Trust, lowest
from hone.core.turn import Origin, Stop
from hone.core.value import replace
from hone.features.curator import consolidation
from hone.features.curator.curated_skills import CuratedSkills, is_own, load_skills, question
from hone.features.curator.reports import FOLDER, Reports
from hone.features.curator.retention import TERMS, Aged, Grade, Terms, plan
from hone.knowledge.admission import stricter
from hone.knowledge.folding import Batch, Move
from hone.knowledge.library import Library
from hone.knowledge.verdicts import LearningMode
from hone.knowledge.wording import find_lessons
from hone.learning.budget import USUAL, Bounds, spent
from hone.models.wrappers import Metered
from hone.prompt.review import text
from hone.runtime.session import Session, SessionDeps, new_id

WEEK, DAY, QUIET = timedelta(days=7), timedelta(days=1), timedelta(hours=2)
"""The times between two runs, after a failed one, and without a turn before one begins."""
HAND = "by hand"
FEW = "There are fewer than two learned skills that may be changed."
SAME = "No learned skill has changed since a model was last asked."
WAITS = "An earlier plan waits for you: hone pending"
OFF = "Merging is switched off."
PLAIN = "The model is too small to be asked."


class CuratorDeps(Struct, frozen=True):
    """What a curator works with. `agent` returns the agent that it asks."""

    home: Path
    claims: Claims
    sessions: Sessions
    runs: CuratorRuns
    library: Library
    clock: Clock
    agent: Callable[[], Awaitable[Agent]]
    session_deps: SessionDeps
    documents: Documents
    bounds: Bounds = USUAL
    terms: Terms = TERMS


class Advice(Struct, frozen=True):
    """A model's answer: its plan as moves, or why there is none. `skipped`: it was not asked."""

    moves: tuple[Move, ...] = ()
    session: SessionId = NO_SESSION
    evidence: tuple[Evidence, ...] = ()
    library: str = ""
    error: str = ""
    skipped: str = ""


class Thought(Struct, frozen=True):
    """What a run would do."""

    why: str
    aged: tuple[Aged, ...]
    advice: Advice
    batches: tuple[Batch, ...]


class Preview(Struct, frozen=True):
    """The result that a run would have, and what would be refused. Nothing was changed."""

    thought: Thought
    entries: tuple[Entry, ...]
    refused: tuple[str, ...]


class Curator:
    def __init__(self, deps: CuratorDeps) -> None:
        self._deps = deps
        self.reports = Reports(deps.home / FOLDER, deps.documents)

    @property
    def is_paused(self) -> bool:
        return self.reports.is_paused

    async def due(self) -> str:
        """Return why a run is due now; empty if none is."""
        known = await self._deps.runs.runs(1)
        if self.is_paused or self._deps.library.keeper.rules.closed or not self._is_over(known):
            return ""
        if not await self.is_idle() or not any(map(is_own, await self._deps.library.listed())):
            return ""
        if not known:
            return "it is the first one"
        return "the last one failed" if known[0].error else "a week has passed"

    async def next(self) -> datetime | None:
        """Return when a run is due if nothing happens until then; None without a reason for one."""
        deps = self._deps
        known = await deps.runs.runs(1)
        if self.is_paused or deps.library.keeper.rules.closed or not await self._has_reason(known):
            return None
        latest = await deps.sessions.list(limit=1)
        quiet = latest[0].updated + QUIET if latest else deps.clock.now()
        return max(quiet, known[0].at + self._pause(known)) if known else quiet

    async def _has_reason(self, known: Sequence[CuratorRun]) -> bool:
        """Tell whether there is a skill that it may change, and something has happened since the last run."""
        deps = self._deps
        if not any(map(is_own, await deps.library.listed())):
            return False
        if not known or known[0].error:
            return True
        times = [each.updated for each in await deps.sessions.list(limit=1)]
        times += [each.at for each in await deps.library.keeper.ledger.entries(ChangeQuery(limit=1))]
        return any(at > known[0].at for at in times)

    def _pause(self, known: Sequence[CuratorRun]) -> timedelta:
        return DAY if known and known[0].error else WEEK

    def _is_over(self, known: Sequence[CuratorRun]) -> bool:
        """Tell whether the time since the last run is over; a clock that was set back ends it, too."""
        since = self._deps.clock.now() - known[0].at if known else WEEK
        return not timedelta() <= since < self._pause(known)

    async def is_idle(self) -> bool:
        """Tell whether no process has run a turn in this home for a while."""
        latest = await self._deps.sessions.list(limit=1)
        return not latest or self._deps.clock.now() - latest[0].updated >= QUIET

    async def tend(self, emit: Emit) -> None:
        """Do a run if one is due. After an error the next one is still due."""
        try:
            why = await self.due()
            done = await self.work(why, due=True) if why else None
        except HoneError:
            return
        if done:
            emit(Curated(*done, await self._lessons(done[1])))

    async def _lessons(self, entries: Sequence[Entry]) -> tuple[LessonText, ...]:
        """Return the changes in words. They are in the ledger, even if they cannot be read now."""
        with suppress(HoneError):
            return await find_lessons(self._deps.library.keeper.ledger, entries)
        return ()

    async def work(
        self, why: str = HAND, *, again: bool = False, due: bool = False
    ) -> tuple[CuratorRun, tuple[Entry, ...]] | None:
        """Do one run. Return None if another process does it, or has just done one that had to be `due`.
        `again`: ask a model although nothing has changed."""
        async with self._deps.claims.hold(FOLDER) as held:
            if not held or (due and not await self.due()):
                return None
            known = await self._deps.runs.runs()
            thought = await self._think(why, known, again=again)
            after = known[0].id if known else UNNUMBERED
            made, entries = await self._close(thought, after)
        self.reports.print(made)
        return made, tuple(entries)

    async def preview(self, *, again: bool = False) -> Preview:
        """Plan a run, on a ledger that nobody else sees."""
        thought = await self._think("dry run", await self._deps.runs.runs(), again=again)
        library, _ = self._deps.library.stage()
        reasons: list[str] = []

        async def close(
            changes: Sequence[Change], _: Mapping[str, bytes], refused: Sequence[str]
        ) -> Sequence[Entry]:
            reasons.extend(refused)
            return [Entry(START, self._deps.clock.now(), change) for change in changes]

        entries = await library.keeper.arrange(thought.batches, close)
        return Preview(thought, tuple(entries), tuple(reasons))

    async def ages(self) -> tuple[Aged, ...]:
        """Return how long each learned skill has been unused."""
        return await self._aged(await load_skills(self._deps.library))

    async def _close(self, thought: Thought, after: CuratorRunId) -> tuple[CuratorRun, Sequence[Entry]]:
        deps = self._deps
        made: list[CuratorRun] = []

        async def close(
            changes: Sequence[Change], contents: Mapping[str, bytes], refused: Sequence[str]
        ) -> Sequence[Entry]:
            advice = thought.advice
            error = " ".join((*((advice.error,) if advice.error else ()), *refused))
            run = CuratorRun(deps.clock.now(), thought.why, advice.session, advice.library, error)
            said = replace(run, report=report(thought, changes, refused))
            done, entries = await deps.runs.complete(said, after, changes, contents)
            made.append(done)
            return entries

        entries = await deps.library.keeper.arrange(thought.batches, close)
        return made[0], entries

    async def _think(self, why: str, runs: Sequence[CuratorRun], *, again: bool) -> Thought:
        """Plan a run. Skills that are old enough to be archived are not offered to a model."""
        asked = next((each.library for each in runs if each.library and not each.error), "")
        known = await load_skills(self._deps.library)
        offered = known.without([each.name for each in _graded(await self._aged(known), Grade.ARCHIVED)])
        advice = await self._consult(offered, "" if again else asked)
        batches: list[Batch] = []
        if advice.moves:
            label = lowest(known.labels.get(move.name, Trust.AGENT) for move in advice.moves)
            author = Author(Actor.CURATOR, advice.session, evidence=advice.evidence, trust_floor=label)
            batches.append(Batch(advice.moves, author))
        # Once more, so that skills used while the model was thinking do not count as unused.
        known = await load_skills(self._deps.library)
        aged = await self._aged(known)
        planned = {move.name for move in advice.moves}
        gone = [each for each in _graded(aged, Grade.ARCHIVED) if each.name not in planned]
        if gone:
            moves = [consolidation.aged(each.name, known.folders[each.name], each.unused) for each in gone]
            batches.append(Batch(tuple(moves), Author(Actor.CURATOR), counted=True))
        return Thought(why, aged, advice, tuple(batches))

    async def _aged(self, known: CuratedSkills) -> tuple[Aged, ...]:
        spending = await self._deps.sessions.spending(origins=(Origin.USER,))
        days = [each.at.astimezone().date() for each in spending]
        return plan(known.listed.values(), known.used, known.changed, days, self._deps.terms)

    async def _consult(self, known: CuratedSkills, asked: str) -> Advice:
        """Ask the model. `asked` is the library that a model was last asked about."""
        deps, rules = self._deps, self._deps.library.keeper.rules
        if stricter(rules.modes.get(Actor.CURATOR, LearningMode.AUTO), rules.merges) is LearningMode.OFF:
            return Advice(skipped=OFF)
        for cause, skipped in (
            (known.waiting, WAITS),
            (len(known.folders) < 2, FEW),
            (known.digest == asked, SAME),
        ):
            if cause:
                return Advice(skipped=skipped)
        if reason := await spent(deps.sessions, deps.bounds, deps.clock.now()):
            return Advice(error=reason)
        try:
            return await self._ask(known)
        except TimeoutError:
            return Advice(error=f"It took more than {deps.bounds.seconds:.0f} seconds.")
        except HoneError as error:
            return Advice(error=str(error))
        except Exception as error:  # noqa: BLE001  the wall: a model that raises is a line in a report
            return Advice(error=f"It broke off with {type(error).__name__}.")

    async def _ask(self, known: CuratedSkills) -> Advice:
        deps = self._deps
        agent = await deps.agent()
        if not agent.prefix.tools:
            return Advice(skipped=PLAIN)
        narrow = agent.narrowed(CURATE, Limits(calls=deps.bounds.calls))
        narrow = replace(narrow, model=Metered(agent.model, deps.bounds.tokens))
        header = Header(new_id(), deps.clock.now(), origin=Origin.CURATOR)
        voice = min(Trust.AGENT, lowest(known.labels.values()))
        session = Session(header, narrow, Transcript(narrow.prefix.digest), deps.session_deps, voice=voice)
        async with deps.clock.timeout(deps.bounds.seconds):
            turn = await session.send(question(known, text("curate", deps.home / "prompts")))
        if turn.stop in (Stop.FAILED, Stop.INTERRUPTED):
            return Advice(session=session.id, error=turn.error)
        try:
            proposal = consolidation.read(turn.text)
            moves = consolidation.moves(proposal, known.folders, known.others, known.grounds)
        except Refused as error:
            return Advice(session=session.id, error=str(error))
        last = session.transcript.nodes[-1]
        evidence = Evidence(session.id, len(session.transcript), last.trust, last.digest)
        return Advice(moves, session.id, (evidence,), known.digest)


def report(thought: Thought, changes: Sequence[Change], refused: Sequence[str]) -> str:
    """Return a report in Markdown, for people. A pending plan is only counted: its words are in no file."""
    pending = {change.target for change in changes if change.standing is ChangeState.PENDING}
    done = {change.target for change in changes} - pending
    planned = {skill(move.name) for move in thought.advice.moves} & pending
    undone = (thought.advice.error, thought.advice.skipped, *refused)
    moves = [move for batch in thought.batches for move in batch.moves]
    stale = _graded(thought.aged, Grade.STALE)
    counted = [f"- Changes in a plan: {len(planned)} (hone pending shows them)"] if planned else []
    parts = [
        ("Done", _lines(moves, done)),
        ("Waits for you", [*counted, *_lines(moves, pending - planned)]),
        ("Stale", [f"- {each.name}: not used on {each.unused} days" for each in stale]),
        ("Not done", [f"- {each}" for each in undone if each]),
    ]
    told = [f"## {title}\n\n{chr(10).join(lines)}" for title, lines in parts if lines]
    return "\n\n".join(told) or "Nothing had to be done."


def _lines(moves: Sequence[Move], targets: Collection[str]) -> list[str]:
    return [f"- {move.name}: {move.reason}" for move in moves if skill(move.name) in targets]


def _graded(aged: Sequence[Aged], grade: Grade) -> list[Aged]:
    return [each for each in aged if each.grade is grade]
