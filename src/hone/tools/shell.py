"""The terminal and execute_code: sandboxed commands, a lasting working directory, background processes."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Struct

from hone.core import seldom
from hone.core.clock import Clock
from hone.core.errors import HoneError
from hone.core.loading import import_object
from hone.core.messages import sound
from hone.core.permissions import Mode
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolKind, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.work import Work
from hone.sandbox.choice import NONE, Sandbox, SandboxChoice
from hone.sandbox.spec import PATH, Claim, Launch, SandboxUnavailable
from hone.tools.define import tool
from hone.tools.doubts import CommandRequest, Judge

if TYPE_CHECKING:
    from hone.sandbox.process import Ended, Running
    from hone.sandbox.workspace import Workspace

WORKSPACE = "hone.sandbox.workspace:Workspace"
"""Imported with the first command."""
LONGEST = 100_000
"""The most bytes of a command; the system allows a little more in one argument."""
MOST = 20
"""The most background processes at a time."""

# Arguments: the command, where to start it, and the folder to fall back to. The shell writes its last
# folder to a separate pipe, so no output can be mistaken for it.
_SCRIPT = (
    'trap "pwd -P >&3 2>/dev/null" EXIT; '
    'cd -- "$2" 2>/dev/null || { cd -- "$3" && echo "(back in $3: $2 no longer exists)"; }; '
    'eval "$1"'
)
SEALED = "git hooks and config, CI files and startup files are read-only here; change them with write_file"
_SEALED_SIGNS = ("Read-only file system", "Device or resource busy")
_SNIPPET = Path(__file__).with_name("snippet.py").read_text("utf-8")


class BackgroundProcess(Struct, frozen=True):
    """A process in the background."""

    command: str
    running: "Running"
    choice: SandboxChoice
    network: bool

    @property
    def state(self) -> str:
        code = self.running.code
        return f"running for {self.running.seconds:.0f} s" if code is None else f"ended: {named(code)}"


class Shell:
    """The tools that run commands, and what they share. Close it with its session."""

    def __init__(
        self, folder: Path, sandbox: Sandbox, danger: Judge, work: Work, clock: Clock | None = None
    ) -> None:
        self.folder = folder.resolve()
        self.place = str(self.folder)
        self.danger = danger
        self.work = work
        self.jobs: dict[str, BackgroundProcess] = {}
        self._sandbox = sandbox
        self._clock = clock
        self._last = 0
        self._watching: set[asyncio.Task[None]] = set()

    @cached_property
    def workspace(self) -> "Workspace":
        """Where commands run. It is made with the first one."""
        made: Workspace = import_object(WORKSPACE)(self.folder, self._sandbox, self._clock)
        return made

    @property
    def tools(self) -> Sequence[Tool]:
        """Return new tools, so that a shell ends with its tools."""
        return _terminal(self), _process(self), _code(self)

    async def close(self) -> None:
        self.jobs.clear()
        if "workspace" in vars(self):
            await self.workspace.close()
        await asyncio.gather(*self._watching, return_exceptions=True)

    def trust(self, text: str, choice: SandboxChoice, *, network: bool) -> Trust:
        """Return the best label that a command's output may carry."""
        if network or Claim.NETWORK not in choice.held:
            return Trust.FOREIGN
        return self.work.labels.of_output(self.folder, text)

    def launch(
        self, argv: Sequence[str], choice: SandboxChoice, context: ToolContext, *, network: bool
    ) -> Launch:
        """Start a command. A planning agent gets a read-only sandbox. Raises SandboxUnavailable."""
        return self.workspace.launch(argv, choice, network=network, read_only=only_looks(context))

    def around(self, text: str, context: ToolContext, *, network: bool) -> AbstractAsyncContextManager[None]:
        return self.work.around_command(self.folder, text, context, network=network)

    def observe(self, stack: AsyncExitStack, running: "Running") -> None:
        """Keep the stack open until a background process has ended."""

        async def until_the_end() -> None:
            async with stack:
                await running.wait()

        task = asyncio.create_task(until_the_end())
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    def impossible(self, command: str, *, background: bool) -> str:
        if "\0" in command or len(command.encode()) > LONGEST:
            return (
                f"a command can have at most {LONGEST:,} bytes and no NUL byte. Use write_file for long text."
            )
        if background and sum(job.running.code is None for job in self.jobs.values()) >= MOST:
            return f"{MOST} processes are already running in the background. Stop one of them first."
        return ""

    def note(self, job: BackgroundProcess) -> str:
        """Return the name of a background job. The oldest ended jobs are forgotten."""
        ended = [id for id, each in self.jobs.items() if each.running.code is not None]
        for id in ended[: max(0, len(self.jobs) + 1 - MOST)]:
            del self.jobs[id]
        self._last += 1
        self.jobs[f"p{self._last}"] = job
        return f"p{self._last}"

    def argv(self, command: str) -> list[str]:
        shell = seldom.shutil.which("bash", path=PATH) or "/bin/sh"
        return [shell, "-c", _SCRIPT, shell, command, self.place, str(self.folder)]

    def arrive(self, report: bytes) -> str:
        """Adopt the folder where a command ended. Return a notice if it changed."""
        place = os.fsdecode(report.removesuffix(b"\n"))
        if not place.startswith("/") or "\0" in place or place == self.place:
            return ""
        self.place = place
        return sound(place)


def shell_tools(
    folder: Path,
    sandbox: Sandbox,
    danger: Judge,
    work: Work,
    *,
    clock: Clock | None = None,
) -> Shell:
    return Shell(folder, sandbox, danger, work, clock)


def _terminal(shell: Shell) -> Tool:
    @tool(effects={Effect.READ, Effect.WRITE, Effect.EXECUTE}, network_flag="network")
    async def terminal(
        context: ToolContext,
        command: str,
        timeout: Annotated[int, "seconds", msgspec.Meta(ge=1, le=3600)] = 120,
        background: Annotated[bool, "do not wait; see process"] = False,
        network: bool = False,
    ) -> Outcome:
        """Run a shell command in a sandbox. cd carries over to the next call. Processes that a command starts
        end with it, unless it runs in the background."""
        command = sound(command)
        impossible = shell.impossible(command, background=background)
        if impossible:
            return refused(f"Not run: {impossible}")
        choice = await shell.workspace.choice()
        argv = shell.argv(command)
        request = CommandRequest("terminal", command, choice, network, shell.place)
        no = await request.refusal(context, shell.danger)
        if no:
            return refused(f"Not run. {no}")
        try:
            launch = shell.launch(argv, choice, context, network=network)
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(shell.around(command, context, network=network))
                if background:
                    running = await shell.workspace.start(launch, "process")
                    name = shell.note(BackgroundProcess(command, running, choice, network))
                    shell.observe(stack.pop_all(), running)
                    return Outcome(f"Started in the background as {name}.", trust=Trust.AGENT)
                ended = await shell.workspace.run(launch, "terminal", timeout)
        except (OSError, ValueError, SandboxUnavailable, HoneError) as error:
            return refused(f"Not run: {error}".rstrip(".") + ".")
        place = shell.arrive(ended.report)
        trust = await asyncio.to_thread(shell.trust, ended.output, choice, network=network)
        trust = Trust.AGENT if _is_ours(ended, network=network) and not place else trust
        return told(ended, choice, timeout, walls(context, network=network), trust, place)

    return terminal


def _process(shell: Shell) -> Tool:
    @tool(effects={Effect.EXECUTE})
    async def process(id: str = "", action: Literal["list", "output", "stop"] = "list") -> Outcome:
        """List, read or stop background processes."""
        if action == "list":
            rows = [f"{id}: {job.command} ({job.state})" for id, job in shell.jobs.items()]
            rows += [f"[{note}]" for note in shell.workspace.inspect()]
            return Outcome("\n".join(rows) or "There are no background processes.", trust=Trust.AGENT)
        job = shell.jobs.get(id)
        if job is None:
            return refused(f"There is no process {id!r}. Processes: {', '.join(shell.jobs) or 'none'}.")
        if action == "stop":
            await job.running.stop()
        text = job.running.output.text()
        trust = await asyncio.to_thread(shell.trust, text, job.choice, network=job.network)
        facts = "; ".join((job.state, *shell.workspace.inspect()))
        return Outcome(f"{text}\n[{facts}]", trust=trust)

    return process


def _code(shell: Shell) -> Tool:
    @tool(effects={Effect.READ, Effect.WRITE, Effect.EXECUTE}, kind=ToolKind.CODE, network_flag="network")
    async def execute_code(
        context: ToolContext,
        code: str,
        timeout: Annotated[int, "seconds", msgspec.Meta(ge=1, le=3600)] = 60,
        network: bool = False,
    ) -> Outcome:
        """Run Python in a sandbox. Returns what it prints and the value of the last line."""
        code = sound(code)
        workspace = shell.workspace
        choice = await workspace.choice()
        request = CommandRequest("execute_code", code, choice, network, str(workspace.folder))
        no = await request.refusal(context, shell.danger)
        if no:
            return refused(f"Not run. {no}")
        try:
            argv = [workspace.python, "-I", "-u", "-c", _SNIPPET]
            launch = shell.launch(argv, choice, context, network=network)
            async with shell.around(code, context, network=network):
                ended = await workspace.run(launch, "execute_code", timeout, code.encode())
        except (OSError, ValueError, SandboxUnavailable, HoneError) as error:
            return refused(f"Not run: {error}".rstrip(".") + ".")
        trust = await asyncio.to_thread(shell.trust, ended.output, choice, network=network)
        trust = Trust.AGENT if _is_ours(ended, network=network) else trust
        return told(ended, choice, timeout, walls(context, network=network), trust)

    return execute_code


def _is_ours(ended: "Ended", *, network: bool) -> bool:
    """Tell whether the result is all our own words: the command printed nothing, and reached nothing."""
    return not (ended.output or ended.notes or network)


def told(
    ended: "Ended", choice: SandboxChoice, timeout: float, walls: str, trust: Trust, place: str = ""
) -> Outcome:
    """Describe the result. `walls` says which limits may have made it fail; `place` is the shell's new
    folder, if it changed."""
    failed = ended.timed_out or ended.code != 0
    stopped = f"stopped after {timeout:g} s, with everything it started"
    facts = [stopped if ended.timed_out else named(ended.code), f"{ended.seconds:.1f} s"]
    if place:
        facts.append(f"now in {place}")
    facts += ended.notes
    if failed and choice.mode is not NONE:
        facts += [SEALED] if any(sign in ended.output for sign in _SEALED_SIGNS) else []
        facts.append(walls)
    gap = "" if not ended.output or ended.output.endswith("\n") else "\n"
    return Outcome(f"{ended.output}{gap}[{'; '.join(facts)}]", failed, trust)


def only_looks(context: ToolContext) -> bool:
    return context.permissions.mode is Mode.PLAN


def walls(context: ToolContext, *, network: bool) -> str:
    own = "$TMPDIR (plan mode)" if only_looks(context) else "the working folder and $TMPDIR"
    reach = "" if network else ", no network"
    return f"in a sandbox: can write only to {own}, sees no other files of the user{reach}"


def named(code: int) -> str:
    """Return an exit code, with the signal that it stands for."""
    try:
        return f"exit code {code} ({signal.Signals(code - 128).name})" if code > 128 else f"exit code {code}"
    except ValueError:
        return f"exit code {code}"
