"""Memories by key, as a home uses them: the tool, what a turn is reminded of, copies, and a word on it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from hone.core.backend import Backend
from hone.core.clock import Clock
from hone.core.ledger import Ledger
from hone.core.outbox import Outbox
from hone.core.tool import Tool
from hone.features.backends.choice import NULL
from hone.features.backends.current import CurrentBackend

if TYPE_CHECKING:
    from hone.features.backends.evaluate import Measured
    from hone.features.backends.mirror import Mirror
    from hone.features.backends.reminding import Reminding
    from hone.knowledge.tools import CitedMessage

Durable = Callable[[str], Awaitable[bool | None]]
"""Whether a backend keeps what a process stored that is killed right after; None: not tried."""


async def untried(_: str) -> bool | None:
    return None


class Kept(Protocol):
    """What copies are made of. `closed` says why nothing is kept, and so nothing copied."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def closed(self) -> str: ...


class Memories:
    """`kept` opens the home's stores; `clean` takes secrets out of what is recalled."""

    def __init__(
        self, backing: CurrentBackend, kept: Callable[[], Kept], clock: Clock, clean: Callable[[str], str]
    ) -> None:
        self.backing = backing
        self._kept = kept
        self._clock = clock
        self._clean = clean

    async def used(self) -> Backend | None:
        """None where nothing is kept by key."""
        await self.backing.choose()
        return self.backing.used

    def tools(self, source: "CitedMessage | None" = None) -> tuple[Tool, ...]:
        """None without a backend: a first request stays small. The choice was made before."""
        backend = self.backing.used
        if backend is None:
            return ()
        from hone.features.backends.tool import backend_tool

        return (backend_tool(backend, self.backing.user_id, self._told, self._tried, source),)

    def reminding(self) -> "Reminding | None":
        """For one conversation."""
        backend, wish = self.backing.used, self.backing.wish
        if backend is None:
            return None
        from hone.features.backends.reminding import Reminding

        home = self._kept().outbox.home
        return Reminding(backend, self.backing.user_id, home, self._clock, wish.deadline, self._clean)

    async def mirror(self) -> "Mirror | None":
        backend = await self.used()
        if backend is None or (kept := self._kept()).closed:
            return None
        from hone.features.backends.mirror import Mirror

        await kept.outbox.address(self.backing.address)
        return Mirror(kept.ledger, kept.outbox, backend, self.backing.user_id)

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
        post = await self._kept().outbox.post()
        lines.append(f"copies of journal and skills: {post.waiting:,} wait, {post.refused:,} were refused")
        if post.waiting:
            lines.append("They are taken there beside the next conversation, or by hone worker.")
        return [*lines, *([f"last error: {post.error}"] if post.error else [])]

    async def measured(self, names: Sequence[str] = (), durable: Durable = untried) -> "list[Measured]":
        """Each of these backends, or all of them, by using it."""
        from hone.features.backends.measure import measure

        found = []
        for name in names or self.backing.names:
            backend = self.backing.make(name)
            seen = await measure(backend, self._clock)
            kept = await durable(name) if seen.available and name != NULL else None
            place, key = self.backing.location(name), self.backing.needs_key(name)
            found.append(replace(seen, durable=kept, location=place, needs_key=key))
        return found

    async def _told(self) -> str:
        return "\n".join(await self.info())

    async def _tried(self) -> str:
        """For the agent: what is on other machines stays alone, unless it is in use."""
        from hone.features.backends.table import table

        used = await self.backing.choose()
        near = [
            name for name in self.backing.names if name == used.name or not self.backing.make(name).is_cloud
        ]
        return table(await self.measured(near))
