"""A scripted story in a server with all monitors: a tool call, a made-up tool, a retry, an error, a review.

Unique strings are in everything that somebody says, names or reads.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hone.core.messages import Message, Role, assistant
from hone.features.telemetry.spans import Spans
from hone.models.fake_provider import faults
from hone.models.scripted import call
from hone.monitoring.exposing import MetricsPlace, bind_metrics
from hone.settings import Settings
from hone.settings.sections import Learning, ServeSettings
from hone.web.api_keys import KeyKind
from hone.web.serving import measured
from tests.web.rig import Running, running

KINDS = (
    *("message", "answer", "argument", "result", "file", "folder", "title", "key", "provider", "tool"),
    *("query", "path", "header", "failing", "agent"),
)
CANARY = {kind: f"zq{number}canary{kind}" for number, kind in enumerate(KINDS)}
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
REQUEST = "req-0123456789"


@dataclass
class Told:
    """What operators got to see, and what the server itself knows."""

    metrics: str
    logs: str
    spans: Sequence[ReadableSpan]
    visit: Running
    session: str
    asked: str


def answer(messages: Sequence[Message]) -> Message:
    said = [each for each in messages if each.role is Role.USER][-1].text
    if CANARY["message"] not in said or len(said) > 300:
        return assistant("Nothing to save.")
    after = [each.role for each in messages]
    spoken = len(after) - 1 - after[::-1].index(Role.USER)
    replies = (
        assistant(call("read_file", path=f"{CANARY['file']}.txt")),
        assistant(call(CANARY["tool"], text=CANARY["argument"])),
        assistant(f"It says {CANARY['answer']}."),
    )
    return replies[sum(role is Role.ASSISTANT for role in after[spoken:])]


def go_wrong(number: int) -> str | None:
    """The first call is refused for good, the second for a moment."""
    return {0: "canary refusal", 1: "canary overload"}.get(number)


async def settle(visit: Running, session: str) -> None:
    while session in (await visit.get("/api/sessions"))["busy"]:
        pass  # each look asks the server


async def reviewed(visit: Running) -> None:
    async with asyncio.timeout(60):
        while [each["state"] for each in (await visit.get("/api/reviews"))["reviews"]] != ["done"]:
            pass  # each look asks the server


@asynccontextmanager
async def told_story(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    **serve: Any,
) -> AsyncIterator[Told]:
    text = f"No: {CANARY['provider']}"
    monkeypatch.setitem(faults.FAULTS, "canary refusal", faults.refuse(400, text))
    monkeypatch.setitem(faults.FAULTS, "canary overload", faults.refuse(503, text, retry_after="0"))
    folder = tmp_path / CANARY["folder"]
    folder.mkdir()
    (folder / f"{CANARY['file']}.txt").write_text(f"{CANARY['result']}\n")
    settings = Settings(serve=ServeSettings(log="json", **serve), learning=Learning(turns=1))
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    place = MetricsPlace(bind_metrics("127.0.0.1:0"))
    async with (
        running(home, folder, answer, settings=settings) as visit,
        measured(visit.state, place),
    ):
        visit.stage.fault = go_wrong
        visit.state.hone.monitors.add(Spans(provider.get_tracer("hone")))
        session, asked = await speak(visit)
        await wander(visit, session)
        port = place.listener.getsockname()[1]
        async with httpx2.AsyncClient() as prometheus:
            scraped = await prometheus.get(f"http://127.0.0.1:{port}/metrics")
            assert scraped.headers["content-type"].startswith("text/plain; version=0.0.4")
            for path, headers, status in (
                ("/", {}, 404),
                ("/metrics", {"sec-fetch-site": "same-origin"}, 403),
            ):
                assert (
                    await prometheus.get(f"http://127.0.0.1:{port}{path}", headers=headers)
                ).status_code == status
        captured = capsys.readouterr()
        spans = exporter.get_finished_spans()
        yield Told(scraped.text, captured.out + captured.err, spans, visit, session, asked)


async def speak(visit: Running) -> tuple[str, str]:
    """One turn that fails, one with tools that is reviewed."""
    failed = await visit.post("/api/sessions", text=CANARY["failing"])
    await settle(visit, failed["session"])
    headers = {"traceparent": TRACEPARENT, "x-request-id": REQUEST, "user-agent": CANARY["agent"]}
    begun = await visit.client.post("/api/sessions", json={"text": CANARY["message"]}, headers=headers)
    assert begun.headers["x-request-id"] == REQUEST
    session = begun.json()["session"]
    await settle(visit, session)
    await reviewed(visit)
    return session, failed["session"]


async def wander(visit: Running, session: str) -> None:
    """Requests with strings of somebody's in every place of a request."""
    key = visit.issued.add(CANARY["key"], KeyKind.PERSON)
    await visit.client.patch(f"/api/sessions/{session}", json={"title": CANARY["title"]})
    own = {"authorization": f"Bearer {key}"}
    await visit.client.get("/api/search", params={"text": CANARY["query"]}, headers=own)
    await visit.client.get(f"/api/skills/{CANARY['path']}")
    await visit.client.get(f"/{CANARY['path']}")
    await visit.client.get("/api/status", headers={"authorization": f"Bearer {CANARY['key']}"})
    odd = await visit.client.get("/health", headers={"x-request-id": f"{CANARY['header']} and more"})
    assert CANARY["header"] not in odd.headers["x-request-id"]
