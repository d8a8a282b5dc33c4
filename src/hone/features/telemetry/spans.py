"""Turn steps into spans by the conventions of OpenTelemetry for HTTP and for generative AI.

No attribute holds content: no message, no arguments, no results, no path. The conventions make all of these
optional but the path of a request, which may name what somebody works on; its route stands for it.
"""

from collections.abc import Mapping

from opentelemetry import context as otel_context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from hone.core.model import Finish, Usage, total
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
from hone.core.turn import Stop

AGENT = "hone"
PROVIDERS = {"mistral": "mistral_ai", "gemini": "gcp.gemini", "google": "gcp.gemini", "xai": "x_ai"}
"""Names that the conventions spell differently."""
FINISHES = {
    Finish.DONE: "stop",
    Finish.CALLS: "tool_call",
    Finish.LENGTH: "length",
    Finish.FILTERED: "content_filter",
}
Attributes = Mapping[str, AttributeValue]


class Spans:
    """A monitor that makes spans. Steps inside a request, a turn or a tool call are its children."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begin(self, step: Step) -> End:
        match step:
            case RequestStep():
                return self._request(step)
            case AgentStep():
                known = {"gen_ai.conversation.id": step.session, "hone.origin": step.origin.value}
                named = {"gen_ai.agent.name": AGENT, **name_model(step.model), **known}
                return self._enter(f"invoke_agent {AGENT}", operate("invoke_agent", named))
            case ModelStep():
                named = name_model(step.model)
                span = self._tracer.start_span(
                    f"chat {named['gen_ai.request.model']}",
                    kind=SpanKind.CLIENT,
                    attributes=operate("chat", {**named, "gen_ai.request.stream": True}),
                )
                return lambda end: finish(span, end)
            case ToolStep():
                name = step.name or "unknown"
                named = {"gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
                return self._enter(f"execute_tool {name}", operate("execute_tool", named))
            case ReviewStep():
                return self._enter("review", {"hone.job": step.job})

    def _request(self, step: RequestStep) -> End:
        parent = TraceContextTextMapPropagator().extract(dict(step.trace), otel_context.Context())
        span = self._tracer.start_span(
            step.method,
            context=parent,
            kind=SpanKind.SERVER,
            attributes={"http.request.method": step.method, "url.scheme": "http"},
        )

        def end_request(end: StepEnd) -> None:
            if isinstance(end, RequestEnd) and end.route:
                span.update_name(f"{step.method} {end.route}")
            finish(span, end)

        return attached(span, end_request)

    def _enter(self, name: str, attributes: Attributes) -> End:
        span = self._tracer.start_span(name, attributes=attributes)
        return attached(span, lambda end: finish(span, end))


def attached(span: Span, end: End) -> End:
    """Make a span the parent of what begins in this context, until the context ends."""
    token = otel_context.attach(set_span_in_context(span))

    def detach(result: StepEnd) -> None:
        otel_context.detach(token)
        end(result)

    return detach


def operate(name: str, attributes: Attributes) -> Attributes:
    return {"gen_ai.operation.name": name, **attributes}


def name_model(model: str) -> dict[str, AttributeValue]:
    provider, slash, name = model.partition("/")
    known = PROVIDERS.get(provider, provider)
    return {"gen_ai.provider.name": known, "gen_ai.request.model": name if slash else model}


def finish(span: Span, end: StepEnd) -> None:
    """End a span with what is known about its end. An error is a type, never a text."""
    error = ""
    match end:
        case RequestEnd():
            error = end.error or (str(end.status) if end.status >= 500 else "")
            span.set_attribute("http.response.status_code", end.status)
            if end.route:
                span.set_attribute("http.route", end.route)
        case AgentEnd():
            error = end.stop.value if end.stop is Stop.FAILED else ""
            span.set_attribute("hone.stop", end.stop.value)
            span.set_attributes(count_tokens(total(end.usage)))
        case ModelEnd():
            error = end.error
            span.set_attributes(count_tokens(end.usage))
            if end.finish:
                span.set_attribute("gen_ai.response.finish_reasons", [FINISHES[Finish(end.finish)]])
            if end.retries:
                span.set_attribute("hone.retries", end.retries)
        case ToolEnd():
            error = "tool_error" if end.failed else ""
        case ReviewEnd():
            error = end.result if end.result == "failed" else ""
            span.set_attribute("hone.result", end.result)
    if error:
        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR)
    span.end()


def count_tokens(usage: Usage) -> Attributes:
    found: dict[str, AttributeValue] = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
    }
    if usage.cached:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached
    if usage.written:
        found["gen_ai.usage.cache_creation.input_tokens"] = usage.written
    if usage.cost is not None:
        found["hone.cost_usd"] = usage.cost
    return found
