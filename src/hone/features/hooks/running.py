"""Run a hook: in the sandbox that commands get, with a time limit, and with JSON on its standard input."""

import asyncio
import os
import shlex
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from hone.core.clock import Clock
from hone.features.hooks.values import Hook, HookRun
from hone.sandbox.choice import NONE, Sandbox, SandboxChoice
from hone.sandbox.spec import SandboxUnavailable
from hone.sandbox.workspace import Workspace

_SCRIPT = 'exec "$@" 2>&3'
"""Standard output and standard error have different readers, so each gets a pipe."""
_OUTSIDE = SandboxChoice(NONE, frozenset())


class HookRunner:
    """Runs the hooks of one folder, one at a time: the folder's content before a hook starts counts as the
    owner's, and another running hook could have planted it. Close it to remove its scratch folder."""

    def __init__(self, folder: Path, sandbox: Sandbox, clock: Clock) -> None:
        self.folder = folder.resolve()
        self._workspace = Workspace(folder, sandbox, clock)
        self._alone = asyncio.Lock()

    async def run(
        self,
        hook: Hook,
        told: bytes,
        around: AbstractAsyncContextManager[None] | None = None,
        *,
        read_only: bool = False,
    ) -> HookRun:
        """Run a hook. Every outcome is a value: a hook that cannot be run has failed. `around` observes
        it."""
        async with self._alone, around or nullcontext():
            return await self._run(hook, told, read_only=read_only)

    async def _run(self, hook: Hook, told: bytes, *, read_only: bool) -> HookRun:
        settings, workspace = hook.settings, self._workspace
        choice = await workspace.choice() if settings.sandbox else _OUTSIDE
        if settings.sandbox and (missing := choice.missing(network=False)):
            gaps = ", ".join(sorted(each.value for each in missing))
            return HookRun(None, trouble=f"commands cannot be confined here ({gaps}); see hone doctor")
        words = shlex.split(settings.command)
        argv = ["/bin/sh", "-c", _SCRIPT, "sh", *(() if settings.sandbox else _own()), *words]
        try:
            launch = workspace.launch(argv, choice, network=not settings.sandbox, read_only=read_only)
            ended = await workspace.run(launch, "hook", settings.timeout, told)
        except (OSError, ValueError, SandboxUnavailable) as error:
            return HookRun(None, trouble=f"it cannot be started: {str(error).rstrip('.')}")
        err = ended.report.decode("utf-8", "replace")
        if ended.timed_out:
            return HookRun(None, ended.output, err, f"it took more than {settings.timeout:g} seconds")
        return HookRun(ended.code, ended.output, err)

    async def close(self) -> None:
        await self._workspace.close()


def _own() -> tuple[str, ...]:
    """Return a prefix for hooks outside the sandbox: they have the owner's home, but nothing of Hone's
    environment."""
    names = ("HOME", "USER", "LOGNAME")
    return ("/usr/bin/env", *(f"{name}={os.environ[name]}" for name in names if name in os.environ))
