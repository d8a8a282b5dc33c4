"""J3: the pieces that operators rely on: crashes without values, bounded labels, workers, exported spans."""

import asyncio
import json
import logging
import signal
import subprocess
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hone import Hone
from hone.core.clock import ManualClock, SystemClock
from hone.core.ids import SessionId
from hone.core.monitor import (
    AgentEnd,
    AgentStep,
    ModelEnd,
    ModelStep,
    Monitors,
    RequestEnd,
    RequestStep,
    Step,
    ToolEnd,
    ToolStep,
    plain_model,
)
from hone.core.turn import Origin, Stop
from hone.features.telemetry.part import MISSING
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from hone.monitoring.families import MOST, Family, Metric, Sample, label, merge, render
from hone.monitoring.logs import Log, caught
from hone.monitoring.metrics import MOST_MODELS, Metrics
from hone.settings import read
from hone.web.requests import MonitoredRequests
from tests.cli.driving import HONE, environment
from tests.models.loopback import free_port

SECRET = "zqcanarysecret"


async def test_a_crash_is_told_by_its_types_and_places_and_never_by_its_values() -> None:
    async def crash(request: Request) -> Response:
        try:
            raise KeyError(f"{SECRET} of the cause")
        except KeyError as error:
            raise ValueError(f"{SECRET} in {request.path_params['name']}") from error

    lines: list[str] = []
    log = Log(SystemClock(), "json", write=lines.append)
    app = Starlette(routes=[Route("/crash/{name}", crash)])
    transport = httpx2.ASGITransport(MonitoredRequests(app, Monitors([log]), SystemClock(), log))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hone") as client:
        found = await client.get(f"/crash/{SECRET}", params={"q": SECRET})
    assert found.status_code == 500
    with caught(log):
        logging.getLogger("asyncio").error("future: <Task exception=%s>", SECRET)
        try:
            raise RuntimeError(SECRET)
        except RuntimeError:
            logging.getLogger("a.library").exception(SECRET)
    crashed, asked, noted, raised = map(json.loads, lines)
    assert SECRET not in "".join(lines)
    assert (crashed["error"], crashed["where"], asked["status"]) == (
        "ValueError < KeyError",
        "/crash/{name}",
        500,
    )
    assert crashed["request"] == asked["request"] == found.headers["x-request-id"]
    assert crashed["at"].endswith(" crash")
    assert (noted["event"], noted["where"], raised["error"]) == ("library", "asyncio", "RuntimeError")


def test_labels_are_few_whatever_models_tools_and_clients_are_called() -> None:
    metrics = Metrics(ManualClock())

    def count(step: Step, end: ModelEnd | ToolEnd) -> None:
        finish = metrics.begin(step)
        assert finish
        finish(end)

    for number in range(500):
        count(ModelStep(f"openai/model-{number}"), ModelEnd("done"))
        count(ToolStep(f"tool_{number}"), ToolEnd(failed=False))
        count(ToolStep(f"server__{number}"), ToolEnd(failed=False))
    count(ModelStep(plain_model("openai/a name of somebody")), ModelEnd("done"))
    families = {each.name: each for each in text_string_to_metric_families(render(metrics.collect()))}
    models = families["hone_model_calls"].samples
    assert len(models) == MOST_MODELS + 1
    assert sum(each.value for each in models) == 501
    tools = {each.labels["tool"]: each.value for each in families["hone_tool_calls"].samples}
    assert tools == {"other": 500, "mcp": 500}
    routes = Metric("hone_http_requests_total", "counter", "", ("route",))
    for number in range(3 * MOST):
        routes.add(f"/{number}")
    assert len(routes.collect().samples) == MOST + 1


async def test_own_tools_are_known_by_name(home: Path, tmp_path: Path) -> None:
    async with Hone(home=home, folder=tmp_path, model="stage/x") as hone:
        assert set(hone.toolboxes.show(tmp_path)) <= Metrics(hone.clock)._tools


def test_any_label_and_number_is_read_as_it_was_written() -> None:
    odd = 'quote " backslash \\ newline \n end'
    written = [Family("odd_total", "counter", odd, [Sample(0.1, {"name": odd}), Sample(3, {"name": ""})])]
    both = merge([*label(written, "process", "0"), *label(written, "process", "1")])
    [family] = text_string_to_metric_families(render(both))
    found = [(each.labels["name"], each.labels["process"], each.value) for each in family.samples]
    assert found == [(odd, "0", 0.1), ("", "0", 3.0), (odd, "1", 0.1), ("", "1", 3.0)]
    assert family.documentation == odd


def test_a_line_of_text_stays_one_line_whatever_is_in_it() -> None:
    lines: list[str] = []
    log = Log(ManualClock(), "text", users=True, write=lines.append)
    end = log.begin(RequestStep("GET", {}))
    assert end
    end(RequestEnd("/api/status", 200, 0.0, 'eve" status=500\n2026 error crash'))
    [line] = lines
    assert (line.count("\n"), line.endswith("\n")) == (1, True)
    assert r'user="eve\" status=500\n2026 error crash"' in line


def test_a_monitor_that_raises_disturbs_nobody() -> None:
    class Broken:
        def begin(self, step: Step) -> None:
            raise RuntimeError("broken")

    metrics = Metrics(ManualClock())
    end = Monitors([Broken(), metrics]).begin(AgentStep(Origin.USER, "openai/x", SessionId("a")))
    end(AgentEnd(Stop.ANSWERED))
    assert 'hone_turns_total{origin="user",stop="answered"} 1' in render(metrics.collect())


async def test_a_worker_tells_its_numbers_and_logs_no_lesson(home: Path, tmp_path: Path) -> None:
    port = free_port()
    (home / "hone.toml").write_text('[serve]\nlog = "text"\n')
    async with FakeProvider(echo) as stage:
        known = environment(home, stage)
        done = await asyncio.create_subprocess_exec(
            *HONE, "run", f"Remember {SECRET}.", env=known, cwd=tmp_path, stdout=PIPE
        )
        await done.communicate()
        async with Hone(home=home, folder=tmp_path) as hone:
            [session] = await hone.sessions.list()
            await hone.jobs.enqueue(session.header.id, 2, frozenset({"memory"}), "by hand", hone.clock.now())
        worker = await asyncio.create_subprocess_exec(
            *HONE,
            "worker",
            "--metrics",
            f"127.0.0.1:{port}",
            env=known,
            cwd=tmp_path,
            stdout=PIPE,
            stderr=PIPE,
        )
        async with asyncio.timeout(60), httpx2.AsyncClient() as prometheus:
            told = ""
            while 'hone_reviews_total{result="done"} 1' not in told:
                try:
                    told = (await prometheus.get(f"http://127.0.0.1:{port}/metrics")).text
                except httpx2.TransportError:
                    continue
            worker.send_signal(signal.SIGTERM)
            out, err = await worker.communicate()
        assert 'hone_turns_total{origin="review",stop="answered"} 1' in told
        assert "hone_reviews_queued 0" in told
        assert (worker.returncode, out) == (0, b"")
        assert b"review" in err
        assert b"result=done" in err
        assert SECRET not in told + err.decode()


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector of OpenTelemetry, as far as spans over HTTP go."""
    received: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_the_standard_variables_send_the_spans_of_a_run_to_a_collector(
    home: Path, tmp_path: Path
) -> None:
    with collector() as (url, received):
        async with FakeProvider(echo) as stage:
            known = environment(
                home, stage, OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_COMPRESSION="none"
            )
            run = await asyncio.create_subprocess_exec(
                *HONE, "run", f"Say {SECRET}.", env=known, cwd=tmp_path, stdout=PIPE, stderr=PIPE
            )
            out, _ = await run.communicate()
    assert (run.returncode, SECRET.encode() in out) == (0, True)
    [sent] = received
    [resource] = sent.resource_spans
    names = [span.name for scope in resource.scope_spans for span in scope.spans]
    assert sorted(names) == ["chat scripted", "invoke_agent hone"]
    assert {each.key: each.value.string_value for each in resource.resource.attributes}[
        "service.name"
    ] == "hone"
    assert SECRET.encode() not in sent.SerializeToString()


@pytest.mark.parametrize(
    ("text", "variables", "traces"),
    [
        ("", {}, "off"),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "auto"),
        ("", {"OTEL_TRACES_EXPORTER": "console"}, "auto"),
        ("", {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "off"),
        ("", {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "off"),
        ('[telemetry]\ntraces = "off"\n', {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "off"),
        ('[telemetry]\ntraces = "on"\n', {}, "on"),
    ],
)
def test_traces_are_off_unless_a_variable_or_the_owner_asks(
    home: Path, text: str, variables: dict[str, str], traces: str
) -> None:
    (home / "hone.toml").write_text(text)
    assert read(home, variables).telemetry.traces == traces


@pytest.mark.parametrize(("traces", "said"), [("on", [MISSING]), ("auto", [])])
async def test_a_missing_package_is_told_to_an_owner_who_asked_for_traces(
    home: Path, monkeypatch: pytest.MonkeyPatch, traces: str, said: list[str]
) -> None:
    (home / "hone.toml").write_text(f'[telemetry]\ntraces = "{traces}"\n')
    monkeypatch.setitem(sys.modules, "hone.features.telemetry.exporting", None)
    async with Hone(home=home, model="stage/x") as hone:
        assert not hone.monitors
        assert hone.notices == said


LOADED = """
import asyncio, sys
from hone import Hone

async def main():
    async with Hone(model="stage/x") as hone:
        assert not hone.monitors
        hone.toolboxes

asyncio.run(main())
print([name for name in sys.modules if "opentelemetry" in name or "monitoring" in name])
"""


def test_nothing_of_telemetry_is_loaded_where_nobody_asks_for_it(home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
