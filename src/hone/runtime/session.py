"""Run a conversation that persists: each message is stored before anything else happens."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from hone.core.agent import Agent, Helper, Limits
from hone.core.clock import Clock
from hone.core.errors import Crowded, HoneError, ModelError, Overflow, StoreError
from hone.core.events import Emit, Heard, Notice, TurnEnded
from hone.core.ids import SessionId
from hone.core.jobs import Look, Topic, Topics, TurnSummary
from hone.core.loading import import_object
from hone.core.messages import Message, Part, Reminder, SystemNote, change_text, sound, user
from hone.core.model import Usage
from hone.core.monitor import UNMONITORED, AgentEnd, AgentStep, Monitors, plain_model
from hone.core.part import Remind, SessionSeed
from hone.core.permissions import Mode, NoPermissions, Permissions
from hone.core.permit import COMPACT, DELEGATE, Permit
from hone.core.ports import Header, Sessions, Spending
from hone.core.tool import CallGuard, Toolbox
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop, Turn
from hone.core.value import replace
from hone.core.visible import visible
from hone.core.waiting import uninterrupted
from hone.loop import RunContext, Steering, run
from hone.models.wrappers import Windowed
from hone.prompt.compaction import Cut, digest, drop_examples, plan, question, shorten, state
from hone.prompt.compose import brief
from hone.prompt.modes import describe_mode, find_mode
from hone.prompt.news import find_known
from hone.runtime.task_runner import Dialog, Form, employ, ignore
from hone.runtime.triggers import count_turn, is_midway, is_over, last_turn, plan_look, summarize

if TYPE_CHECKING:
    from hone.runtime.turn_claims import ConversationClaim

CHILD_CALLS = 30
"""The most model calls of a child with a task."""
TAIL = 0.25
"""The share of a conversation, at its end, that compaction keeps."""
PUT_OFF_EVERY = timedelta(seconds=15)
"""How often a look is postponed during a turn."""
LEFT_OUT = "hone.core.opaque:describe_left_out"
"""Imported with the first change of models."""
CONSTRAIN = "hone.models.forms:constrain"
"""Imported with the first answer that must have a form."""
TASKS = "todo"
"""The tool whose last call is the state of the task."""


def new_id() -> SessionId:
    return SessionId(os.urandom(5).hex())


Brief = Callable[[int | None, "Session"], Awaitable[SystemNote | None]]
"""Returns the news since a change, without this session's own changes. None: it was never told any."""


async def silent(_: int | None, __: "Session") -> SystemNote | None:
    return None


class Beside(Protocol):
    """Work that runs beside a conversation and must not disturb it."""

    def occupied(self, busy: bool) -> None:
        """Note that a turn of the user's begins or has ended."""
        ...

    def notify(self) -> None:
        """Note that something was queued."""
        ...


class HearEnd(Protocol):
    """Hears that a turn of the user's has ended. Returns what the model must be told before it may end."""

    async def __call__(self, turn: Turn, header: Header, emit: Emit, *, again: bool) -> str: ...


class SessionDeps(Struct, frozen=True):
    """What a session needs besides its agent. `guard` is called once per turn; `fallback` returns the agent
    that continues if the model fails; `brief` and `suggest` precede the user's words."""

    store: Sessions
    clock: Clock
    guard: Callable[[], CallGuard]
    fallback: Callable[[Agent], Agent | None] = lambda _: None
    permissions: Permissions = NoPermissions()
    equip: Callable[[], AbstractAsyncContextManager[Toolbox]] | None = None
    """Separate tools for a child, so that its `cd` does not move its parent."""
    brief: Brief = silent
    remind: Remind | None = None
    suggest: Callable[[str, Transcript, str], Awaitable[str]] | None = None
    topics: Sequence[Topic] = ()
    """The topics that a conversation can be reviewed for."""
    look_after: Callable[[str], float | None] = lambda _: None
    """Seconds of silence before a conversation with a model is looked back over; None: never."""
    beside: Beside | None = None
    ended: HearEnd | None = None
    hire: Callable[[Agent, Helper], Awaitable[Agent]] = employ
    claim: "Callable[[SessionId], ConversationClaim] | None" = None
    """Keeps other processes out of a conversation during a turn, if several share the store."""
    monitors: Monitors = UNMONITORED


class Session(Dialog):
    """A conversation, made by Hone. `send` one message at a time; `cancel` from anywhere in the same event
    loop. `voice` is the label of what is sent: whose words they are. `informed` is the prefix's last
    change."""

    def __init__(
        self,
        header: Header,
        agent: Agent,
        transcript: Transcript,
        deps: SessionDeps,
        *,
        stored: bool = False,
        voice: Trust = Trust.OWNER,
        informed: int | None = None,
        opening: SessionSeed | None = None,
    ) -> None:
        self.header = header
        self.agent = agent
        self.transcript = transcript
        self._deps = deps
        self._due_topics = frozenset(topic.name for topic in deps.topics if topic.interval)
        self._stored = stored
        self._voice = voice
        self._informed = informed
        self.opening = opening
        self.steering = Steering()
        self._busy = self._cancelled = False
        self._queued = False
        self._last_look: tuple[datetime, Trust] | None = None
        self._turn: asyncio.Task[object] | None = None
        self._interrupts = 0
        claims = deps.claim if header.origin is Origin.USER else None
        self._claim = claims(header.id) if claims else None
        self._untold = ""
        """What a change of models left out, until the user has been told."""

    @property
    def id(self) -> SessionId:
        return self.header.id

    @property
    def mode(self) -> Mode:
        """How much is done without a question. Use `set_mode` to change it."""
        return self._deps.permissions.mode

    @property
    def asked(self) -> int:
        """How many questions the owner was asked since this conversation was opened."""
        return self._deps.permissions.asked

    def set_mode(self, mode: Mode | str) -> None:
        """Change what is done without a question, from the next call on. The next message tells the model."""
        self._deps.permissions.switch(Mode(mode))

    async def send(
        self,
        message: str | Message,
        emit: Emit = ignore,
        *,
        voice: Trust | None = None,
        aside: str = "",
        form: Form | None = None,
    ) -> Turn:
        """One turn. `aside` is what Hone itself has to tell with the message, such as a skill that was asked
        for. `form` is the `response_format` for providers that know it; `obtain` decides about it. Raises
        only what the caller must know at once: a store that cannot take the message, or Occupied."""
        await self._let_go()
        if self._busy:
            raise HoneError("This session is still busy with the last message.")
        self._busy = True
        self._occupy(True)
        try:
            said = user(message) if isinstance(message, str) else message
            async with self._claimed():
                await self._receive(said, self._voice if voice is None else voice, aside, emit)
                emit(Heard(len(self.transcript)))
                self._tell(emit)
                turn = await self._monitored(self._take_turn(emit, form))
        finally:
            self._busy, self._turn, self._cancelled = False, None, False
            self._occupy(False)
        emit(TurnEnded(turn))
        if self._queued and self._deps.beside:
            self._queued = False
            self._deps.beside.notify()
        return turn

    async def _monitored(self, taking: Coroutine[None, None, Turn]) -> Turn:
        step = AgentStep(self.header.origin, plain_model(self.agent.prefix.model), self.id)
        end, result = self._deps.monitors.begin(step), AgentEnd(Stop.INTERRUPTED)
        try:
            turn = await taking
            result = AgentEnd(turn.stop or Stop.FAILED, turn.usage)
            return turn
        finally:
            end(result)

    def _claimed(self) -> AbstractAsyncContextManager[None]:
        return self._claim.hold() if self._claim else nullcontext()

    def _tell(self, emit: Emit) -> None:
        untold, self._untold = self._untold, ""
        if untold:
            emit(Notice(untold))

    def _occupy(self, busy: bool) -> None:
        if self._deps.beside and self.header.origin is Origin.USER:
            self._deps.beside.occupied(busy)

    async def _take_turn(self, emit: Emit, form: Form | None) -> Turn:
        """Run the turn in the caller's task. `cancel` ends the turn and nothing else; if the caller's task is
        cancelled, the turn ends in the same order and the caller is cancelled after it."""
        task = asyncio.current_task()
        assert task is not None
        from_outside = task.cancelling()
        self._turn = task
        if self._cancelled:
            self.cancel()
        try:
            turn = await self._settle(await self._run(emit, form), emit, form)
            self._turn = None
            if self._interrupts:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)  # takes words that came with the turn's last step
        finally:
            for _ in range(self._interrupts):
                task.uncancel()
            self._interrupts = 0
        if task.cancelling() > from_outside:
            raise asyncio.CancelledError
        return turn

    async def _settle(self, turn: Turn, emit: Emit, form: Form | None) -> Turn:
        """Let features hear that a turn of the user's has ended. What they object to, the model is told once;
        it is nobody's word but that of a command. An interrupt ends this, and not the turn before it."""
        hear, again = self._deps.ended, turn
        if hear is None or self.header.origin is not Origin.USER:
            return turn
        with suppress(asyncio.CancelledError):
            objection = await hear(turn, self.header, emit, again=False)
            if objection and turn.stop is Stop.ANSWERED:
                await self._receive(user(objection), Trust.FOREIGN, "", emit)
                again = await self._run(emit, form)
                await hear(again, self.header, emit, again=True)
        if again is turn:
            return turn
        return replace(again, nodes=(*turn.nodes, *again.nodes), usage=(*turn.usage, *again.usage))

    def cancel(self) -> None:
        """Stop the model or the tool at once. The turn ends as interrupted, and the session can continue. A
        turn that has not begun ends as soon as the user's words are stored."""
        if self._turn:
            self._interrupts += 1
            self._turn.cancel()
        else:
            self._cancelled = self._busy

    def fork(
        self, permit: Permit, origin: Origin, limits: Limits | None = None, upto: int | None = None
    ) -> "Session":
        """Fork the agent: same prefix, the same first `upto` messages, a narrower permit."""
        shared = self.transcript if upto is None else self.transcript.upto(upto)
        header = Header(
            new_id(),
            self._deps.clock.now(),
            origin=origin,
            folder=self.header.folder,
            parent=self.id,
            shared=len(shared),
        )
        narrowed = self.agent.narrowed(permit, limits)
        return Session(header, narrowed, shared.forked(), self._deps, voice=Trust.AGENT)

    async def _spawn(self, task: str, emit: Emit, helper: Helper | None = None, /) -> Turn:
        """Run a child. Its task is in the words of its parent, and has no better label than they have."""
        now, voice = self._deps.clock.now(), min(Trust.AGENT, self.transcript.trust)
        header = Header(new_id(), now, origin=Origin.DELEGATE, folder=self.header.folder, parent=self.id)
        agent = self.agent.narrowed(DELEGATE, Limits(calls=CHILD_CALLS))
        if helper:
            agent = await self._deps.hire(agent, helper)
        equip = self._deps.equip or (lambda: nullcontext(agent.toolbox))
        async with equip() as toolbox:
            child = Session(
                header,
                replace(agent, toolbox=toolbox),
                Transcript(agent.prefix.digest),
                self._deps,
                voice=voice,
            )
            return await child.send(task, emit, aside=brief(helper) if helper else "")

    async def switch(self, agent: Agent) -> None:
        """Change the model or the tools: the same contents continue under a new prefix."""
        describe: Callable[[Transcript, str, str], str] = import_object(LEFT_OUT)
        self._untold = describe(self.transcript, self.agent.prefix.model, agent.prefix.model)
        await uninterrupted(self._move(agent, self.transcript.rooted(agent.prefix.digest)))

    async def relabel(self, transcript: Transcript) -> None:
        """Relabel the same messages, since the owner now trusts their source."""
        if transcript.head == self.transcript.head:
            await uninterrupted(self._move(self.agent, transcript))

    async def _move(self, agent: Agent, moved: Transcript) -> None:
        if self._stored:
            async with self._claimed():
                await self._deps.store.move(self.id, agent.prefix, moved)
        self.agent, self.transcript = agent, moved

    async def compact(self, focus: str = "") -> str:
        """Replace the middle of the conversation with notes, and remove the examples at its start. Return
        what was done; nothing if there is too little of both."""
        cut, examples, before = plan(self.transcript, TAIL), self.transcript.examples, len(self.transcript)
        if cut is not None:
            await self._summarise(cut, focus, examples)
            gone = before - len(self.transcript) + 1
            return f"Notes replace {gone:,} older messages from now on. The messages are kept."
        if not examples:
            return ""
        await uninterrupted(self._replace(drop_examples(self.transcript)))
        return f"The {examples} messages with examples were taken out; they are kept in the store."

    async def _summarise(self, cut: Cut, focus: str, examples: int) -> None:
        gone = self.transcript.nodes[examples : cut.end]
        asked = question(focus, examples)
        turn = await self.fork(COMPACT, Origin.COMPACT, Limits(calls=1), cut.end).send(asked)
        notes = turn.text if turn.stop in (Stop.ANSWERED, Stop.BUDGET) else digest(gone[1:])
        now = self._deps.clock.now()
        short = shorten(self.transcript, cut, notes, state(gone, TASKS), now)
        await uninterrupted(self._replace(short))

    async def _replace(self, short: Transcript) -> None:
        """Replace messages with notes, and queue a review of what they taught first."""
        async with self._claimed():
            queued = await self._deps.store.shorten(self.id, self.transcript.head, short, self._topics)
        self._queued = self._queued or queued is not None
        self.transcript = short

    def _run(self, emit: Emit, form: Form | None) -> Coroutine[None, None, Turn]:
        toolbox = self.agent.toolbox

        def equip(agent: Agent) -> Agent:
            model = import_object(CONSTRAIN)(agent.model, form) if form else agent.model
            model = self._claim.guard(model) if self._claim else model
            return replace(agent, toolbox=toolbox, model=model)

        async def fall_back(error: ModelError, _: Transcript) -> tuple[Agent, Transcript] | None:
            spare = await self._fall_back(error, emit)
            return (equip(spare), self.transcript) if spare else None

        deps = self._deps
        deps.permissions.hear(self.transcript)
        rest = deps.permissions, self._spawn, self.header, deps.guard(), self.steering
        context = RunContext(self._keep, emit, deps.clock, fall_back, *rest)
        return run(equip(self.agent), self.transcript, self.header.origin, context)

    async def _fall_back(self, error: ModelError, emit: Emit) -> Agent | None:
        """Return the agent that continues after this error, with the conversation as it is then."""
        if isinstance(error, Overflow):
            return await self._with_room(error, emit)
        spare = self._deps.fallback(self.agent)
        if spare:
            await self.switch(spare)
            emit(Notice(f"{error} Going on with {spare.prefix.model}."))
            self._tell(emit)
        return spare

    async def _with_room(self, error: Overflow, emit: Emit) -> Agent | None:
        own = (Origin.COMPACT, Origin.REVIEW, Origin.QUESTION)  # notes have no numbers to rest on
        done = "" if self.header.origin in own else await self.compact()
        if done:
            emit(Notice(done))
            return self.agent
        model = self.agent.model
        if isinstance(error, Crowded) and isinstance(model, Windowed):
            return replace(self.agent, model=model.model)  # it may still fit
        return None

    async def _receive(self, said: Message, voice: Trust, aside: str, emit: Emit) -> None:
        """Store the user's words before anything else, preceded by what an unfinished turn left open."""
        parts = [change_text(each, lambda text: visible(sound(text))) for each in said.parts]
        beside: list[Part | None] = []
        if said.note is None:
            beside = [await self._note(aside, said.text), await self._reminder(said.text, emit)]
        said = Message(said.role, (*(part for part in beside if part is not None), *parts))
        now = self._deps.clock.now()
        longer = await self._begun(said.text, emit)
        for message in self.transcript.closing("the turn was cut off"):
            longer = longer.then(message, min(Trust.AGENT, longer.trust), now)
        left_open = longer.nodes[len(self.transcript) :] if self._stored else ()
        if left_open:  # stored alone: what that turn did counts before the next one begins
            await uninterrupted(self._keep(left_open, None))
        longer = longer.then(said, voice, now)
        seeded = not self._stored and longer.examples
        await uninterrupted(self._keep(longer.nodes[len(self.transcript) :], None))
        if seeded and self.opening:
            await self._note_use(self.opening, longer.nodes[0].message.template, emit)

    async def _begun(self, words: str, emit: Emit) -> Transcript:
        """Return the conversation so far, or what a new one begins with."""
        if self._stored or self.opening is None:
            return self.transcript
        begun, line = await self.opening.begin(words, self.transcript, self.agent.toolbox)
        emit(Notice(line))
        return begun

    async def _note_use(self, opening: SessionSeed, template: str, emit: Emit) -> None:
        """Count a use of the template. A failed write must not end the turn: the words are stored."""
        try:
            await opening.count(template, self.id)
        except StoreError as error:
            emit(Notice(str(error)))

    async def _note(self, aside: str, words: str) -> SystemNote | None:
        """Return the note for the user's words: the news, and what was requested, or else skills that may
        fit. The first note of a conversation at least says how far its prefix knows."""
        told = find_known(self.transcript)
        since = self._informed if told is None else told
        news = await self._deps.brief(since, self) if self.header.origin is Origin.USER else None
        upto = news.upto if news else since
        suggest = self._deps.suggest if self.header.origin is Origin.USER and not aside else None
        beside = await suggest(words, self.transcript, self.agent.prefix.system) if suggest else aside
        text = "\n".join(each for each in (news.text if news else "", self._untold_mode(), beside) if each)
        return SystemNote(text, upto or 0, since or 0) if text or upto != told else None

    def _untold_mode(self) -> str:
        """Say which mode holds, unless the model knows. It knows of auto from the start."""
        if self.header.origin not in (Origin.USER, Origin.DELEGATE):
            return ""
        told = find_mode(self.transcript) or Mode.AUTO
        return "" if self.mode is told else describe_mode(self.mode)

    async def _reminder(self, words: str, emit: Emit) -> Reminder | None:
        if self._deps.remind is None or self.header.origin is not Origin.USER:
            return None
        found, warning = await self._deps.remind(words, self.transcript)
        if warning:
            emit(Notice(warning))
        return found

    async def _keep(self, nodes: Sequence[Node], usage: Usage | None) -> None:
        deps, origin = self._deps, self.header.origin
        model = self.agent.prefix.model
        spending = Spending(deps.clock.now(), model, origin, usage) if usage else None
        longer = self.transcript.extended(tuple(nodes))
        turn = self._turn_of(longer, answered=usage is not None)
        look = self._look(longer, turn)
        if self._claim:
            await self._claim.confirm()
        if self._stored:
            counts = count_turn(turn, deps.topics) if turn else ()
            queued = await deps.store.append(self.id, nodes, spending, counts, look)
            self._queued = self._queued or queued is not None
        else:
            await deps.store.start(self.header, self.agent.prefix, nodes, look)
            self._stored = True
        if look:
            self._last_look = deps.clock.now(), longer.trust
        self.transcript = longer

    @property
    def _topics(self) -> Topics:
        """The topics that this conversation can be reviewed for. A plain chat has no tools to write with."""
        is_own = self.header.origin is Origin.USER and self.agent.prefix.tools
        return self._due_topics if is_own else frozenset()

    def _turn_of(self, longer: Transcript, *, answered: bool) -> TurnSummary | None:
        """Return what the last turn adds if it is over and counts."""
        if not self._topics or not is_over(longer):
            return None
        readers = [name for name, tool in self.agent.toolbox.items() if tool.spec.readonly]
        return summarize(last_turn(longer), answered=answered, readers=readers)

    def _look(self, longer: Transcript, turn: TurnSummary | None) -> Look | None:
        """Return when to look back if nothing follows. It is stored with the messages, so that nothing
        depends on how the owner leaves. During a turn it is postponed only now and then."""
        now, trust = self._deps.clock.now(), longer.trust
        last, since = self._last_look or (now, None)
        if trust is since and now - last < PUT_OFF_EVERY and is_midway(self.transcript, longer):
            return None
        silence, topics = self._deps.look_after(self.agent.prefix.model), self._topics
        if silence is None or not topics:
            return None
        return plan_look(self.transcript, longer, turn, topics, silence, now)
