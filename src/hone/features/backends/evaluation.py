"""Describe the memory backend in use, and measure backends with real, timed round trips."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hone.app import Hone
from hone.core.backend import Backend
from hone.core.clock import Clock
from hone.core.errors import BackendError
from hone.core.value import replace
from hone.features.backends.current import NULL
from hone.features.backends.evaluate import Measured, table
from hone.features.backends.part import MemoryPart

T = TypeVar("T")

USER = "hone-evaluation"
"""The user to measure with: nobody real, so that nobody's data is touched."""
FIRST = 3
"""The answers among which the right one counts."""
DEADLINE = 20.0
"""Seconds for one operation."""
QUESTIONS = (
    ("editor", "She writes all code in Neovim with a light theme.", "which editor is used for code?"),
    (
        "deploy/day",
        "Releases go out on Tuesday afternoon, never on Friday.",
        "on what day do releases go out?",
    ),
    (
        "deploy/host",
        "The staging host is called heron and lives in the second rack.",
        "name of the staging host",
    ),
    ("allergy", "Allergic to peanuts; sesame is fine.", "is there an allergy to peanuts?"),
    ("billing/currency", "Invoices are written in Swiss francs.", "what currency are invoices in?"),
    (
        "style/commits",
        "Commit messages start with a capital and give the reason.",
        "how do commit messages start?",
    ),
    ("database", "The ledger database runs on port 5544 with daily backups.", "port of the ledger database"),
    ("family", "Her sister Ines studies marine biology in Lisbon.", "what does the sister study?"),
    (
        "report",
        "The quarterly report needs a chart of churn by region.",
        "which chart belongs into the report?",
    ),
    ("meeting", "The planning meeting moved to Monday at nine.", "when is the planning meeting?"),
    ("office", "La oficina nueva está en la calle de Alcalá.", "en qué calle está la oficina"),
    ("train", "東京行きの列車は三番線から出る。", "東京行きの列車は何番線"),
)
"""Key, value, question."""


@dataclass(slots=True)
class Meter:
    """`calls` returns how many requests the backend has made so far."""

    clock: Clock
    calls: Callable[[], int]
    times: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, list[int]] = field(default_factory=dict)

    async def timed(self, operation: str, work: Awaitable[T]) -> T:
        """Time an operation. Raises BackendError, also for one that does not end."""
        begun, before = self.clock.monotonic(), self.calls()
        try:
            async with self.clock.timeout(DEADLINE):
                result = await work
        except TimeoutError:
            raise BackendError(f"{operation} took more than {DEADLINE:.0f} seconds.") from None
        self.times.setdefault(operation, []).append(1000 * (self.clock.monotonic() - begun))
        self.counts.setdefault(operation, []).append(self.calls() - before)
        return result


async def measure(backend: Backend, clock: Clock) -> Measured:
    """Measure a backend. Everything that it stored is deleted again."""
    measured = Measured(backend.name, backend.is_cloud)
    meter = Meter(clock, lambda: int(getattr(backend, "calls", 0)))
    if not (found := await backend.available()):
        return replace(measured, why=found.why)
    worked: set[str] = set()
    right = 0
    try:
        for key, value, _ in QUESTIONS:
            await meter.timed("store", backend.store(USER, key, value))
        kept = [await meter.timed("retrieve", backend.retrieve(USER, key)) for key, *_ in QUESTIONS]
        if [memory.value for memory in kept if memory] == [value for _, value, _ in QUESTIONS]:
            worked |= {"store", "retrieve"}
        for key, _, question in QUESTIONS:
            memories = await meter.timed("query", backend.query(USER, question))
            right += key in [memory.key for memory in memories[:FIRST]]
        worked |= {"query"} if right else set()
        for key, *_ in QUESTIONS:
            await meter.timed("delete", backend.delete(USER, key))
    except BackendError as error:
        # It answered first and then stopped: only complete round trips count.
        measured = replace(measured, error=str(error))
    return replace(
        measured,
        worked=frozenset(worked),
        times={name: meter.times[name] for name in ("store", "retrieve", "query") if name in meter.times},
        recall=right / len(QUESTIONS),
        calls={name: sum(made) / len(made) for name, made in meter.counts.items()},
    )


Durable = Callable[[str], Awaitable[bool | None]]
"""Tells whether a backend keeps what a process stored that is killed right after; None: unknown."""


async def describe(hone: Hone) -> list[str]:
    """Describe which backend is used and why, its location, and what waits to be copied."""
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
        lines.append("What is stored leaves this machine. What others change there counts as foreign.")
    post = await hone.stores.outbox.post()
    lines.append(f"copies of journal and skills: {post.waiting:,} wait, {post.refused:,} were refused")
    if post.waiting:
        lines.append("They are taken there beside the next conversation, or by hone worker.")
    return [*lines, *([f"last error: {post.error}"] if post.error else [])]


async def evaluate(hone: Hone, names: Sequence[str] = (), durable: Durable | None = None) -> list[Measured]:
    """Measure these backends, or all of them, by using each."""
    backing, found = hone.part(MemoryPart).backing, []
    for name in names or backing.names:
        seen = await measure(backing.make(name), hone.clock)
        kept = await durable(name) if durable and seen.available and name != NULL else None
        place, key = backing.location(name), backing.needs_key(name)
        found.append(replace(seen, durable=kept, location=place, needs_key=key))
    return found


async def compare(hone: Hone) -> str:
    """Measure for the agent: skip a backend on another machine, unless it is in use."""
    backing = hone.part(MemoryPart).backing
    used = await backing.choose()
    near = [name for name in backing.names if name == used.name or not backing.make(name).is_cloud]
    return table(await evaluate(hone, near))
