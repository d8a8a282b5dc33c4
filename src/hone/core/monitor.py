"""What monitors hear: that a step begins, and how it ended. They never hear what was said, only names.

Metrics, logs and traces are monitors. No value here holds text of a conversation, a path or a key.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Protocol

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.jobs import JobId
from hone.core.model import Usage
from hone.core.turn import Origin, Stop

TRACE_HEADERS = ("traceparent", "tracestate")

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The request that asked for a turn. Tasks of a request inherit it."""


_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,79}", re.ASCII)


def plain_model(name: str) -> str:
    """Return a model's name for monitors. Clients may ask for any model: a name of an unusual form becomes
    "other"."""
    return name if _MODEL.fullmatch(name) else "other"


class RequestStep(Struct, frozen=True):
    """A request arrives. `trace` holds its traceparent and tracestate headers, if they are well-formed."""

    method: str
    trace: Mapping[str, str]


class RequestEnd(Struct, frozen=True):
    """`route` is the template of the path, empty if there is none. `begun` is the time in seconds until the
    answer began; a stream may last for hours. `error` is the type of an uncaught exception."""

    route: str
    status: int
    begun: float
    user: str = ""
    error: str = ""


class AgentStep(Struct, frozen=True):
    """An agent begins a turn: the user's, a review, or another one."""

    origin: Origin
    model: str
    session: SessionId


class AgentEnd(Struct, frozen=True):
    stop: Stop
    usage: tuple[Usage, ...] = ()


class ModelStep(Struct, frozen=True):
    """One model call, with its retries."""

    model: str


class ModelEnd(Struct, frozen=True):
    """`error` is the type of the error, or "cancelled"; empty if there was a reply."""

    finish: str = ""
    usage: Usage = Usage()
    retries: int = 0
    error: str = ""


class ToolStep(Struct, frozen=True):
    """`name` is empty for a tool that does not exist, since the model made up that name."""

    name: str


class ToolEnd(Struct, frozen=True):
    failed: bool


class ReviewStep(Struct, frozen=True):
    job: JobId


class ReviewEnd(Struct, frozen=True):
    """`result` is done, failed, waiting (it stays in the queue), dropped (another process ended it) or
    interrupted."""

    result: str


class DatabaseLoad(Struct, frozen=True):
    """How much a process uses its database: connections, how many of them are idle, and database errors so
    far."""

    connections: int = 0
    idle: int = 0
    errors: int = 0


Step = RequestStep | AgentStep | ModelStep | ToolStep | ReviewStep
StepEnd = RequestEnd | AgentEnd | ModelEnd | ToolEnd | ReviewEnd
End = Callable[[StepEnd], None]
"""Hears how a step ended. It is called once, in the same context as the beginning."""


class Monitor(Protocol):
    def begin(self, step: Step) -> End | None:
        """Hear that a step begins. Return what hears its end, or nothing to ignore it."""
        ...


def ignore(_: StepEnd) -> None:
    """Ignore the end of a step."""


class Monitors:
    """The monitors of one process. One that raises is ignored, and disturbs nobody."""

    def __init__(self, each: Iterable[Monitor] = ()) -> None:
        self._each = list(each)

    def __bool__(self) -> bool:
        return bool(self._each)

    def add(self, monitor: Monitor) -> None:
        self._each.append(monitor)

    def begin(self, step: Step) -> End:
        if not self._each:
            return ignore
        ends: list[End] = []
        for monitor in self._each:
            with suppress(Exception):
                if end := monitor.begin(step):
                    ends.append(end)

        def finish(result: StepEnd) -> None:
            for end in reversed(ends):
                with suppress(Exception):
                    end(result)

        return finish


UNMONITORED = Monitors()
"""For code that runs without monitors. Nothing is ever added to it."""
