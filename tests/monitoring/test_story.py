"""J3: what operators see of a server, read by the official parsers: what happened, and no content."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client.parser import text_string_to_metric_families

from hone.core.model import total
from hone.core.turn import Origin
from tests.monitoring.story import CANARY, PARENT, REQUEST, TRACE, Told, told_story
from tests.tier import Figures

MODEL = "stage/scripted"


def read(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample by its name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def find(samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


async def test_operators_see_what_happened_and_nothing_of_what_was_said(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    figures: Figures,
) -> None:
    async with told_story(home, tmp_path, monkeypatch, capsys) as told:
        spans = "".join(each.to_json() for each in told.spans)
        seen = {"metrics": told.metrics, "logs": told.logs, "spans": spans}
        leaks = [
            (kind, where) for kind, word in CANARY.items() for where, text in seen.items() if word in text
        ]
        sent = "".join(str(each.body) for each in told.visit.stage.requests)
        assert all(CANARY[kind] in sent for kind in ("message", "argument", "result", "file", "failing"))
        stored = str(await told.visit.get(f"/api/sessions/{told.session}"))
        assert all(CANARY[kind] in stored for kind in ("answer", "title", "tool"))
        assert CANARY["provider"] in str(await told.visit.get(f"/api/sessions/{told.asked}"))
        figures.tally(
            len(CANARY) * len(seen),
            got_in=len(leaks),
            note="strings of somebody's in metrics, logs and spans",
        )
        assert leaks == []
        assert len(told.logs.splitlines()) > 10
        await check_metrics(told)
        check_logs(told)
        check_spans(told)


async def check_metrics(told: Told) -> None:
    samples = read(told.metrics)
    assert find(samples, "hone_turns_total", origin="user", stop="answered") == 1
    assert find(samples, "hone_turns_total", origin="user", stop="failed") == 1
    assert find(samples, "hone_turns_total", origin="review", stop="answered") == 1
    assert find(samples, "hone_turns_running", origin="user") == 0
    calls = {
        result: find(samples, "hone_model_calls_total", model=MODEL, result=result)
        for result in ("calls", "done", "failed")
    }
    assert calls == {"calls": 2, "done": 2, "failed": 1}
    assert find(samples, "hone_model_errors_total", model=MODEL, error="Rejected") == 1
    assert find(samples, "hone_model_retries_total", model=MODEL) == 1
    assert find(samples, "hone_model_call_duration_seconds_count", model=MODEL) == 5
    used = total([each.usage for each in await told.visit.state.hone.sessions.spending()])
    assert find(samples, "hone_model_tokens_total", model=MODEL, kind="input") == used.input > 0
    assert find(samples, "hone_model_tokens_total", model=MODEL, kind="output") == used.output > 0
    assert find(samples, "hone_tool_calls_total", tool="read_file", result="ok") == 1
    assert find(samples, "hone_tool_calls_total", tool="none", result="failed") == 1
    assert find(samples, "hone_reviews_total", result="done") == 1
    assert find(samples, "hone_reviews_queued") == find(samples, "hone_reviews_running") == 0
    assert find(samples, "hone_conversations_open") == 2
    assert find(samples, "hone_http_requests_total", method="POST", route="/api/sessions", status="202") == 2
    assert find(samples, "hone_http_requests_total", method="GET", route="none", status="401") == 1
    assert find(samples, "hone_http_requests_total", method="GET", route="none", status="404") == 1
    within = find(
        samples, "hone_http_request_duration_seconds_bucket", method="POST", route="/api/sessions", le="+Inf"
    )
    assert within == 2
    assert find(samples, "hone_database_errors_total") == 0
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
        assert find(samples, name) > 0


def check_logs(told: Told) -> None:
    lines = [json.loads(line) for line in told.logs.splitlines()]
    turns = {each["stop"]: each for each in lines if each["event"] == "turn" and each["origin"] == "user"}
    assert (turns["answered"]["request"], turns["answered"]["calls"]) == (REQUEST, 3)
    assert (turns["answered"]["session"], turns["failed"]["level"]) == (told.session, "warning")
    [review] = [each for each in lines if each["event"] == "review"]
    assert review["result"] == "done"
    begun = [each for each in lines if each.get("route") == "/api/sessions" and each.get("method") == "POST"]
    assert [each["status"] for each in begun] == [202, 202]
    assert all(each["time"].endswith("Z") and each["ms"] >= 0 for each in lines)
    assert not any("user" in each or each.get("route") == "/health" for each in lines)


def check_spans(told: Told) -> None:
    [request] = [
        each
        for each in told.spans
        if each.context and each.context.trace_id == int(TRACE, 16) and each.kind is SpanKind.SERVER
    ]
    trace = [each for each in told.spans if each.context and each.context.trace_id == int(TRACE, 16)]
    assert request.name == "POST /api/sessions"
    assert request.parent is not None
    assert request.parent.span_id == int(PARENT, 16)
    children = {
        each.name: each
        for each in trace
        if each.parent and request.context and each.parent.span_id == request.context.span_id
    }
    assert list(children) == ["invoke_agent hone"]
    agent = children["invoke_agent hone"]
    below = [
        each
        for each in trace
        if each.parent and agent.context and each.parent.span_id == agent.context.span_id
    ]
    names = [
        "chat scripted",
        "execute_tool read_file",
        "chat scripted",
        "execute_tool unknown",
        "chat scripted",
    ]
    assert [each.name for each in below] == names
    attributes = dict(below[0].attributes or {})
    assert attributes[gen_ai.GEN_AI_OPERATION_NAME] == gen_ai.GenAiOperationNameValues.CHAT.value
    assert attributes[gen_ai.GEN_AI_PROVIDER_NAME] == "stage"
    assert attributes[gen_ai.GEN_AI_REQUEST_MODEL] == "scripted"
    assert attributes[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] == ("tool_call",)
    assert isinstance(used := attributes[gen_ai.GEN_AI_USAGE_INPUT_TOKENS], int)
    assert used > 0
    assert (attributes["hone.retries"], below[0].kind) == (1, SpanKind.CLIENT)
    assert (agent.attributes or {})[gen_ai.GEN_AI_CONVERSATION_ID] == told.session
    assert (agent.attributes or {})[gen_ai.GEN_AI_OPERATION_NAME] == "invoke_agent"
    assert (below[1].attributes or {})[gen_ai.GEN_AI_TOOL_NAME] == "read_file"
    assert (below[3].status.status_code, below[3].status.description) == (StatusCode.ERROR, None)
    [failed] = [each for each in told.spans if (each.attributes or {}).get("error.type") == "Rejected"]
    assert not failed.events
    [review] = [each for each in told.spans if each.name == "review"]
    asked = [
        each
        for each in told.spans
        if each.parent and review.context and each.parent.span_id == review.context.span_id
    ]
    assert [(each.attributes or {})["hone.origin"] for each in asked] == [Origin.REVIEW.value]


async def test_a_log_names_who_asked_only_where_the_owner_wants_that(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with told_story(home, tmp_path, monkeypatch, capsys, log_users=True) as told:
        named = {line.get("user") for line in map(json.loads, told.logs.splitlines())}
        assert {"owner", CANARY["key"]} <= named
        assert CANARY["key"] not in told.metrics
