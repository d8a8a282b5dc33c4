"""Tools that work through the editor. It acts outside the sandbox, so each use needs permission except in
full mode, and its results are foreign."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct

from hone.core.errors import HoneError, Refused
from hone.core.messages import sound
from hone.core.permissions import Action, Request
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolKind, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.work import Work
from hone.features.acp.editor import request_value
from hone.files.opening import find_path
from hone.tools.define import tool

DOUBT = "The editor does it, outside the sandbox."
LARGEST = 64 * 2**20
OUTPUT = 200_000
"""The most bytes of a command's output that the editor keeps."""
Positive = Annotated[int, msgspec.Meta(ge=1)]
FAULTS = (HoneError, OSError, ValueError)


class FileContent(Struct, frozen=True):
    content: str


class TerminalCreated(Struct, frozen=True, rename="camel"):
    terminal_id: str


class TerminalExit(Struct, frozen=True, rename="camel"):
    exit_code: int | None = None
    signal: str | None = None


class TerminalOutput(Struct, frozen=True):
    output: str
    truncated: bool = False


def file_tools(folder: Path, work: Work) -> tuple[Tool, Tool]:
    """Return the file tools. Relative paths start at `folder`."""

    @tool(effects={Effect.READ}, kind=ToolKind.FILE)
    async def editor_read_file(
        context: ToolContext,
        path: str,
        offset: Annotated[Positive, "first line"] = 1,
        limit: Positive = 2_000,
    ) -> Outcome:
        """Read a text file as the user's editor has it, unsaved changes included."""
        try:
            real = await _permit(context, "editor_read_file", Action.READ, folder, path)
            wanted = {"path": str(real), "line": offset, "limit": limit}
            found: FileContent = await request_value("fs/read_text_file", wanted, FileContent)
        except FAULTS as error:
            return refused(f"Not read. {error}")
        return Outcome(found.content)

    @tool(effects={Effect.WRITE}, kind=ToolKind.FILE)
    async def editor_write_file(context: ToolContext, path: str, content: str) -> Outcome:
        """Write a text file through the user's editor, so that it shows the change at once."""
        try:
            real = await _permit(context, "editor_write_file", Action.WRITE, folder, path, content)
            with find_path(folder, path) as place:
                before = place.read(LARGEST) if place.exists else None
            await work.before_write(real, before, context)
            await request_value("fs/write_text_file", {"path": str(real), "content": content}, object)
            await work.after_write(real, content.encode(), context)
        except FAULTS as error:
            return refused(f"Not written. {error}")
        return Outcome(f"The editor wrote {path} ({len(content):,} characters).", trust=Trust.AGENT)

    return editor_read_file, editor_write_file


async def _permit(
    context: ToolContext, name: str, action: Action, folder: Path, path: str, detail: str = ""
) -> Path:
    """Return the real path. Raises Refused with the reason."""
    with find_path(folder, path) as place:
        real = place.path
    if sound(str(real)) != str(real):
        raise Refused("The name of this file is no text, so an editor cannot be asked for it.")
    shown = f"{real}\n{detail}" if detail else str(real)
    no = await context.refusal(Request(name, action, str(real), shown, doubts=(DOUBT,)))
    if no:
        raise Refused(no)
    return real


def terminal_tool(folder: Path, work: Work) -> Tool:
    @tool(effects={Effect.EXECUTE, Effect.NETWORK}, kind=ToolKind.CODE)
    async def editor_terminal(
        context: ToolContext,
        command: Annotated[str, "one program, without a shell"],
        arguments: tuple[str, ...] = (),
    ) -> Outcome:
        """Run a program in the user's editor, outside the sandbox. Use it only where the terminal tool cannot
        do the work."""
        text = " ".join((command, *arguments))
        no = await context.refusal(Request("editor_terminal", Action.RUN, text, text, doubts=(DOUBT,)))
        if no:
            return refused(f"Not run. {no}")
        try:
            async with work.around_command(folder, text, context, network=True):
                return await _run(folder, command, arguments)
        except HoneError as error:
            return refused(f"Not run. {error}")

    return editor_terminal


async def _run(folder: Path, command: str, arguments: tuple[str, ...]) -> Outcome:
    """Run a command and return its output. Cancelling the call ends the command, too."""
    wanted = {
        "command": command,
        "args": list(arguments),
        "cwd": str(folder),
        "outputByteLimit": OUTPUT,
    }
    made: TerminalCreated = await request_value("terminal/create", wanted, TerminalCreated)
    named = {"terminalId": made.terminal_id}
    try:
        ended: TerminalExit = await request_value("terminal/wait_for_exit", named, TerminalExit)
        found: TerminalOutput = await request_value("terminal/output", named, TerminalOutput)
    except asyncio.CancelledError:
        with suppress(HoneError):
            await request_value("terminal/kill", named, object)
        raise
    finally:
        with suppress(HoneError):
            await request_value("terminal/release", named, object)
    cut = "[The beginning was cut off.]\n" if found.truncated else ""
    how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
    return Outcome(f"{cut}{found.output}\n({how})", failed=bool(ended.signal or ended.exit_code))
