"""A provider on loopback that answers from a list and records every request, in both wire formats.

It shares no code with Hone, so a restructuring cannot change it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


@dataclass(frozen=True)
class Call:
    """A tool call as a model writes it. `arguments` need not be JSON."""

    id: str
    name: str
    arguments: str

    @classmethod
    def of(cls, id: str, name: str, /, **arguments: Any) -> Self:
        return cls(id, name, json.dumps(arguments))


@dataclass(frozen=True)
class Say:
    """One reply. `tokens` is what the provider counts for the prompt."""

    text: str = ""
    calls: Sequence[Call] = ()
    tokens: int = 1_000


class Provider:
    """Gives the replies in their order. A request too many is answered with an error."""

    def __init__(self, *replies: Say) -> None:
        self.left = list(replies)
        self.bodies: list[bytes] = []
        self._lock = Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                said = outer.hear(body)
                if said is None:
                    self.reply(400, "application/json", b'{"error":{"message":"The script has ended."}}')
                else:
                    made = _chat(said) if self.path == CHAT else _messages(said)
                    self.reply(200, "text/event-stream", b"".join(made))

            def reply(self, status: int, kind: str, data: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def hear(self, body: bytes) -> Say | None:
        with self._lock:
            self.bodies.append(body)
            return self.left.pop(0) if self.left else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _event(name: str, value: object) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def _chat(said: Say) -> Iterator[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "m"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _event("", head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": said.text})
    for index, call in enumerate(said.calls):
        function = {"name": call.name, "arguments": call.arguments}
        yield chunk(
            {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
        )
    yield chunk({}, "tool_calls" if said.calls else "stop")
    usage = {"prompt_tokens": said.tokens, "completion_tokens": 10, "total_tokens": said.tokens + 10}
    yield _event("", head | {"choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _messages(said: Say) -> Iterator[bytes]:
    usage = {"input_tokens": said.tokens, "output_tokens": 10}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    yield _event("message_start", {"type": "message_start", "message": message | {"usage": usage}})
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if said.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": said.text}))
    for call in said.calls:
        opening = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        blocks.append((opening, {"type": "input_json_delta", "partial_json": call.arguments}))
    for index, (block, delta) in enumerate(blocks):
        at = {"index": index}
        yield _event("content_block_start", {"type": "content_block_start", "content_block": block} | at)
        yield _event("content_block_delta", {"type": "content_block_delta", "delta": delta} | at)
        yield _event("content_block_stop", {"type": "content_block_stop"} | at)
    end = {"stop_reason": "tool_use" if said.calls else "end_turn", "stop_sequence": None}
    yield _event("message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}})
    yield _event("message_stop", {"type": "message_stop"})
