"""Start a server on this machine, in the sandbox, and talk to it over its standard input and output."""

import os
from collections.abc import Mapping
from pathlib import Path

from hone.core import seldom
from hone.core.clock import Clock
from hone.core.errors import HoneError
from hone.core.regex import regex
from hone.core.value import replace
from hone.features.mcp.client.proxy import Deny, HostProxy, describe_proxy
from hone.features.mcp.client.values import McpServer
from hone.rpc.channels import CHUNK, MOST, LineBuffer
from hone.rpc.messages import ConnectionLost
from hone.sandbox.caches import cleared
from hone.sandbox.choice import NONE, Sandbox, SandboxChoice
from hone.sandbox.gateway import Gateway
from hone.sandbox.piped import PipedProcess
from hone.sandbox.spec import Launch, SandboxAccess, SandboxUnavailable, real_path
from hone.sandbox.workspace import Workspace

_SCRIPT = 'exec "$@"'
"""Finds the program on the path of commands."""
_OUTSIDE = SandboxChoice(NONE, frozenset())
_NAME = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class NotStarted(HoneError):
    """A server could not be started or reached."""


class ProcessChannel:
    """Lines over the input and output of a process, which ends with it."""

    def __init__(
        self,
        process: PipedProcess,
        workspace: Workspace,
        own: Path | None,
        proxy: HostProxy | None = None,
    ) -> None:
        self._process = process
        self._workspace = workspace
        self._own = own
        self._proxy = proxy
        self._buffer = LineBuffer(MOST)
        self._lines: list[bytes] = []

    @property
    def errors(self) -> str:
        """Return the server's error output, and the hosts it requested in vain."""
        refused = self._proxy.refused.values() if self._proxy else ()
        return "\n".join(filter(None, (self._process.errors.rstrip(), *refused)))

    async def send(self, message: bytes) -> None:
        try:
            await self._process.write(message + b"\n")
        except OSError as error:
            raise ConnectionLost("The server has ended.") from error

    async def receive(self) -> bytes:
        while not self._lines:
            arrived = await self._process.reader.read(CHUNK)
            if not arrived:
                raise ConnectionLost("The server has ended.")
            self._lines = self._buffer.feed(arrived)[::-1]
        return self._lines.pop()

    async def close(self) -> None:
        """Close the channel, and return when every process of the server is gone."""
        await self._process.stop()
        if self._proxy:
            await self._proxy.close()
        await self._workspace.close()
        if self._own:
            cleared(self._own)


async def start(
    server: McpServer, home: Path, values: Mapping[str, str], clock: Clock, deny: Deny
) -> ProcessChannel:
    """Start a server with these variables. Raises NotStarted."""
    settings = server.settings
    own = None if "." in settings.folders else _make_folder()
    workspace = Workspace(own or server.folder, _sandbox(server, home, clock), clock)
    try:
        if not settings.sandbox:
            launch = workspace.launch(_words(server, *_own()), _OUTSIDE, network=True)
            process = await _run(workspace, launch, values, clock)
            return ProcessChannel(process, workspace, own)
        choice = await workspace.choice()
        if missing := choice.missing(network=False):
            gaps = ", ".join(sorted(each.value for each in missing))
            raise NotStarted(f"Programs cannot be confined here ({gaps}); see hone doctor.")
        if settings.hosts:
            process, proxy = await _run_behind_proxy(server, workspace, choice, values, clock, deny)
            return ProcessChannel(process, workspace, own, proxy)
        process = await _run(workspace, workspace.launch(_words(server), choice), values, clock)
        return ProcessChannel(process, workspace, own)
    except (OSError, ValueError, SandboxUnavailable) as error:
        await _abandon(workspace, own)
        raise NotStarted(f"It cannot be started: {str(error).rstrip('.')}.") from error
    except BaseException:
        await _abandon(workspace, own)
        raise


def _words(server: McpServer, *before: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", _SCRIPT, "sh", *before, server.settings.command, *server.settings.args)


async def _run(workspace: Workspace, launch: Launch, values: Mapping[str, str], clock: Clock) -> PipedProcess:
    launch = replace(launch, env=(*launch.env, *values.items()))
    process = await PipedProcess.start(launch, clock)
    workspace.adopt(process, launch)
    return process


async def _run_behind_proxy(
    server: McpServer,
    workspace: Workspace,
    choice: SandboxChoice,
    values: Mapping[str, str],
    clock: Clock,
    deny: Deny,
) -> tuple[PipedProcess, HostProxy]:
    """Start a server that reaches only the hosts it declares. Raises OSError, SandboxUnavailable."""
    hosts, gateway = server.settings.hosts, Gateway()
    try:
        launch = workspace.launch(_words(server), choice, gateway=gateway)
        process = await _run(workspace, launch, {**describe_proxy(hosts), **values}, clock)
        try:
            listener = await gateway.accept()
        except ConnectionError as error:
            await process.stop()
            raise OSError(process.errors.strip() or str(error)) from error
    finally:
        gateway.close()
    proxy = HostProxy(hosts, deny, clock)
    await proxy.serve(listener)
    return process, proxy


async def _abandon(workspace: Workspace, own: Path | None) -> None:
    await workspace.close()
    if own:
        cleared(own)


def _make_folder() -> Path:
    """Make a working folder for a server that has none of the owner's."""
    return Path(seldom.tempfile.mkdtemp(prefix="hone-mcp-")).resolve()


def _sandbox(server: McpServer, home: Path, clock: Clock) -> Sandbox:
    """Return the sandbox. A server sees the folders it declares and the owner's programs; nothing of Hone's
    home."""
    named = tuple(real_path(each) for each in server.settings.folders if each != ".")
    access = SandboxAccess(write=tuple(path for path in named if path.is_dir()))
    return Sandbox(home=home, access=lambda _: access, clock=clock)


def _own() -> tuple[str, ...]:
    """Return a prefix for programs outside the sandbox: they have the owner's home, but nothing of Hone's
    environment."""
    names = ("HOME", "USER", "LOGNAME")
    return ("/usr/bin/env", *(f"{name}={os.environ[name]}" for name in names if name in os.environ))


def fill(texts: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return texts with each ${NAME} replaced. Raises NotStarted for a name without a value."""
    found: dict[str, str] = {}
    for name, text in texts.items():
        for variable, default in _NAME.findall(text):
            if variable not in known and not default:
                raise NotStarted(
                    f"It needs {variable}, which is neither set nor stored. "
                    f"Store it: hone keys set {variable}"
                )
        found[name] = _NAME.sub(lambda match: known.get(match[1]) or match[2] or "", text)
    return found


def list_names(texts: Mapping[str, str]) -> list[str]:
    """Return the names that `fill` will look for."""
    return list(dict.fromkeys(name for text in texts.values() for name, _ in _NAME.findall(text)))
