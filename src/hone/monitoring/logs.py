"""Write one line for each request, turn, review and crash: what happened, never what was said.

No line has a message, a title, a path, a query, a key or the text of an error. A crash is described by the
types of its exceptions and the places in the code.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import msgspec

from hone.core.clock import Clock
from hone.core.model import total
from hone.core.monitor import (
    AgentEnd,
    AgentStep,
    End,
    RequestEnd,
    RequestStep,
    ReviewEnd,
    ReviewStep,
    Step,
    StepEnd,
    request_id,
)
from hone.core.turn import Stop

PROBES = ("/health", "/ready")
"""Health checks arrive every few seconds, and are logged only if they fail."""
FRAMES = 30
"""How many places of a crash to log, the innermost ones."""
_PLAIN = re.compile(r"[!#-<>-~]+", re.ASCII)
Form = Literal["off", "text", "json"]
Write = Callable[[str], object]


def write_to_stderr(line: str) -> None:
    sys.stderr.write(line)
    sys.stderr.flush()


class Log:
    """A monitor that writes lines. With the form `off` it only writes crashes, as text."""

    def __init__(
        self, clock: Clock, form: Form = "off", *, users: bool = False, write: Write = write_to_stderr
    ) -> None:
        self._clock = clock
        self._form = form
        self._users = users
        self._write = write

    def begin(self, step: Step) -> End | None:
        took = partial(self._measure, self._clock.monotonic())
        if self._form == "off":
            return None
        match step:
            case RequestStep():
                return partial(self._end_request, step, took)
            case AgentStep():
                return partial(self._end_turn, step, took)
            case ReviewStep():
                return partial(self._end_review, step, took)
        return None

    def crash(self, error: BaseException, where: str = "") -> None:
        """Log an uncaught exception, without its text."""
        self._tell(
            "error", "crash", {"where": where, "error": _names(error), "at": "; ".join(_places(error))}
        )

    def note(self, record: logging.LogRecord) -> None:
        """Log that a library has logged something, without its text, which may quote anything."""
        at = f"{record.module}:{record.lineno}"
        if record.exc_info and record.exc_info[1]:
            self.crash(record.exc_info[1], record.name)
        else:
            self._tell(record.levelname.lower(), "library", {"where": record.name, "at": at})

    def _measure(self, began: float) -> float:
        return round((self._clock.monotonic() - began) * 1_000, 1)

    def _end_request(self, step: RequestStep, took: Callable[[], float], end: StepEnd) -> None:
        assert isinstance(end, RequestEnd)
        if end.route in PROBES and end.status < 400:
            return
        user = {"user": end.user} if self._users and end.user else {}
        told = {
            "method": step.method,
            "route": end.route or "none",
            "status": end.status,
            "ms": took(),
            **user,
        }
        level = "info" if end.status < 500 else "warning" if end.route in PROBES else "error"
        self._tell(level, "request", told)

    def _end_turn(self, step: AgentStep, took: Callable[[], float], end: StepEnd) -> None:
        assert isinstance(end, AgentEnd)
        used = total(end.usage)
        told = {
            "session": step.session,
            "origin": step.origin.value,
            "model": step.model,
            "stop": end.stop.value,
            "calls": len(end.usage),
            "input": used.input,
            "cached": used.cached,
            "output": used.output,
            "cost": used.cost,
            "ms": took(),
        }
        self._tell("warning" if end.stop is Stop.FAILED else "info", "turn", told)

    def _end_review(self, step: ReviewStep, took: Callable[[], float], end: StepEnd) -> None:
        assert isinstance(end, ReviewEnd)
        level = "warning" if end.result == "failed" else "info"
        self._tell(level, "review", {"job": step.job, "result": end.result, "ms": took()})

    def _tell(self, level: str, event: str, told: Mapping[str, Any]) -> None:
        now = self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        request = {"request": found} if (found := request_id.get()) else {}
        fields = {"time": now, "level": level, "event": event, **request, **told}
        if self._form == "json":
            self._write(msgspec.json.encode(fields).decode() + "\n")
            return
        rest = (f"{name}={_word(value)}" for name, value in (*request.items(), *told.items()))
        self._write(" ".join((now, level, event, *rest)) + "\n")


@contextmanager
def caught(log: Log) -> Iterator[None]:
    """Log libraries' messages as lines without content, for the duration of this context."""
    handler = _Handler(log)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.note(record)


def _word(value: object) -> str:
    text = "" if value is None else str(value)
    return text if _PLAIN.fullmatch(text) else msgspec.json.encode(text).decode()


def _names(error: BaseException) -> str:
    """Return the type of an exception, and of its causes."""
    names, seen = [], set[int]()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        names.append(type(each).__name__)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return " < ".join(names)


def _places(error: BaseException) -> list[str]:
    """Return where it was raised: modules, lines and functions, the innermost last."""
    found, trace = [], error.__traceback__
    while trace is not None:
        code, name = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", "?")
        found.append(f"{name}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return found[-FRAMES:]
