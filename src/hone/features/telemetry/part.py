"""Open the exporter of spans with the first agent, if traces are on, and flush it at the end."""

import asyncio
from typing import TYPE_CHECKING

from hone.core.errors import SettingsError
from hone.core.loading import import_object
from hone.core.monitor import Monitor
from hone.core.part import Part

if TYPE_CHECKING:
    from hone.app import Hone
    from hone.features.telemetry.exporting import SpanSink

SINK = "hone.features.telemetry.exporting:SpanSink"
"""Imported if traces are on, and with it the SDK."""
MISSING = "Traces are on, and OpenTelemetry is not installed: pip install 'hone-agent[otel]'"


class TelemetryPart(Part):
    name = "telemetry"

    def __init__(self, hone: "Hone") -> None:
        self._hone = hone
        self._sink: SpanSink | None = None

    def monitor(self) -> Monitor | None:
        try:
            self._sink = import_object(SINK)()
        except ImportError:
            if self._hone.settings.telemetry.traces == "on":
                self._hone.say(MISSING)
            return None
        except SettingsError as error:
            self._hone.say(str(error))
            return None
        return self._sink.monitor if self._sink else None

    async def close(self) -> None:
        if self._sink:
            await asyncio.to_thread(self._sink.close)
