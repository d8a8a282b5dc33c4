"""The composition root: build a Hone from its settings. Only this module puts all packages together.

Each component is built when it is first used. A command that undoes one change opens no connection, no
sandbox and no memory backend.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hone.core.agent import Agent, Limits, relieve
from hone.core.clock import Clock, SystemClock
from hone.core.ids import SessionId
from hone.core.jobs import Jobs, Topic
from hone.core.ledger import MEMORY, Actor, ChangeId, Entry, Ledger
from hone.core.ledger import USER as PROFILE
from hone.core.loading import import_object
from hone.core.messages import Message, SystemNote
from hone.core.model import Model
from hone.core.monitor import Monitors
from hone.core.part import Part
from hone.core.permissions import Ask, Mode, nobody
from hone.core.permit import USER
from hone.core.ports import Header, Sessions, StoredSession
from hone.core.recall import Recall
from hone.core.tool import Tool, Toolbox
from hone.core.transcript import Source, Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import path_to_text, text_to_path
from hone.core.work import Work, WorkObserver
from hone.files.documents import choose_documents
from hone.files.tree import FileTree
from hone.knowledge.keeper import Keeper
from hone.knowledge.library import Library
from hone.knowledge.places import ARCHIVE, SKILL_FILES, SKILLS
from hone.knowledge.snapshots import SnapshotCache
from hone.knowledge.tools import knowledge_tools
from hone.knowledge.verdicts import LAG, KeeperRules, LearningMode
from hone.learning.background import QUIET, Background, Pacing
from hone.learning.budget import Bounds
from hone.learning.lookback import Lookback, choose_schedule, explain_off, look_after
from hone.models.wrappers import Windowed
from hone.prompt.compose import compose, read_text
from hone.prompt.modes import find_mode
from hone.prompt.news import describe_news as tell
from hone.registry import FEATURES
from hone.runtime.claims import Presence
from hone.runtime.continuing import branch, find_folder, has_same_shape, model_for, model_of
from hone.runtime.instructions import Instructions, PromptSections
from hone.runtime.model_factory import ModelFactory
from hone.runtime.parts import Parts
from hone.runtime.permissions.factory import PermissionsFactory
from hone.runtime.permissions.rules import parse_rules
from hone.runtime.provenance.lazy import LazyProvenance
from hone.runtime.session import Session, SessionDeps, new_id
from hone.runtime.task_runner import TaskRunner
from hone.runtime.toolbox_factory import BuiltIn, ChosenTools, Enclosure, Equip, ToolboxDeps, ToolboxFactory
from hone.runtime.triggers import configure_topics
from hone.runtime.trust import Folders, OwnersList
from hone.sandbox.choice import Sandbox
from hone.settings import Settings, home_folder, read
from hone.stores.home import Stores, open_stores
from hone.tools.define import Function
from hone.tools.recall import recall_tool

if TYPE_CHECKING:
    from hone.core.embedding import Meanings
    from hone.learning.review import Reviewer

CLAIM = "hone.runtime.turn_claims:ConversationClaim"
"""Imported only when several processes share the stores."""
P = TypeVar("P", bound=Part)
Told = Sequence[Message]


class Hone(TaskRunner):
    """An agent with a home. `async with Hone() as hone:` closes what it opened.

    home:    where sessions and settings live (default: $HONE_HOME or ~/.hone)
    model:   provider/name (default: hone.toml, $HONE_MODEL, the keys and servers present), a Model, or the
             `models` of another Hone, which stay its own to close
    folder:  the working folder of its tools (default: the current one), or an Enclosure they cannot leave
    tools:   your own: made with @tool, or plain typed functions with a docstring
    builtin_tools: False leaves the built-in tools out; a list names those to keep
    system:  further text for the system prompt
    ask:     how to ask the owner before something dangerous is done (default: the answer is no)
    mode:    plan, ask, auto or full: what is done without a question (default: hone.toml, auto)
    allow, deny: rules such as "terminal: git *", beside those of hone.toml
    learning:  background: look back over conversations in the event loop (default); queue: leave that to a
               chat, a server or `hone worker`; off: learn nothing. `close` gives it `learning_wait` seconds,
               and so does the first conversation if an earlier process left something to review
    platform: the kind of program this is, for the log and for copies (default: the command line)
    """

    def __init__(  # noqa: PLR0913  every one is a choice of the caller's
        self,
        *,
        home: Path | str | None = None,
        model: str | Model | ModelFactory = "",
        folder: Path | str | Enclosure | None = None,
        tools: Iterable[Tool | Function] = (),
        builtin_tools: BuiltIn = True,
        system: str = "",
        ask: Ask = nobody,
        mode: Mode | str = "",
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        settings: Settings | None = None,
        clock: Clock | None = None,
        learning: str = "",
        learning_wait: float = 5.0,
        platform: str = "",
    ) -> None:
        self.platform = platform
        self.home = Path(home) if home else home_folder()
        self.enclosure = folder if isinstance(folder, Enclosure) else None
        place = folder.folder if isinstance(folder, Enclosure) else folder
        self.folder = Path(place or Path.cwd()).resolve()
        allow, deny = tuple(allow), tuple(deny)
        parse_rules(allow, deny)  # checked alone, since an error in hone.toml names that file
        self.settings = (settings or read(self.home)).with_rules(allow, deny)
        self.clock = clock or SystemClock()
        self.tools = ChosenTools.choose(builtin_tools, tools)
        self.system = system
        self.notices: list[str] = []
        self.documents = choose_documents(self.home, self.settings.database, lambda: self.stores.documents)
        self.folders = Folders.of(self.documents)
        self.provenance = LazyProvenance(self.home, self.folders, self.settings.sandbox_in)
        self.instructions = Instructions(self.folders, OwnersList(self.documents, "instructions.json"))
        self._said: set[str] = set()
        self._sections = PromptSections(self.clock, self.instructions, self.say)
        self._model = model
        self._schedule = choose_schedule(learning, os.environ.get("HONE_LEARNING", ""))
        self._learning_wait = learning_wait
        kept = (self.home, self.documents, self.settings, self.folders)
        self.permissions = PermissionsFactory(*kept, ask, mode, self.say)
        self._parts = Parts(self, FEATURES, self.settings.plugins)

    async def close(self, *, wait: bool = True) -> None:
        """Close what was opened, dependents first. Reviews get `learning_wait` seconds before they are left
        for later, or none without `wait`."""
        built = vars(self)
        if "lookback" in built:
            await self.lookback.finish(wait=wait)
        if "background" in built:
            await self.background.close()
        await self._parts.close()
        if "models" in built and self.models is not self._model:
            await self.models.close()
        if "toolboxes" in built:
            await self.toolboxes.close()
        self.provenance.close()
        if "keeper" in built:
            await self.keeper.settle()
            self.keeper.close()
        if "stores" in built:
            await self.stores.close()

    # What is stored

    @cached_property
    def stores(self) -> Stores:
        stores = open_stores(self.home, self.settings.database)
        self.say(stores.closed)
        return stores

    @property
    def sessions(self) -> Sessions:
        return self.stores.sessions

    @cached_property
    def recall(self) -> Recall:
        """Search over all sessions."""
        found = self.stores.recall
        for part in self._parts.having("recall"):
            found = part.recall(found)
        return found

    @cached_property
    def meanings(self) -> "Meanings | None":
        """Vectors of short texts; None unless an embedder is set."""
        parts = self._parts.having("meanings") if self.settings.recall.embedder else ()
        return next((made for part in parts if (made := part.meanings())), None)

    @property
    def jobs(self) -> Jobs:
        """Reviews that are queued, running and done."""
        return self.stores.jobs

    @property
    def ledger(self) -> Ledger:
        """Every change of what is known."""
        return self.keeper.ledger

    @cached_property
    def keeper(self) -> Keeper:
        """The only way to change what is known."""
        stores, rules, served = self.stores, self._rules(), "hone.knowledge.served:ServedKnowledge"
        away = self.settings.database
        disk = import_object(served)(stores.ledger, self.home) if away else FileTree(self.home)
        shared = self._parts.shared_entries if away else None
        needed = (stores.ledger, disk, self.clock, self.say, rules, self.meanings, stores.sessions)
        return Keeper(*needed, shared)

    @cached_property
    def library(self) -> Library:
        """The skills."""
        needed = (self.keeper, self.stores.catalog, self.clock, self.meanings)
        return Library(*needed, self._parts.settle_skills)

    @cached_property
    def _known(self) -> SnapshotCache:
        return SnapshotCache(self.library)

    def _rules(self) -> KeeperRules:
        memory, learning = self.settings.memory, self.settings.learning
        limits = {MEMORY: memory.memory, PROFILE: memory.user, "project": memory.project}
        modes = {Actor.AGENT: learning.agent, Actor.REVIEW: learning.review, Actor.CURATOR: learning.curator}
        named = {actor: LearningMode(mode) for actor, mode in modes.items()}
        closed, merges = self.stores.closed, LearningMode(learning.merges)
        return KeeperRules(limits, named, closed, merges, self.platform, LAG)

    # Sessions

    async def session(
        self, model: str = "", template: str = "", *, id: str = "", told: Told = (), folder: Path | str = ""
    ) -> Session:
        """Open a new conversation. It is stored with its first message. `template` names its template, or is
        "auto". `id` must be unused. `told` holds the messages that a client claims came before; they count as
        foreign text. Its tools work in `folder`, a real path (default: that of this Hone)."""
        await self.ready()
        place = Path(folder) if folder else self.folder
        agent, known = await self._agent(model, place, self.toolboxes.lend)
        header = Header(SessionId(id) if id else new_id(), self.clock.now(), folder=path_to_text(place))
        deps = await self._session_deps(place, agent.toolbox)
        opening = await self._parts.seed(template, agent.toolbox) if template else None
        start = Transcript(agent.prefix.digest)
        for message in told:
            start = start.then(message, Trust.FOREIGN, header.created)
        if told:
            await self.sessions.start(header, agent.prefix, start.nodes)
        self.lookback.join(header.id)
        return Session(header, agent, start, deps, stored=bool(told), informed=known, opening=opening)

    async def resume(self, beginning: str, model: str = "") -> Session:
        """Resume a stored conversation in its folder and, if possible, on the prefix it began with."""
        stored = await self.sessions.load(await self.sessions.find(beginning))
        folder = find_folder(stored.header, self.folder, self.notices, self.enclosure)
        await self.ready()
        wanted = model_for(stored, model, self.settings)
        agent, _ = await self._agent(wanted, folder, self.toolboxes.lend)
        deps = await self._session_deps(folder, agent.toolbox, find_mode(stored.transcript))
        own = replace(agent, prefix=stored.prefix)
        session = Session(stored.header, own, stored.transcript, deps, stored=True)
        for part in self._parts.having("resumed"):
            await part.resumed(stored)
        # A conversation that starts with foreign words may be an import, system text included.
        if not has_same_shape(agent, stored) or stored.transcript.nodes[0].trust is Trust.FOREIGN:
            await session.switch(agent)
            self.notices.append(f"This conversation continues with {agent.prefix.model} and today's tools.")
        self.lookback.join(session.id)
        return session

    async def branch(self, beginning: str, shared: int | None = None) -> SessionId:
        """Start a new conversation with the first messages of another one (default: all of them)."""
        return await branch(self.sessions, beginning, shared, self.clock.now())

    def is_from_plugin(self, model: str) -> bool:
        """Tell whether a plugin brings this model."""
        return self._parts.connect(model.partition("/")[0], own=True) is not None

    async def release(self, session: Session) -> None:
        """Close what a conversation has open; it can be resumed."""
        await self.toolboxes.release(session.agent.toolbox)

    async def model(self) -> str:
        """Return the name of the default model. Raises SettingsError if there is none."""
        return (await self.models.find("")).name

    async def sandbox(self) -> tuple[bool, list[str]]:
        """Tell whether commands are confined in the working folder, and what there is to say about it."""
        return await self.toolboxes.report(self.folder)

    # Features and plugins

    def part(self, kind: type[P]) -> P:
        """Return a feature's part of this Hone."""
        part = self._parts.get(kind.name)
        assert isinstance(part, kind)
        return part

    def parts(self, hook: str, folder: Path | None = None) -> Iterator[Part]:
        """Yield the parts that implement this method of `Part`; a `folder` may give one something to do."""
        return self._parts.having(hook, folder)

    async def ready(self) -> None:
        """Let features and plugins prepare what their tools need."""
        if self.stores.shared:
            await asyncio.to_thread(self.folders.look)
        for part in self._parts.having("ready"):
            await part.ready()

    async def findings(self, kind: str, name: str, digest: str) -> list[str]:
        """Return what was measured about a lesson (`skill`, `entry` or `template`), one line each."""
        return await self._parts.collect("findings", kind, name, digest)

    async def leftovers(self, sessions: Sequence[SessionId]) -> list[str]:
        """Say what else holds text of these sessions."""
        return await self._parts.collect("leftovers", sessions)

    async def checks(self) -> list[tuple[bool, str]]:
        """Check what features and plugins keep, for `hone doctor --deep`."""
        return await self._parts.collect("checks")

    @cached_property
    def monitors(self) -> Monitors:
        """The listeners that hear when turns, model calls and tool calls begin and end."""
        return self._parts.monitors()

    # Learning

    @cached_property
    def background(self) -> Background:
        """The learning that runs beside the conversations. `attend` starts it."""
        names = frozenset(topic.name for topic in self._topics if topic.interval)
        at_once = self.settings.learning.parallel
        pacing = Pacing(QUIET, Presence(self.home), lambda: self.models.is_local, at_once)
        return Background(self.jobs, lambda: self.reviewer, self.clock, self.parts, names, pacing)

    @cached_property
    def lookback(self) -> Lookback:
        """The schedule by which this process looks back over its conversations."""
        return Lookback(self.jobs, self.background, self.clock, self._schedule, self._learning_wait)

    async def learned(self) -> Sequence[Entry]:
        """Look back over the conversations so far, and return what that changed since the last call; nothing
        unless this Hone learns in the background."""
        return await self.lookback.learned()

    @property
    def learning_off(self) -> str:
        """The reason why Hone does not look back over conversations; empty if it does."""
        return explain_off(self._schedule, self.settings.learning) or self.stores.closed

    @cached_property
    def _topics(self) -> Sequence[Topic]:
        return () if self.learning_off else configure_topics(self.settings.learning)

    @property
    def bounds(self) -> Bounds:
        """The limits on what learning may cost."""
        return Bounds(daily=self.settings.learning.daily, unpaid=self.settings.learning.unpaid)

    @property
    def reviewer(self) -> "Reviewer":
        # Most starts leave reviews to others.
        from hone.learning.review import ReviewDeps, Reviewer  # noqa: PLC0415

        stores = self.stores
        kept = (stores.claims, stores.sessions, stores.jobs, self.library, self.clock)
        needed = (self._reader, self.quiet_deps(), self.toolboxes.wall, self.models.terms, self.bounds)
        rest = (self._review_tools, self.learning_off, self._parts.learned, stores.overview)
        return Reviewer(ReviewDeps(self.home, *kept, *needed, *rest))

    def quiet_deps(self) -> SessionDeps:
        """Return what a background session needs: it asks nobody and queues nothing."""
        return SessionDeps(self.sessions, self.clock, guard=self.toolboxes.guard, monitors=self.monitors)

    async def agent(self, model: str = "", folder: Path | None = None) -> Agent:
        """Return an agent that sees its tools but cannot run them, for a review or the curator."""
        await self.ready()
        place = Path(folder) if folder else self.folder
        return (await self._agent(model, place, self.toolboxes.show))[0]

    async def _reader(self, stored: StoredSession) -> Agent:
        """Return a conversation's reviewer: the agent that had it, on its own prefix if possible."""
        wanted = self.settings.learning.model or model_of(stored)
        agent = await self.agent(wanted, text_to_path(stored.header.folder or path_to_text(self.folder)))
        return replace(agent, prefix=stored.prefix) if has_same_shape(agent, stored) else agent

    # Agents

    @cached_property
    def models(self) -> ModelFactory:
        """The factory that turns a model's name into a model that answers."""
        if isinstance(self._model, ModelFactory):
            return self._model
        own, connect = self.settings.providers, self._parts.connect
        wanted, kept = (self.settings, self.clock, self._model), (self.home, self.monitors)
        return ModelFactory(*wanted, lambda name: connect(name, own=name in own), *kept)

    @cached_property
    def toolboxes(self) -> ToolboxFactory:
        """The factory that turns a folder into the tools that work in it."""
        sandbox = self.enclosure.sandbox if self.enclosure else self._sandbox()
        kept = (self.home, self.documents, self.settings)
        needed = (*kept, sandbox, self.clock, self.models.http, self._tools, self._work)
        around = (self._parts.wrap, self.provenance.remember, self.monitors)
        return ToolboxFactory(ToolboxDeps(*needed, self.tools, *around))

    def _sandbox(self) -> Sandbox:
        """Return the sandbox. Its commands see the skills in use, and nothing else of the home."""
        return Sandbox(
            home=self.home,
            shown=(self.home / (SKILL_FILES if self.settings.database else SKILLS),),
            hidden=(self.home / ARCHIVE,),
            access=lambda folder: self.settings.sandbox_in(folder).access(),
            clock=self.clock,
        )

    def _tools(self, folder: Path) -> Iterable[Tool]:
        return (
            recall_tool(self.recall, self.sessions, self.clock),
            *knowledge_tools(self.library, path_to_text(folder)),
            *(tool for part in self._parts.having("tools") for tool in part.tools(folder)),
        )

    def _review_tools(self, source: Source, ledger: Ledger) -> Sequence[Tool]:
        parts = self._parts.having("tools")
        return [tool for part in parts for tool in part.review_tools(self.folder, source, ledger)]

    async def _agent(self, wanted: str, folder: Path, equip: Equip) -> tuple[Agent, ChangeId]:
        """Return the agent, and the last change in its prefix. A plain model gets no tools."""
        found = await self.models.find(wanted)
        await self.lookback.catch_up()
        room = Windowed(found.model, found.window, self.settings.compact_at, schemas=found.schemas)
        if found.plain:
            prefix = compose(found.name, (read_text("plain"),), (), self.settings.sampling)
            return Agent(prefix, room, {}, USER, Limits()), await self.ledger.latest()
        known, toolbox = await self._known.snapshot(folder), equip(folder)
        added = (*self._parts.sections(folder), self.system)
        sections = self._sections.order(folder, known, added, toolbox)
        prefix = compose(found.name, sections, toolbox.values(), self.settings.sampling)
        return Agent(prefix, room, toolbox, USER, Limits(calls=self.settings.calls)), known.upto

    async def _session_deps(self, folder: Path, own: Toolbox, told: Mode | None = None) -> SessionDeps:
        """Return what a session needs. `own` are its tools, which a fallback model uses, too."""
        fallback = self.settings.fallback
        equip = (lambda _: own) if own else self.toolboxes.lend
        spare, _ = await self._agent(fallback, folder, equip) if fallback else (None, 0)
        reminders = (part.remind() for part in self._parts.having("remind"))
        return SessionDeps(
            self.sessions,
            self.clock,
            guard=self.toolboxes.guard,
            fallback=lambda agent: relieve(agent, spare),
            equip=lambda: self.toolboxes.equip(folder),
            permissions=self.permissions.create(folder, told, confined=self.enclosure is not None),
            brief=lambda known, session: self._brief(folder, known, session),
            remind=next((remind for remind in reminders if remind), None),
            suggest=self.library.suggest if "skill_view" in own else None,
            topics=self._topics,
            look_after=look_after(self.settings.learning.after_exit, self.models.cache_rule),
            beside=self.background,
            ended=self._parts.ended,
            hire=self.models.hire,
            claim=partial(import_object(CLAIM), self.stores.open_claims) if self.stores.shared else None,
            monitors=self.monitors,
        )

    @property
    def mode(self) -> Mode:
        """The mode in which conversations begin."""
        return self.permissions.mode

    def _work(self, folder: Path) -> Work:
        """Return what observes the tools of one conversation in a folder."""

        @cache
        def observers() -> Sequence[WorkObserver]:
            found = (part.observer(folder) for part in self._parts.having("observer"))
            return [self.provenance, *(each for each in found if each)]

        return Work(self.provenance, observers)

    async def _brief(self, folder: Path, known: int | None, session: Session) -> SystemNote | None:
        """Return what a running conversation must be told before the user's next words."""
        note = await self._describe_news(folder, known, session.id)
        more = await self._parts.news(folder, session.agent.prefix, session.transcript)
        before = note or SystemNote("", known or 0)
        return replace(before, text="\n".join(filter(None, (before.text, more)))) if more else note

    async def _describe_news(self, folder: Path, known: int | None, session: SessionId) -> SystemNote | None:
        if self.settings.memory.freshness == "next-session":
            return None
        if known is None:
            return SystemNote("", await self.ledger.latest())
        found = await self._known.news(folder, ChangeId(known), session)
        return tell(found) or (SystemNote("", found.upto) if found.upto != known else None)

    def say(self, sentence: str) -> None:
        """Leave a notice for the owner. A repeated sentence is dropped."""
        if sentence and sentence not in self._said:
            self._said.add(sentence)
            self.notices.append(sentence)
