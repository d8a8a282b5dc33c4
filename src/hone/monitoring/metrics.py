"""Count what happens in this process: requests, turns, model calls, tool calls and reviews."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from hone.core.clock import Clock
from hone.core.model import Usage
from hone.core.monitor import (
    AgentEnd,
    AgentStep,
    End,
    ModelEnd,
    ModelStep,
    RequestEnd,
    RequestStep,
    ReviewEnd,
    ReviewStep,
    Step,
    StepEnd,
    ToolEnd,
    ToolStep,
)
from hone.core.tool import is_served
from hone.monitoring.families import OTHER, Family, Histogram, Metric
from hone.tools.define import SCHEMAS

MOST_MODELS = 40
"""The most names of models to distinguish."""
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
CANCELLED = "cancelled"
UNKNOWN = "none"
"""Stands for a tool that a model made up, and for a path without a route."""


def list_tools() -> frozenset[str]:
    """Return the names of Hone's own tools."""
    places = msgspec.json.decode(SCHEMAS.read_bytes(), type=dict[str, Any])
    return frozenset({re.split("[.:]", place)[-1] for place in places} | {"web_search"})


class Metrics:
    """A monitor that counts. `collect` returns what it has counted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._models: set[str] = set()
        self._tools = list_tools()
        counter, histogram = partial(Metric, kind="counter"), Histogram
        self.requests = counter(
            "hone_http_requests_total",
            help="Requests that were answered.",
            labels=("method", "route", "status"),
        )
        self.request_seconds = histogram(
            "hone_http_request_duration_seconds", "Time until an answer began.", ("method", "route")
        )
        self.turns = counter("hone_turns_total", help="Turns that ended.", labels=("origin", "stop"))
        self.turn_seconds = histogram("hone_turn_duration_seconds", "Time that a turn took.", ("origin",))
        self.turns_running = Metric("hone_turns_running", "gauge", "Turns under way.", ("origin",))
        self.calls = counter(
            "hone_model_calls_total",
            help="Model calls that ended, retries included in one.",
            labels=("model", "result"),
        )
        self.call_seconds = histogram(
            "hone_model_call_duration_seconds", "Time that a model call took, with its retries.", ("model",)
        )
        self.retries = counter(
            "hone_model_retries_total", help="Requests sent to a model again.", labels=("model",)
        )
        self.errors = counter(
            "hone_model_errors_total", help="Model calls that failed for good.", labels=("model", "error")
        )
        self.tokens = counter("hone_model_tokens_total", help="Tokens by kind.", labels=("model", "kind"))
        self.cost = counter(
            "hone_model_cost_dollars_total", help="Cost of model calls with a known price.", labels=("model",)
        )
        self.tools = counter(
            "hone_tool_calls_total", help="Tool calls that ended.", labels=("tool", "result")
        )
        self.tool_seconds = histogram("hone_tool_duration_seconds", "Time that a tool call took.", ("tool",))
        self.reviews = counter("hone_reviews_total", help="Reviews that ended.", labels=("result",))
        self.reviews_running = Metric("hone_reviews_running", "gauge", "Reviews under way.")

    def collect(self) -> list[Family]:
        return [each.collect() for each in vars(self).values() if isinstance(each, Metric | Histogram)]

    def begin(self, step: Step) -> End | None:
        began = self._clock.monotonic()

        def take() -> float:
            return self._clock.monotonic() - began

        match step:
            case RequestStep():
                return partial(self._end_request, step)
            case AgentStep():
                self.turns_running.add(step.origin, by=1)
                return partial(self._end_turn, step, take)
            case ModelStep():
                return partial(self._end_call, step, take)
            case ToolStep():
                return partial(self._end_tool, step, take)
            case ReviewStep():
                self.reviews_running.add(by=1)
                return self._end_review

    def _end_request(self, step: RequestStep, end: StepEnd) -> None:
        assert isinstance(end, RequestEnd)
        method = step.method if step.method in METHODS else OTHER
        route = end.route or UNKNOWN
        self.requests.add(method, route, str(end.status))
        self.request_seconds.observe(end.begun, method, route)

    def _end_turn(self, step: AgentStep, take: Callable[[], float], end: StepEnd) -> None:
        assert isinstance(end, AgentEnd)
        self.turns_running.add(step.origin, by=-1)
        self.turns.add(step.origin, end.stop)
        self.turn_seconds.observe(take(), step.origin)

    def _end_call(self, step: ModelStep, take: Callable[[], float], end: StepEnd) -> None:
        assert isinstance(end, ModelEnd)
        model = self._name(step.model)
        is_failed = bool(end.error) and end.error != CANCELLED
        self.calls.add(model, "failed" if is_failed else end.error or end.finish)
        self.call_seconds.observe(take(), model)
        if end.retries:
            self.retries.add(model, by=end.retries)
        if is_failed:
            self.errors.add(model, end.error)
        self._spend(model, end.usage)

    def _spend(self, model: str, usage: Usage) -> None:
        for kind in ("input", "cached", "written", "output"):
            if count := getattr(usage, kind):
                self.tokens.add(model, kind, by=count)
        if usage.cost:
            self.cost.add(model, by=usage.cost)

    def _end_tool(self, step: ToolStep, take: Callable[[], float], end: StepEnd) -> None:
        assert isinstance(end, ToolEnd)
        name = self._tool(step.name)
        self.tools.add(name, "failed" if end.failed else "ok")
        self.tool_seconds.observe(take(), name)

    def _end_review(self, end: StepEnd) -> None:
        assert isinstance(end, ReviewEnd)
        self.reviews_running.add(by=-1)
        self.reviews.add(end.result)

    def _name(self, model: str) -> str:
        """Return a model's name as a label. A client may ask for any model, so only some names are
        distinguished."""
        if model not in self._models:
            if len(self._models) >= MOST_MODELS:
                return OTHER
            self._models.add(model)
        return model

    def _tool(self, name: str) -> str:
        """Return a tool's name as a label. Names of servers' and plugins' tools would reveal what somebody
        works with."""
        if not name:
            return UNKNOWN
        return name if name in self._tools else "mcp" if is_served(name) else OTHER
