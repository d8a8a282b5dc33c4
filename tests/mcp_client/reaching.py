"""A server whose one tool tries to reach something: `python reaching.py`. It shares no code with Hone."""

import json
import os
import socket
import sys
import urllib.error
import urllib.request
from typing import Any


def fetch(target: str) -> str:
    """Ask as a program does that knows nothing of Hone: by the variables of its environment."""
    try:
        with urllib.request.urlopen(target, timeout=20) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def send(target: str) -> str:
    """Send the proxy what a library would not."""
    host, _, port = os.environ["HTTP_PROXY"].removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 20) as proxy:
        proxy.sendall(target.encode())
        proxy.settimeout(20)
        return b"".join(iter(lambda: proxy.recv(65_536), b"")).decode()


def dial(target: str) -> str:
    """Pass by the proxy."""
    kind, host, port = target.split()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as each:
        each.settimeout(5)
        each.connect((host, int(port)))
        each.send(b"x")
    return "sent"


def look_up(target: str) -> str:
    return str(socket.getaddrinfo(target, 80))


def main() -> None:
    ways = {each.__name__: each for each in (fetch, send, dial, look_up)}
    schema = {"type": "object", "properties": {"way": {"type": "string"}, "target": {"type": "string"}}}
    tool = {"name": "reach", "description": "Reach something.", "inputSchema": schema}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result: Any = {"tools": [tool]}
        if message["method"] == "initialize":
            named = {"name": "reaching", "version": "1"}
            version = message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": named}
        elif message["method"] == "tools/call":
            given = message["params"]["arguments"]
            try:
                said = ways[given["way"]](given["target"])
            except OSError as error:
                said = f"refused: {error}"
            result = {"content": [{"type": "text", "text": said}], "isError": False}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
