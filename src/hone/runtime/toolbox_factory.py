"""Create the tools that work in a folder, all confined in the same way."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.documents import Documents
from hone.core.errors import Refused
from hone.core.loading import import_object
from hone.core.monitor import UNMONITORED, Monitors
from hone.core.permit import Effect
from hone.core.secrets import conceal, redact
from hone.core.tool import CallGuard, Tool, Toolbox
from hone.core.tool_context import ToolContext
from hone.core.work import Work
from hone.models.http import Http, ReplyBounds
from hone.models.http.addresses import public_only
from hone.runtime.guardrails import Guard, MonitoredGuard, Remember, RememberingGuard
from hone.runtime.model_factory import open_keys
from hone.sandbox.choice import Sandbox
from hone.settings import Settings
from hone.tools.define import Function, as_tool
from hone.tools.delegate import delegate_tool
from hone.tools.files import file_tools
from hone.tools.search import search_tool
from hone.tools.shell import Shell, shell_tools
from hone.tools.todo import todo
from hone.tools.web import web_tools
from hone.tools.wrappers import Capped, Permitted, SafeTool, Withholding

DANGER = "hone.runtime.danger:danger"
"""The detector of dangerous commands, imported with the first command."""
DESCRIBE_VIEW = "hone.sandbox.report:describe_view"
"""Imported for `hone doctor`."""
PAGE_BOUNDS = ReplyBounds(first_byte=20.0, settable=False)
"""How long a web server may stay silent."""


Equip = Callable[[Path], Toolbox]
"""Returns the tools that work in a folder."""


class Enclosure(Struct, frozen=True):
    """A folder that tools work in and cannot leave, with the sandbox that keeps commands in it."""

    folder: Path
    sandbox: Sandbox


BuiltIn = bool | Iterable[str]
"""Which built-in tools an agent gets: all, none, or those with these names."""


class ChosenTools(Struct, frozen=True):
    """A program's choice: the built-in tools it wants, and its own."""

    wanted: bool | tuple[str, ...] = True
    own: tuple[Tool, ...] = ()

    @classmethod
    def choose(cls, wanted: BuiltIn, own: Iterable[Tool | Function]) -> "ChosenTools":
        return cls(wanted if isinstance(wanted, bool) else tuple(wanted), tuple(map(as_tool, own)))

    def select(self, built_in: Sequence[Tool]) -> Sequence[Tool]:
        """Return the chosen built-in tools. Raises Refused for an unknown name."""
        if isinstance(self.wanted, bool):
            return built_in if self.wanted else ()
        known = {tool.spec.name: tool for tool in built_in}
        if unknown := [name for name in self.wanted if name not in known]:
            raise Refused(
                f"builtin_tools names {unknown[0]!r}, and no built-in tool has that name. "
                f"These exist: {', '.join(sorted(known))}."
            )
        return [known[name] for name in self.wanted]


SPILL_READER = "hone.tools.spilled:SpillReader"
"""Imported if the database is elsewhere."""


class ToolboxDeps(Struct, frozen=True):
    """What the tools need. `more` returns tools that use what the home knows; `search` sends requests to the
    search engine; `work` observes what tools do to the files of a folder."""

    home: Path
    documents: Documents
    settings: Settings
    sandbox: Sandbox
    clock: Clock
    search: Http
    more: Callable[[Path], Iterable[Tool]]
    work: Callable[[Path], Work]
    chosen: ChosenTools = ChosenTools()
    wrap: Callable[[Sequence[Tool], Path, Work], Sequence[Tool]] = lambda tools, *_: tools
    """Adds what features and plugins do around calls."""
    remember: Remember | None = None
    """Hears each result, with the reason if it is foreign only because the owner's trust is missing."""
    monitors: Monitors = UNMONITORED


class ToolboxFactory:
    """Lends tools, and closes the shells among them."""

    def __init__(self, deps: ToolboxDeps) -> None:
        self.sandbox = deps.sandbox
        self._ground = deps
        self._pages = Http(deps.clock, PAGE_BOUNDS, admit=public_only)
        self._lent: list[tuple[Toolbox, Shell]] = []

    @property
    def lent(self) -> int:
        """Count the toolboxes in use."""
        return len(self._lent)

    def lend(self, folder: Path) -> Toolbox:
        toolbox, shell = self._tools(folder)
        self._lent.append((toolbox, shell))
        return toolbox

    def show(self, folder: Path) -> Toolbox:
        """Return tools for their declarations, to a caller that runs none of them. They include all built-in
        ones: a review writes with some that the program may have left out."""
        return self._tools(folder, ChosenTools(own=self._ground.chosen.own))[0]

    @asynccontextmanager
    async def equip(self, folder: Path) -> AsyncIterator[Toolbox]:
        """Yield temporary tools with their own shell."""
        toolbox, shell = self._tools(folder)
        try:
            yield toolbox
        finally:
            await shell.close()

    async def release(self, toolbox: Toolbox) -> None:
        own = [shell for lent, shell in self._lent if lent is toolbox]
        self._lent = [each for each in self._lent if each[0] is not toolbox]
        for shell in own:
            await shell.close()

    async def close(self) -> None:
        await self._pages.close()
        for _, shell in self._lent:
            await shell.close()

    async def report(self, folder: Path) -> tuple[bool, list[str]]:
        """Tell whether commands are confined in a folder, and what there is to say about it."""
        spec = self.sandbox.spec(folder)
        choice = await self.sandbox.choose(spec)
        view = import_object(DESCRIBE_VIEW)(folder, self.sandbox, choice, self._ground.clock)
        return not choice.missing(network=False), [*await self.sandbox.describe(spec), *view]

    def wall(self, tool: Tool) -> Tool:
        """Put the same wrappers around every tool: no errors, no secrets, no endless results."""
        deps = self._ground
        safe = tool if isinstance(tool, SafeTool) else SafeTool(tool, self._redact)
        return Capped(safe, deps.documents, deps.home, deps.settings.result_limit)

    def _reading(self, tool: Tool) -> Tool:
        """Let a file tool read long results that are stored elsewhere."""
        deps = self._ground
        if not deps.documents.shared or Effect.WRITE in tool.spec.effects:
            return tool
        made: Tool = import_object(SPILL_READER)(tool, deps.documents, deps.home)
        return made

    def _redact(self, text: str) -> str:
        """Remove the keys stored in the home by their values, and other secrets by their form."""
        keys = open_keys(self._ground.home)
        return redact(conceal(text, keys.values()) if keys else text)

    def guard(self) -> CallGuard:
        """Return the guardrails of one turn."""
        deps = self._ground
        guard: CallGuard = Guard(deps.settings.guardrails)
        guard = RememberingGuard(guard, deps.remember) if deps.remember else guard
        return MonitoredGuard(guard, deps.monitors) if deps.monitors else guard

    def _tools(self, folder: Path, chosen: ChosenTools | None = None) -> tuple[Toolbox, Shell]:
        """Return every tool, ours and a plugin's, behind the same wrappers."""
        deps, chosen = self._ground, chosen or self._ground.chosen
        observed, vouching = deps.work(folder), Vouching(deps.sandbox)
        work = Work(observed.labels, lambda: (vouching, *observed.observers()))
        shell = shell_tools(
            folder,
            deps.sandbox,
            lambda command: import_object(DANGER)(command, str(folder)),
            work,
            clock=deps.clock,
        )
        engine = deps.search if deps.settings.search else None
        web = web_tools(self._pages, engine, deps.settings.search, clock=deps.clock)
        built_in = (
            *map(self._reading, (*file_tools(folder, work), search_tool(folder, work))),
            *shell.tools,
            *web,
            todo,
            delegate_tool(),
            *(Permitted(tool) for tool in deps.more(folder)),
        )
        tools = (*chosen.select(built_in), *map(Permitted, chosen.own))
        safe = [SafeTool(Withholding(tool, folder), self._redact) for tool in tools]
        wrapped = deps.wrap(safe, folder, work)
        return {tool.spec.name: self.wall(tool) for tool in wrapped}, shell


class Vouching:
    """Tells the sandbox which sensitive files a tool writes with the owner's consent. Otherwise a command
    running at the same time would be taken for the writer, and the file restored."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        self._sandbox.vouch(path)

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        """Do nothing: the sandbox was told before the write."""

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        yield
