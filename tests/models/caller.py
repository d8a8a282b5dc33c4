"""A client of bare sockets, independent of Hone's own, and the reading of both providers' streams."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hone.core.messages import Part, Text, Thinking, ToolCall
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.shapes import Format

PATHS: dict[Format, str] = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


@dataclass(frozen=True)
class Got:
    """`complete`: the response ended as it had announced; `wire` is all of it."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool
    wire: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of each event, "[DONE]" as it is."""
        blocks = self.body.decode().removesuffix("\n\n").split("\n\n")
        data = [line[6:] for block in blocks for line in block.split("\n") if line.startswith("data: ")]
        return [each if each == "[DONE]" else json.loads(each) for each in data]


class Line:
    """One connection, over which several requests can go."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Got:
        await self.send(method, path, body, headers)
        return await self.read()

    async def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        fields = {"host": "127.0.0.1", "content-length": str(len(body)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await self.writer.drain()

    async def read(self) -> Got:
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        status = int(first.split(" ")[1])
        if headers.get("transfer-encoding") == "chunked":
            raw, body, complete = await self._chunks()
        else:
            size = int(headers["content-length"])
            raw = body = await self._upto(size)
            complete = len(body) == size
        return Got(status, headers, body, complete, head + raw)

    async def _chunks(self) -> tuple[bytes, bytes, bool]:
        raw = body = b""
        while True:
            line = await self.reader.readline()
            raw += line
            if not line.endswith(b"\r\n"):
                return raw, body, False
            size = int(line, 16)
            data = await self._upto(size + 2)
            raw += data
            if len(data) < size + 2:
                return raw, body, False
            if not size:
                return raw, body, True
            body += data[:-2]

    async def _upto(self, size: int) -> bytes:
        try:
            return await self.reader.readexactly(size)
        except asyncio.IncompleteReadError as short:
            return short.partial

    async def __aenter__(self) -> "Line":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


async def dial(stage: FakeProvider) -> Line:
    return Line(*await asyncio.open_connection("127.0.0.1", stage.port))


async def post(stage: FakeProvider, format: Format, body: bytes, **headers: str) -> Got:
    async with await dial(stage) as line:
        return await line.ask("POST", PATHS[format], body, headers)


def question(format: Format, *texts: str, stream: bool = True) -> bytes:
    """A request with words of the user and of the assistant in turn."""
    roles = ("user", "assistant")
    said = [{"role": roles[index % 2], "content": text} for index, text in enumerate(texts or ("hi",))]
    fields: dict[str, Any] = {"model": "m", "stream": stream}
    if format == "openai":
        fields |= {"stream_options": {"include_usage": True}} if stream else {}
    else:
        fields |= {"max_tokens": 100}
    return json.dumps(fields | {"messages": said}, separators=(",", ":")).encode()


def openai_parts(got: Got) -> tuple[list[Part], str]:
    """What a stream of chat chunks says, and why it ended."""
    thinking = text = ""
    calls: dict[int, list[str]] = {}
    finish = ""
    for event in got.events[:-1]:
        for choice in event["choices"]:
            delta = choice["delta"]
            finish = choice["finish_reason"] or finish
            thinking += delta.get("reasoning_content") or ""
            text += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                known = calls.setdefault(call["index"], [call.get("id", ""), "", ""])
                known[1] += call["function"].get("name", "")
                known[2] += call["function"].get("arguments", "")
    parts: list[Part] = [Thinking(thinking)] if thinking else []
    parts += [Text(text)] if text else []
    return [*parts, *(ToolCall(*calls[index]) for index in sorted(calls))], finish


def anthropic_parts(got: Got) -> tuple[list[Part], str]:
    """What a stream of message events says, and why it ended."""
    parts: list[Part] = []
    finish = ""
    for event in got.events:
        match event:
            case {"type": "content_block_start", "content_block": {"type": "text"}}:
                parts.append(Text(""))
            case {"type": "content_block_start", "content_block": {"type": "thinking"}}:
                parts.append(Thinking(""))
            case {
                "type": "content_block_start",
                "content_block": {"type": "redacted_thinking", "data": data},
            }:
                parts.append(Thinking("", sealed=data))
            case {"type": "content_block_start", "content_block": {"type": "tool_use"} as block}:
                parts.append(ToolCall(block["id"], block["name"], ""))
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                parts[index] = grown(parts[index], delta)
            case {"type": "message_delta", "delta": {"stop_reason": reason}}:
                finish = reason
    return parts, finish


def grown(part: Part, delta: dict[str, str]) -> Part:
    match part, delta["type"]:
        case Text(text), "text_delta":
            return Text(text + delta["text"])
        case Thinking(text, seal), "thinking_delta":
            return Thinking(text + delta["thinking"], seal)
        case Thinking(text, seal), "signature_delta":
            return Thinking(text, seal + delta["signature"])
        case ToolCall(identity, name, arguments), "input_json_delta":
            return ToolCall(identity, name, arguments + delta["partial_json"])
    raise AssertionError(f"{delta} does not belong to {part}")
