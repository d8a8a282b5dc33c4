"""The peer as a pupil of the lab, run by its Python: `lab.py PAGES`.

Each line it reads is JSON: {"open": ID} begins a conversation, {"say": TEXT} says something in it. After each
it prints a line of JSON when the answer is there and no review is at work any more. PAGES is a file with the
pages that its tool `web_fetch` finds.
"""

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peer.agent import Peer
from benchmarks.peer.month import reviewed

FETCH = {
    "name": "web_fetch",
    "description": "Read a web page as text.",
    "parameters": {
        "type": "object",
        "properties": {"url": {"type": "string", "description": "the address"}},
        "required": ["url"],
    },
}


def main() -> None:
    pages = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))

    def fetch(told: dict[str, Any], **_: Any) -> str:
        return json.dumps({"content": pages.get(told.get("url", ""), "Nothing is here.")})

    registry = import_module("tools.registry").registry
    registry.register(name="web_fetch", toolset="probe", schema=FETCH, handler=fetch)
    asyncio.run(serve(Peer()))


async def serve(peer: Peer) -> None:
    talk = await peer.open(0)
    for line in sys.stdin:
        told = json.loads(line)
        if "open" in told:
            talk = await peer.open(0)
        else:
            await talk.send(told["say"])
            reviewed()
        print(json.dumps({"done": True}), flush=True)
    await peer.close()


if __name__ == "__main__":
    main()
