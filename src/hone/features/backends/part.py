"""The memory backend of one Hone: its tool, reminders, copies of what is known, and a report."""

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from hone.app import Hone
from hone.core.backend import Backend
from hone.core.part import Part, Remind
from hone.core.secrets import redact
from hone.core.tool import Tool
from hone.core.transcript import Source
from hone.features.backends.choice import NULL
from hone.features.backends.current import BackendOptions, CurrentBackend
from hone.features.backends.evaluate import Measured
from hone.features.backends.measure import measure
from hone.features.backends.mirror import Mirror
from hone.features.backends.outbox_worker import OutboxWorker
from hone.features.backends.reminding import Reminding
from hone.features.backends.table import table
from hone.features.backends.tool import backend_tool

Durable = Callable[[str], Awaitable[bool | None]]
"""Whether a backend keeps what a process stored that is killed right after; None: not tried."""


async def untried(_: str) -> bool | None:
    return None


class MemoryPart(Part):
    name = "backends"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        memory = hone.settings.memory
        options = BackendOptions(memory.backend, memory.url, memory.owner, memory.deadline)
        makers = {name: make for part in hone.parts("backends") for name, make in part.backends().items()}
        self.backing = CurrentBackend(hone.home, hone.clock, options, makers, hone.say, dict(os.environ))

    @cached_property
    def worker(self) -> OutboxWorker:
        return OutboxWorker(self.mirror, self._hone.home, self._hone.clock)

    async def used(self) -> Backend | None:
        """Return the backend in use; None where nothing is kept by key."""
        await self.backing.choose()
        return self.backing.used

    async def ready(self) -> None:
        await self.used()

    def tools(self, folder: Path, source: Source | None = None) -> Sequence[Tool]:
        """Return the tool; none without a backend, so that a first request stays small."""
        backend = self.backing.used
        if backend is None:
            return ()
        return (backend_tool(backend, self.backing.user_id, self._report, self._evaluate, source),)

    def remind(self) -> Remind | None:
        backend, wish = self.backing.used, self.backing.wish
        if backend is None:
            return None
        home, clock = self._hone.stores.outbox.home, self._hone.clock
        return Reminding(backend, self.backing.user_id, home, clock, wish.deadline, redact)

    def attend(self) -> None:
        self.worker.attend()

    def notify(self) -> None:
        self.worker.notify()

    async def finish(self) -> None:
        await self.worker.finish()

    async def close(self) -> None:
        if "worker" in vars(self):
            await self.worker.close()
        await self.backing.close()

    async def mirror(self) -> Mirror | None:
        """Return what keeps copies of journal and skills; None without a backend or a writable home."""
        backend = await self.used()
        if backend is None or (stores := self._hone.stores).closed:
            return None
        await stores.outbox.address(self.backing.address)
        return Mirror(stores.ledger, stores.outbox, backend, self.backing.user_id)

    async def info(self) -> list[str]:
        """What is used, why, where it is, and what waits to be copied."""
        choice = await self.backing.choose()
        lines = [f"backend: {choice.name} ({choice.why})"]
        if choice.name == NULL:
            return [
                *lines,
                "Nothing is kept by key. To change that, set backend under [memory] in hone.toml.",
            ]
        backend = self.backing.make(choice.name)
        found = await backend.available()
        lines += [
            f"answers: {'yes' if found else f'no. {found.why}'}",
            f"kept on: {self.backing.location(choice.name)}",
            f"user: {self.backing.user_id}",
        ]
        if backend.is_cloud:
            lines.append("What is stored leaves this machine, and what comes back counts as foreign.")
        post = await self._hone.stores.outbox.post()
        lines.append(f"copies of journal and skills: {post.waiting:,} wait, {post.refused:,} were refused")
        if post.waiting:
            lines.append("They are taken there beside the next conversation, or by hone worker.")
        return [*lines, *([f"last error: {post.error}"] if post.error else [])]

    async def measured(self, names: Sequence[str] = (), durable: Durable = untried) -> list[Measured]:
        """Each of these backends, or all of them, by using it."""
        found = []
        for name in names or self.backing.names:
            backend = self.backing.make(name)
            seen = await measure(backend, self._hone.clock)
            kept = await durable(name) if seen.available and name != NULL else None
            place, key = self.backing.location(name), self.backing.needs_key(name)
            found.append(replace(seen, durable=kept, location=place, needs_key=key))
        return found

    async def _report(self) -> str:
        return "\n".join(await self.info())

    async def _evaluate(self) -> str:
        """For the agent: what is on other machines stays alone, unless it is in use."""
        used = await self.backing.choose()
        near = [
            name for name in self.backing.names if name == used.name or not self.backing.make(name).is_cloud
        ]
        return table(await self.measured(near))
