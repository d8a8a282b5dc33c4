"""The world around Hone: hours that pass instantly, and a web of one site on loopback."""

import asyncio
import mmap
import socket
import struct
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from unittest.mock import patch

from hone.core.clock import SystemClock
from hone.runtime import toolbox_factory

SITE = "pages.example"
TURN, SILENCE, APART = 60.0, 250.0, 6 * 3600.0
"""Seconds between two turns, until a conversation counts as silent, and between two conversations."""


class WorldClock:
    """A clock that this process moves and that all forked processes share."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)

    @property
    def offset(self) -> float:
        (seconds,) = struct.unpack("d", self._shared[:8])
        return float(seconds)

    def reset(self) -> None:
        self._shared[:8] = struct.pack("d", 0.0)

    def advance(self, seconds: float) -> None:
        self._shared[:8] = struct.pack("d", self.offset + seconds)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.offset)

    def install(self) -> None:
        """Use this clock in this process from now on, timers included: they fire when something wakes the
        loop."""
        for owner, name, tell in (
            (SystemClock, "now", lambda _: self.now()),
            (SystemClock, "monotonic", lambda _: time.monotonic() + self.offset),
            (asyncio.BaseEventLoop, "time", lambda _: time.monotonic() + self.offset),
        ):
            patch.object(owner, name, tell).start()


def open_web() -> None:
    """Let this process reach the stories' site on loopback; nothing else changes."""
    ask = socket.getaddrinfo

    def answer(host: Any, *arguments: Any, **options: Any) -> Any:
        return ask("127.0.0.1" if host in (SITE, SITE.encode()) else host, *arguments, **options)

    patch.object(socket, "getaddrinfo", answer).start()
    patch.object(toolbox_factory, "public_only", lambda *_: None).start()


class Site:
    """Pages by their path."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.pages))
        self.url = f"http://{SITE}:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(pages: Mapping[str, str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<html><body><p>{pages.get(self.path, 'Nothing is here.')}</p></body></html>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    return Handler
