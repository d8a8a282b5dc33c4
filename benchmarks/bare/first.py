"""The floor of `hone run`: a process that sends one request of a given size and reads the answer."""

import asyncio
import json
import sys
from urllib.parse import urlsplit


async def main(url: str, size: int) -> None:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    fields = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": ""}]}
    fields["messages"] = [{"role": "user", "content": "x" * (size - len(json.dumps(fields)))}]
    body = json.dumps(fields).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await reader.readuntil(b"0\r\n\r\n")
    writer.close()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
