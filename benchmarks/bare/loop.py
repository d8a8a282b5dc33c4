"""The floor of a turn: a list of dicts, encoded whole for each request, over a separate connection."""

import asyncio
import json
from urllib.parse import urlsplit

from benchmarks.talk import SCHEMA, Wire, history, spoken


class BareLoop:
    """`padding` replaces the system text and the tools of the other side, in bytes."""

    def __init__(self, url: str, padding: int) -> None:
        self._url = url
        self._padding = padding
        self._talks: list[BareTalk] = []

    async def open(self, count: int) -> "BareTalk":
        place = urlsplit(self._url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        system = {"role": "system", "content": "x" * self._padding}
        talk = BareTalk(reader, writer, place.netloc, [system, *history(count)])
        self._talks.append(talk)
        return talk

    async def close(self) -> None:
        for talk in self._talks:
            talk.writer.close()
            await talk.writer.wait_closed()


class BareTalk:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, messages: list[Wire]
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.host = host
        self.messages = messages

    async def send(self, text: str) -> int:
        """Run one turn. Return how many messages there are after it."""
        self.messages.append({"role": "user", "content": text})
        while True:
            reply = await self.ask()
            self.messages.append(reply)
            if "tool_calls" not in reply:
                return len(self.messages) - 1
            for call in reply["tool_calls"]:
                result = spoken(json.loads(call["function"]["arguments"])["left"])
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def ask(self) -> Wire:
        tools = [{"type": "function", "function": SCHEMA}]
        fields = {"model": "scripted", "stream": True, "tools": tools, "messages": self.messages}
        body = json.dumps(fields).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        await self.writer.drain()
        await self.reader.readuntil(b"\r\n\r\n")
        return await self.assemble()

    async def assemble(self) -> Wire:
        text: list[str] = []
        calls: dict[int, Wire] = {}
        while size := int(await self.reader.readline(), 16):
            data = (await self.reader.readexactly(size + 2)).removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                continue
            for choice in json.loads(data)["choices"]:
                text.append(choice["delta"].get("content") or "")
                for piece in choice["delta"].get("tool_calls", ()):
                    known = calls.setdefault(piece["index"], {**piece, "function": {**piece["function"]}})
                    if "id" not in piece:
                        known["function"]["arguments"] += piece["function"]["arguments"]
        await self.reader.readline()
        reply: Wire = {"role": "assistant", "content": "".join(text)}
        return {**reply, "tool_calls": list(calls.values())} if calls else reply
