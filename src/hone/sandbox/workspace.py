"""A workspace for commands: a working folder, a scratch folder, a sandbox, and the started processes."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from hone.core.clock import Clock, SystemClock
from hone.core.value import replace
from hone.sandbox.choice import Sandbox, SandboxChoice
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import Ended, Running, run, start
from hone.sandbox.spec import Launch


class Workspace:
    """Made at the first command. `close` ends what still runs and removes the scratch folder."""

    def __init__(self, folder: Path, sandbox: Sandbox, clock: Clock | None = None) -> None:
        self.folder = folder.resolve()
        self.sandbox = sandbox
        self.clock = clock or SystemClock()
        self.python = sandbox.python
        self._scratch: Path | None = None
        self._running: list[Running] = []
        self._count = 0
        self._probing = asyncio.Lock()

    async def choice(self) -> SandboxChoice:
        async with self._probing:
            return await self.sandbox.choose(self.sandbox.spec(self.folder, self.scratch()))

    def scratch(self) -> Path:
        if self._scratch is None:
            self._scratch = Path(mkdtemp(prefix="hone-")).resolve()
            (self._scratch / "home").mkdir()
        return self._scratch

    def launch(
        self, argv: Sequence[str], choice: SandboxChoice, *, network: bool = False, read_only: bool = False
    ) -> Launch:
        """Prepare a command. If it is `read_only`, it writes nothing but scratch files. Raises
        SandboxUnavailable."""
        spec = self.sandbox.spec(self.folder, self.scratch())
        return choice.mode.wrap(argv, replace(spec, network=network, read_only=read_only))

    async def run(self, launch: Launch, name: str, timeout: float, stdin: bytes | None = None) -> Ended:
        output = self._output(launch, name)
        return await run(launch, output=output, clock=self.clock, timeout=timeout, stdin=stdin)

    async def start(self, launch: Launch, name: str) -> Running:
        running = await start(launch, output=self._output(launch, name), clock=self.clock)
        self._running = [*(each for each in self._running if each.code is None), running]
        return running

    async def close(self) -> None:
        """May be called again, and the bench used again after it."""
        running, self._running = self._running, []
        await asyncio.gather(*(each.stop() for each in running))
        scratch, self._scratch = self._scratch, None
        if scratch:
            await asyncio.to_thread(cleared, scratch)

    def _output(self, launch: Launch, name: str) -> Output:
        self._count += 1
        file = f"{name}-{self._count}.txt"
        return Output(Spill(self.scratch() / file, f"{launch.tmp}/{file}"))


def cleared(folder: Path) -> None:
    """A command may have left folders that nobody may enter, and links that must not be followed."""
    for root, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    rmtree(folder, ignore_errors=True)
