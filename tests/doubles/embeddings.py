"""A server on loopback that speaks OpenAI's `/v1/embeddings`, and records what it is asked. It shares no code
with Hone.

A vector counts the letters of a text, so texts with the same letters are alike.
"""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

Answer = tuple[int, dict[str, str], Any]
"""Status, headers and body."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class EmbeddingServer:
    """`odd` gives another answer to a request, or None for the usual one. `models` are those it has."""

    def __init__(
        self, odd: Callable[[dict[str, Any]], Answer | None] = lambda _: None, models: tuple[str, ...] = ()
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self._lock = Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer._lock:
                    outer.requests.append(asked)
                    outer.keys.append(self.headers.get("authorization", ""))
                missing = (bool(models) and asked["model"] not in models) or not self.path.endswith(
                    "/v1/embeddings"
                )
                refused: Answer = (404, {}, {"error": {"message": f'model "{asked["model"]}" not found'}})
                self.reply(*(odd(asked) or (refused if missing else (200, {}, usual(asked)))))

            def reply(self, status: int, headers: dict[str, str], body: Any) -> None:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def usual(asked: dict[str, Any]) -> dict[str, Any]:
    """The documented answer. The vectors come in another order than the texts: `index` counts."""
    texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
    made = [{"object": "embedding", "index": at, "embedding": count(text)} for at, text in enumerate(texts)]
    used = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "data": made[::-1], "model": asked["model"], "usage": usage}


def count(text: str) -> list[float]:
    return [float(text.lower().count(letter)) for letter in LETTERS]
