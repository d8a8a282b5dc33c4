"""A workspace for commands: a working folder, a scratch folder, a sandbox, and the started processes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hone.core import seldom
from hone.core.clock import Clock, SystemClock
from hone.core.value import replace
from hone.sandbox.caches import cache_variables, cleared, open_cache, prune_daily
from hone.sandbox.choice import Sandbox, SandboxChoice
from hone.sandbox.host_view import HostView
from hone.sandbox.identity import write_configuration
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import Ended, Running, run, start
from hone.sandbox.protection import Protection
from hone.sandbox.spec import Launch, SandboxSpec

if TYPE_CHECKING:
    from hone.sandbox.gateway import Gateway


class _Place(Struct, frozen=True):
    """What stays the same for all commands in a folder."""

    view: HostView
    spec: SandboxSpec
    cache: Path | None
    protection: Protection


class Workspace:
    """Set up at the first command. `close` ends what still runs and removes the scratch folder."""

    def __init__(self, folder: Path, sandbox: Sandbox, clock: Clock | None = None) -> None:
        self.folder = folder.resolve()
        self.sandbox = sandbox
        self.clock = clock or SystemClock()
        self.python = sandbox.python
        self._scratch: Path | None = None
        self._running: list[tuple[Running, Launch]] = []
        self._count = 0
        self._probing = asyncio.Lock()
        self._found: _Place | None = None
        self._notes: list[str] = []

    async def choice(self) -> SandboxChoice:
        async with self._probing:
            if self._found is None:
                await asyncio.to_thread(self._place)
            return await self.sandbox.choose(self._spec(self._place().cache))

    def scratch(self) -> Path:
        if self._scratch is None:
            identity = self._place().view.identity
            self._scratch = Path(seldom.tempfile.mkdtemp(prefix="hone-")).resolve()
            (self._scratch / "home").mkdir()
            (self._scratch / "home" / ".gitconfig").write_text(write_configuration(identity), "utf-8")
        return self._scratch

    def launch(
        self,
        argv: Sequence[str],
        choice: SandboxChoice,
        *,
        network: bool = False,
        read_only: bool = False,
        gateway: "Gateway | None" = None,
    ) -> Launch:
        """Raises SandboxUnavailable. What lies in the folder now is taken for the owner's, unless a command
        still runs in the background. With `read_only`, only the scratch folder can be written. With a
        gateway, the command can reach that and nothing else."""
        place, settled = self._place(), self._settle()
        seals = place.protection.begin(seals=choice.mode.seals, settled=settled)
        cache = place.cache if choice.mode.enters and not read_only else None
        spec = replace(self._spec(cache), guarded=seals.loose, network=network, read_only=read_only)
        spec = replace(spec, sealed=(*spec.sealed, *seals.firm), gateway=gateway is not None)
        launch = choice.mode.wrap(gateway.wrap(self.python, argv) if gateway else argv, spec)
        env = (*place.view.env, *cache_variables(str(cache or f"{launch.tmp}/cache")))
        files = (gateway.channel,) if gateway else ()
        return replace(launch, env=env, network=network or gateway is not None, files=files)

    async def run(self, launch: Launch, name: str, timeout: float, stdin: bytes | None = None) -> Ended:
        output = self._output(launch, name)
        try:
            ended = await run(launch, output=output, clock=self.clock, timeout=timeout, stdin=stdin)
        finally:
            self._check(network=launch.network)
        return replace(ended, notes=self.take_notes())

    async def start(self, launch: Launch, name: str) -> Running:
        running = await start(launch, output=self._output(launch, name), clock=self.clock)
        self._running.append((running, launch))
        return running

    def adopt(self, running: Running, launch: Launch) -> None:
        """Adopt a process that was started here: it ends with the workspace."""
        self._running.append((running, launch))

    def inspect(self) -> tuple[str, ...]:
        """Check what background processes did to sensitive places; report what was done about it."""
        self._settle()
        return self.take_notes()

    def take_notes(self) -> tuple[str, ...]:
        """Return the notes that nobody has seen yet."""
        notes, self._notes = tuple(self._notes), []
        return notes

    async def close(self) -> None:
        """Close the workspace. May be called again, and the workspace may be used again afterwards."""
        await asyncio.gather(*(each.stop() for each, _ in self._running))
        self._settle()
        scratch, self._scratch = self._scratch, None
        if scratch:
            await asyncio.to_thread(cleared, scratch)
        if self._found and self.sandbox.home:
            await asyncio.to_thread(prune_daily, self.sandbox.home, self.clock.now().timestamp())

    def _place(self) -> _Place:
        """Return the place, computed once: this searches the folder and the user's toolchains."""
        if self._found is None:
            home = self.sandbox.home
            view = self.sandbox.survey(self.folder)
            spec = self.sandbox.spec(self.folder, around=view)
            cache = open_cache(home, self.folder) if home else None
            protection = Protection((self.folder, *spec.writable), spec.hidden, home, self.clock)
            protection.look()
            self.sandbox.protections.add(protection)
            self._found = _Place(view, spec, cache, protection)
        return self._found

    def _spec(self, cache: Path | None) -> SandboxSpec:
        spec = self._place().spec
        return replace(spec, scratch=self.scratch(), writable=(*spec.writable, *((cache,) if cache else ())))

    def _settle(self) -> bool:
        """Check what ran in the background. Return True if nothing runs any more."""
        busy = any(each.code is None for each, _ in self._running)
        if self._running:
            self._check(network=False)
            self._running = self._running if busy else []
        return not busy

    def _check(self, *, network: bool) -> None:
        online = network or any(launch.network for _, launch in self._running)
        self._notes += self._place().protection.end(network=online)

    def _output(self, launch: Launch, name: str) -> Output:
        self._count += 1
        file = f"{name}-{self._count}.txt"
        return Output(Spill(self.scratch() / file, f"{launch.tmp}/{file}"))
