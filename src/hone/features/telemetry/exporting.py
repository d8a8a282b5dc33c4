"""Send spans to the destination in OpenTelemetry's variables. Only this module and `spans` import its SDK."""

import logging
import os
from threading import Thread

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from hone import __version__
from hone.core.errors import SettingsError
from hone.features.telemetry.spans import Spans

FLUSH = 3.0
"""Seconds for the last spans to be sent."""
SCOPE = "hone"


class SpanSink:
    """Sends spans. A program that has set up OpenTelemetry itself keeps its own provider, which it closes
    itself. Raises SettingsError for an unsupported exporter."""

    def __init__(self) -> None:
        found = trace.get_tracer_provider()
        self._own = None if isinstance(found, TracerProvider) else _open_provider()
        self.monitor = Spans((self._own or found).get_tracer(SCOPE, __version__))
        # Without a handler, Python prints the exporter's complaints into the terminal of a chat.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())

    def close(self) -> None:
        """Send what is left. A collector that does not answer delays nobody."""
        if self._own:
            flushing = Thread(target=self._own.shutdown, name="hone-spans", daemon=True)
            flushing.start()
            flushing.join(FLUSH)


def _open_provider() -> TracerProvider:
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "hone"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_open_exporter()))
    return provider


def _open_exporter() -> SpanExporter:
    match os.environ.get("OTEL_TRACES_EXPORTER", "") or "otlp":
        case "otlp":
            return OTLPSpanExporter()
        case "console":
            return ConsoleSpanExporter()
    raise SettingsError("OTEL_TRACES_EXPORTER must be otlp or console. No spans are sent.")
