"""The composition root: settings in, a Hone out. The one place that puts the rooms together."""

import asyncio
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from hone.core.agent import Agent, Limits
from hone.core.clock import Clock, SystemClock
from hone.core.curation import CuratorRuns
from hone.core.errors import Refused, StoreError
from hone.core.events import Emit
from hone.core.ids import SessionId
from hone.core.jobs import Jobs
from hone.core.knowledge import Snapshot
from hone.core.ledger import MEMORY, Actor, ChangeId
from hone.core.ledger import USER as PROFILE
from hone.core.messages import Message, SystemNote
from hone.core.model import Model
from hone.core.outbox import Outbox
from hone.core.permit import USER
from hone.core.ports import IMPORTED, Header, Sessions, StoredSession
from hone.core.recall import Recall
from hone.core.secrets import redact
from hone.core.tool import Tool, Toolbox
from hone.core.tool_context import Ask, nobody
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Turn
from hone.features.backends.current import BackendOptions, CurrentBackend
from hone.features.backends.memories import Memories
from hone.features.backends.outbox_worker import OutboxWorker
from hone.files.tree import FileTree
from hone.knowledge.admission import LearningMode
from hone.knowledge.keeper import Keeper, KeeperRules
from hone.knowledge.library import Library
from hone.knowledge.skills.index import index
from hone.knowledge.snapshots import SnapshotCache
from hone.knowledge.tools import knowledge_tools
from hone.learning.background import Background
from hone.models.wrappers import Windowed
from hone.plugins import load
from hone.prompt.compose import compose, ordered, plain, surroundings
from hone.prompt.news import news as tell
from hone.prompt.sections import instructions, journal
from hone.runtime.instructions import FoundInstructions, Instructions, UnusedInstructions
from hone.runtime.lists import OwnersList
from hone.runtime.model_factory import ModelFactory
from hone.runtime.permissions import Consent
from hone.runtime.session import Session, SessionDeps, branch, ignore, new_id
from hone.runtime.toolbox_factory import ToolboxDeps, ToolboxFactory
from hone.runtime.triggers import Intervals
from hone.runtime.trust import Folders
from hone.sandbox.choice import Sandbox
from hone.settings import Settings, home_folder, read
from hone.stores.home import Stores, opened
from hone.tools.recall import recall_tool

if TYPE_CHECKING:
    from hone.features.curator.curator import Curator
    from hone.features.experiments.runner import ExperimentRunner
    from hone.features.templates.seeding import Seeding, TemplateOptions
    from hone.features.templates.store import Templates
    from hone.features.templates.values import Template
    from hone.learning.review import Reviewer

QUIET = 30.0
"""Seconds without a word of the user's before a review may take a local server."""


class Hone:
    """An agent with a home. `async with Hone() as hone:` closes what it opened.

    home:    where sessions and settings live (default: $HONE_HOME or ~/.hone)
    model:   provider/name (default: hone.toml, $HONE_MODEL, the keys and servers present), or a Model
    folder:  the working folder of its tools (default: where the process is)
    tools:   further tools, beside the built-in ones
    system:  further text for the system prompt
    ask:     how to ask the owner before something dangerous is done (default: the answer is no)
    """

    def __init__(
        self,
        *,
        home: Path | str | None = None,
        model: str | Model = "",
        folder: Path | str | None = None,
        tools: Iterable[Tool] = (),
        system: str = "",
        ask: Ask = nobody,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.home = Path(home) if home else home_folder()
        self.folder = Path(folder or Path.cwd()).resolve()
        self.settings = settings or read(self.home)
        self.notices: list[str] = []
        self._said: set[str] = set()
        self.folders = Folders(OwnersList(self.home / "trusted.json"))
        self.instructions = Instructions(self.folders, OwnersList(self.home / "instructions.json"))
        self._ask = ask
        self._clock = clock or SystemClock()
        self._plugins = load(self.settings.plugins)
        self._plugins.tools.extend(tools)
        self._plugins.sections.append(system)
        self._models = ModelFactory(self.settings, self.home, self._clock, model, self._plugins.models)
        self.memories = self._memories()
        self._owns_models = True
        self._shed = self._toolshed(Sandbox(hidden=(self.home,), clock=self._clock))
        self._stores: Stores | None = None
        self._library: Library | None = None
        self._background: Background | None = None
        self.courier = OutboxWorker(self.memories.mirror, self.home, self._clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._background:
            await self._background.close()
        await self.courier.close()
        if self._owns_models:
            await self._models.close()
        await self._shed.close()
        await self.memories.backing.close()
        if self._library:
            self._library.keeper.close()
        if self._stores:
            await self._stores.close()

    @property
    def sessions(self) -> Sessions:
        return self._opened.sessions

    @property
    def recall(self) -> Recall:
        return self._opened.recall

    @property
    def library(self) -> Library:
        """The skills; its keeper has the journal and the ledger."""
        if self._library is None:
            stores = self._opened
            keeper = Keeper(
                stores.ledger, FileTree(self.home), self._clock, self._say, self._rules(stores.closed)
            )
            self._library = Library(keeper, stores.shelf, self._clock)
        return self._library

    @cached_property
    def _known(self) -> SnapshotCache:
        return SnapshotCache(self.library)

    @cached_property
    def templates(self) -> "Templates":
        from hone.features.templates.store import Templates

        return Templates(self.home)

    @property
    def jobs(self) -> Jobs:
        return self._opened.jobs

    @property
    def rounds(self) -> CuratorRuns:
        return self._opened.rounds

    @property
    def outbox(self) -> Outbox:
        """What the memory backend has yet to be told."""
        return self._opened.outbox

    @property
    def background(self) -> Background:
        """What learns beside the conversations. It works once it is told to `attend`."""
        if self._background is None:
            pause = QUIET if self._models.is_local else 0.0
            self._background = Background(
                self.jobs, lambda: self.reviewer, self._clock, pause, self._tend, self.courier
            )
        return self._background

    async def _tend(self, emit: Emit) -> None:
        await self.curator.tend(emit)

    @property
    def reviewer(self) -> "Reviewer":
        from hone.learning.budget import Bounds
        from hone.learning.review import ReviewDeps, Reviewer

        stores, bounds = self._opened, Bounds(daily=self.settings.learning.daily)
        services = SessionDeps(stores.sessions, self._clock, guard=self._shed.guard)
        return Reviewer(
            ReviewDeps(
                self.home,
                stores.sessions,
                stores.jobs,
                self.library,
                self._clock,
                self._reader,
                services,
                self._shed.wall,
                self._models.price,
                bounds,
                self.memories.tools,
            )
        )

    @property
    def curator(self) -> "Curator":
        from hone.features.curator.curator import Curator, CuratorDeps
        from hone.learning.budget import Bounds

        stores = self._opened
        return Curator(
            CuratorDeps(
                self.home,
                stores.sessions,
                stores.rounds,
                self.library,
                self._clock,
                self._librarian,
                SessionDeps(stores.sessions, self._clock, guard=self._shed.guard),
                Bounds(daily=self.settings.learning.daily),
            )
        )

    async def _librarian(self) -> Agent:
        """Whom the curator asks."""
        toolbox = self._shed.show(self.folder)
        return (await self._agent(self.settings.learning.model, self.folder, toolbox))[0]

    async def _reader(self, stored: StoredSession) -> Agent:
        """Who reviews a conversation: the agent that had it, on its own prefix, if both are still there."""
        wanted = self.settings.learning.model or _model_of(stored)
        folder = Path(stored.header.folder or self.folder)
        await self.memories.used()
        toolbox = self._shed.show(folder)
        agent, _ = await self._agent(wanted, folder, toolbox)
        same = (agent.prefix.model, agent.prefix.tools) == (stored.prefix.model, stored.prefix.tools)
        return replace(agent, prefix=stored.prefix) if same else agent

    @property
    def _opened(self) -> Stores:
        """What is kept, opened when it is first needed."""
        if self._stores is None:
            self._stores = opened(self.home)
            if self._stores.closed:
                self._say(self._stores.closed)
        return self._stores

    async def session(
        self, model: str = "", template: str = "", *, id: str = "", told: Sequence[Message] = ()
    ) -> Session:
        """A new conversation. It is stored with its first message. `template` names the one it begins with,
        or is "auto". `id` is one that nobody has yet; `told` is what somebody says was said before, which is
        worth no more than anybody's word."""
        await self.memories.used()
        agent, known = await self._agent(model, self.folder, self._shed.lend(self.folder))
        header = Header(SessionId(id) if id else new_id(), self._clock.now(), folder=str(self.folder))
        services = await self._services(self.folder)
        opening = await self._seeding(template, agent.toolbox) if template else None
        start = Transcript(agent.prefix.digest)
        for message in told:
            start = start.then(message, Trust.FOREIGN, header.created)
        if told:
            await self.sessions.start(header, agent.prefix, start.nodes)
        return Session(header, agent, start, services, stored=bool(told), informed=known, opening=opening)

    async def _seeding(self, template: str, toolbox: Toolbox) -> "Seeding":
        from hone.features.templates.seeding import Seeding
        from hone.features.templates.store import AUTO

        opening = Seeding(self.templates, template, self._clock)
        if template != AUTO:
            await opening.named(toolbox)  # what cannot be had is said now, not after the first message
        return opening

    async def resume(self, beginning: str, model: str = "") -> Session:
        """Goes on with a stored conversation, in its folder and if possible on the prefix it began with."""
        stored = await self.sessions.load(await self.sessions.find(beginning))
        folder = self._folder_of(stored.header)
        await self.memories.used()
        agent, _ = await self._agent(model or _model_of(stored), folder, self._shed.lend(folder))
        services = await self._services(folder)
        session = Session(
            stored.header, replace(agent, prefix=stored.prefix), stored.transcript, services, stored=True
        )
        await self._note_use(stored)
        same = (agent.prefix.model, agent.prefix.tools) == (stored.prefix.model, stored.prefix.tools)
        # What begins with foreign words may have been brought in from elsewhere, system text and all.
        if not same or stored.transcript.nodes[0].trust is Trust.FOREIGN:
            await session.switch(agent)
            self.notices.append(
                f"This conversation goes on with {agent.prefix.model} and the tools of today."
            )
        return session

    async def model(self) -> str:
        """Who is asked where nobody is named. Raises SettingsError if there is nobody."""
        return (await self._models.find("")).name

    async def release(self, session: Session) -> None:
        """Closes what a conversation has open; it can be resumed. For whoever has many of them."""
        await self._shed.release(session.agent.toolbox)

    async def branch(self, beginning: str, shared: int | None = None) -> SessionId:
        """A new conversation with the first messages of another one (default: all of them)."""
        return await branch(self.sessions, beginning, shared, self._clock.now())

    async def template(self, beginning: str, wish: "TemplateOptions | None" = None) -> "Template":
        """Keeps calls of a session that worked, as a template for others."""
        from hone.features.templates.seeding import TemplateOptions, make

        toolbox = self._shed.show(self.folder)
        return await make(
            self.templates, self.sessions, beginning, toolbox, wish or TemplateOptions(), self._clock
        )

    @property
    def laboratory(self) -> "ExperimentRunner":
        """Where lessons are measured."""
        from hone.features.experiments.runner import ExperimentRunner
        from hone.features.experiments.store import Studies

        return ExperimentRunner(self, self.home, Studies(self.home), self._beside, self._clock)

    def _beside(self, home: Path, folder: Path, sandbox: Sandbox) -> "Hone":
        """The same agent with other knowledge, at work elsewhere, and its file tools stay there. It speaks
        through this one's connections, and nobody is there to be asked."""
        memory = msgspec.structs.replace(self.settings.memory, backend="null")
        settings = msgspec.structs.replace(self.settings, plugins=(), memory=memory)
        other = Hone(home=home, folder=folder, settings=settings, clock=self._clock)
        other._models, other._owns_models = self._models, False
        other._plugins, other._shed = self._plugins, other._toolshed(sandbox, penned=True)
        return other

    async def _note_use(self, stored: StoredSession) -> None:
        """A process that was killed may have begun with a template and not have said so."""
        first = stored.transcript.nodes[0]
        if first.message.template and stored.header.parent is None:
            with suppress(StoreError, Refused):  # it may be gone by now
                await self.templates.count(first.message.template, stored.header.id, first.at)

    async def run(self, task: str, emit: Emit = ignore, model: str = "", template: str = "") -> Turn:
        """One task in a session of its own."""
        return await (await self.session(model, template)).send(task, emit)

    async def sandbox(self) -> tuple[bool, list[str]]:
        """Whether commands are confined in the working folder, and what there is to say about it."""
        sandbox = self._shed.sandbox
        cell = sandbox.cell(self.folder)
        choice = await sandbox.choose(cell)
        return not choice.missing(network=False), await sandbox.describe(cell)

    def run_sync(self, task: str) -> Turn:
        """`run` for programs without an event loop. Closes this Hone."""

        async def whole() -> Turn:
            async with self:
                return await self.run(task)

        return asyncio.run(whole())

    def _folder_of(self, header: Header) -> Path:
        if not header.folder:
            return self.folder
        if Path(header.folder).is_dir():
            return Path(header.folder)
        self.notices.append(f"{header.folder} is gone; the tools work in {self.folder}.")
        return self.folder

    async def _services(self, folder: Path) -> SessionDeps:
        fallback = self.settings.fallback
        spare, _ = await self._agent(fallback, folder, self._shed.lend(folder)) if fallback else (None, 0)
        return SessionDeps(
            self.sessions,
            self._clock,
            guard=self._shed.guard,
            fallback=lambda agent: relief(agent, spare),
            equip=lambda: self._shed.equip(folder),
            ask=Consent(self._ask, OwnersList(self.home / "approved.json")),
            brief=lambda known, session: self._brief(folder, known, session),
            remind=self.memories.reminding(),
            every=Intervals(self.settings.learning.turns, self.settings.learning.iterations),
            beside=self.background,
        )

    async def _agent(self, wanted: str, folder: Path, toolbox: Toolbox) -> tuple[Agent, ChangeId]:
        """And the last change that its prefix knows of."""
        found = await self._models.find(wanted)
        room = Windowed(found.model, found.window, self.settings.compact_at)
        if found.plain:
            prefix = compose(found.name, (plain(),), (), self.settings.sampling)
            return Agent(prefix, room, {}, USER, Limits()), await self.library.keeper.ledger.latest()
        known = await self._known.snapshot(folder)
        prefix = compose(found.name, self._sections(folder, known), toolbox.values(), self.settings.sampling)
        return Agent(prefix, room, toolbox, USER, Limits(calls=self.settings.calls)), known.upto

    def _sections(self, folder: Path, known: Snapshot) -> Iterable[str]:
        day = self._clock.now().astimezone().date()
        return ordered(
            self._plugins.sections,
            index(known.skills, known.total),
            self._instructed(folder),
            redact(journal(known)),
            surroundings(folder, day, sys.platform),
        )

    def _instructed(self, folder: Path) -> str:
        found = self.instructions.of(folder)
        if isinstance(found, UnusedInstructions):
            self._say(found.why)
        return instructions(found.name, found.text) if isinstance(found, FoundInstructions) else ""

    async def _brief(self, folder: Path, known: int | None, session: SessionId) -> SystemNote | None:
        """What a running conversation has to be told before the user's next words."""
        if self.settings.memory.freshness == "next-session":
            return None
        if known is None:
            return SystemNote("", await self.library.keeper.ledger.latest())
        found = await self._known.news(folder, ChangeId(known), session)
        return tell(found) or (SystemNote("", found.upto) if found.upto != known else None)

    def _memories(self) -> Memories:
        memory = self.settings.memory
        wish = BackendOptions(memory.backend, memory.url, memory.owner, memory.deadline)
        backing = CurrentBackend(
            self.home, self._clock, wish, self._plugins.backends, self._say, dict(os.environ)
        )
        return Memories(backing, lambda: self._opened, self._clock, redact)

    def _rules(self, closed: str) -> KeeperRules:
        memory, learning = self.settings.memory, self.settings.learning
        limits = {MEMORY: memory.memory, PROFILE: memory.user, "project": memory.project}
        modes = {Actor.AGENT: learning.agent, Actor.REVIEW: learning.review, Actor.CURATOR: learning.curator}
        named = {actor: LearningMode(mode) for actor, mode in modes.items()}
        return KeeperRules(limits, named, closed, LearningMode(learning.merges))

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self.notices.append(sentence)

    def _toolshed(self, sandbox: Sandbox, *, penned: bool = False) -> ToolboxFactory:
        def more(folder: Path) -> Iterable[Tool]:
            return (
                recall_tool(self.recall, self.sessions, self._clock),
                *knowledge_tools(self.library, str(folder)),
                *self.memories.tools(),
                *self._plugins.tools,
            )

        http = self._models.http
        return ToolboxFactory(
            ToolboxDeps(self.home, self.settings, self.folders, sandbox, self._clock, http, more, penned)
        )


def _model_of(stored: StoredSession) -> str:
    """Empty for a conversation with another agent: whoever is asked now goes on with it."""
    return "" if stored.prefix.provider == IMPORTED else stored.prefix.model


def relief(agent: Agent, spare: Agent | None) -> Agent | None:
    """The spare agent with the rights of the one it relieves; None if that one is the spare itself."""
    if spare is None or spare.prefix.model == agent.prefix.model:
        return None
    return replace(spare, permit=agent.permit, limits=agent.limits)
