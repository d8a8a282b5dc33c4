"""Describe the memory backend in use, and measure backends by using them."""

from collections.abc import Awaitable, Callable, Sequence

from hone.app import Hone
from hone.core.value import replace
from hone.features.backends.choice import NULL
from hone.features.backends.evaluate import Measured
from hone.features.backends.measure import measure
from hone.features.backends.part import MemoryPart
from hone.features.backends.report import table

Durable = Callable[[str], Awaitable[bool | None]]
"""Whether a backend keeps what a process stored that is killed right after; None: not tried."""


async def untried(_: str) -> bool | None:
    return None


async def describe(hone: Hone) -> list[str]:
    """Say which backend is used and why, where it is, and what waits to be copied."""
    backing = hone.part(MemoryPart).backing
    choice = await backing.choose()
    lines = [f"backend: {choice.name} ({choice.why})"]
    if choice.name == NULL:
        return [*lines, "Nothing is kept by key. To change that, set backend under [memory] in hone.toml."]
    backend = backing.make(choice.name)
    found = await backend.available()
    lines += [
        f"answers: {'yes' if found else f'no. {found.why}'}",
        f"kept on: {backing.location(choice.name)}",
        f"user: {backing.user_id}",
    ]
    if backend.is_cloud:
        lines.append("What is stored leaves this machine, and what comes back counts as foreign.")
    post = await hone.stores.outbox.post()
    lines.append(f"copies of journal and skills: {post.waiting:,} wait, {post.refused:,} were refused")
    if post.waiting:
        lines.append("They are taken there beside the next conversation, or by hone worker.")
    return [*lines, *([f"last error: {post.error}"] if post.error else [])]


async def evaluate(hone: Hone, names: Sequence[str] = (), durable: Durable = untried) -> list[Measured]:
    """Measure these backends, or all of them, by using each."""
    backing, found = hone.part(MemoryPart).backing, []
    for name in names or backing.names:
        seen = await measure(backing.make(name), hone.clock)
        kept = await durable(name) if seen.available and name != NULL else None
        place, key = backing.location(name), backing.needs_key(name)
        found.append(replace(seen, durable=kept, location=place, needs_key=key))
    return found


async def compare(hone: Hone) -> str:
    """Measure for the agent: a backend on another machine is left alone, unless it is in use."""
    backing = hone.part(MemoryPart).backing
    used = await backing.choose()
    near = [name for name in backing.names if name == used.name or not backing.make(name).is_cloud]
    return table(await evaluate(hone, near))
