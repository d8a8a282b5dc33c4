"""Questions to a Honcho server, and what a real one answered.

`python -m tests.doubles.honcho_probe URL` asks a server and prints its answers as they are kept in
`honcho_answers.json`. The double is held to them, so that it cannot be kinder than the service.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx

ANSWERS = Path(__file__).with_name("honcho_answers.json")
MESSAGES = (
    "editor: She writes all code in Neovim with a light theme.",
    "deploy/day: Releases go out on Tuesday afternoon, never on Friday.",
    "allergy: Allergic to peanuts; sesame is fine.",
    "office: La oficina nueva está en la calle de Alcalá.",
    "train: 東京行きの列車は三番線から出る。",
    "host-12: ssh deploy@heron.example.test:/srv/site_v2 -p 2202, since 3.5",
    "hall: The portrait hangs beside 100% of the code.",
    "again: She writes code, code and code.",
)
QUERIES = (
    *("code", "Code?", "code.", "code theme", "code and theme", "code or peanuts", "the"),
    *("which code", "writing", "deployment", "deploy", "deploying", "deplo", "port", "portrait"),
    *("tues", "Tuesday!", "peanut", "PEANUTS", "heron", "heron.example.test", "site_v2", "2202"),
    *("3.5", "host 12", "host-12", "100%", "%", "_", "oficina", "está", "esta", "calle oficina"),
    *("東京", "列車", "東京の列車", "never on", "out on Tuesday", "¿calle?", "a b c"),
    *("code code", "-", "'", "sesame  is", "lives; code", "neovim light", "releases", "release"),
    *("🎉"),
)
WORKSPACE = "probe"
LIVE = {"metadata": {"state": "live"}}
ODD: tuple[tuple[str, str, Any], ...] = (
    ("POST", "sessions/probe/search", {"query": "code", "limit": 0}),
    ("POST", "sessions/probe/search", {"query": "code", "limit": 101}),
    ("POST", "sessions/probe/search", {"query": ""}),
    ("POST", "sessions/probe/search", {"limit": 5}),
    ("POST", "sessions/probe/search", {"query": "code", "filters": {"nothing": "x"}}),
    ("POST", "sessions/probe/messages/list?size=101", {}),
    ("POST", "sessions/probe/messages/list?size=0", {}),
    ("POST", "sessions/probe/messages/list?page=99", {}),
    ("POST", "sessions/probe/messages/list", {"filters": {"nothing": "x"}}),
    ("POST", "sessions/probe/messages", {"messages": []}),
    ("POST", "sessions/probe/messages", {"messages": [{"content": "x" * 25_001, "peer_id": "ann"}]}),
    ("POST", "sessions/probe/messages", {"messages": [{"content": "x", "peer_id": "not an id"}]}),
    ("POST", "sessions/probe/messages", {"messages": [{"content": "x", "peer_id": "ann", "metadata": 5}]}),
    ("POST", "sessions", {"id": "not an id"}),
    ("POST", "sessions", {}),
    ("PUT", "sessions/probe/messages/nothing", {"metadata": {}}),
    ("POST", "sessions/unknown/messages/list", {}),
    ("POST", "sessions/unknown/search", {"query": "code"}),
    ("GET", "nothing", None),
)
"""Requests that are refused, or that a service might refuse: only their status is kept."""
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    LIVE,
    {"metadata": {"state": "old"}},
    {"metadata": {"number": 3}},
    {"metadata": {"number": "3"}},
    {"metadata": {"state": "*"}},
    {"metadata": {"nothing": "*"}},
    {"metadata": {"state": "live", "number": 1}},
    {"metadata": {"deep": {"a": "b"}}},
)


async def probe(url: str, key: str) -> dict[str, Any]:
    """Ask a server with an empty workspace. Messages are told by their keys."""
    headers = {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=f"{url}/v3/workspaces", headers=headers, timeout=30) as client:
        work = f"/{WORKSPACE}"
        await client.post("", json={"id": WORKSPACE})
        made = await client.post(f"{work}/sessions", json={"id": "probe"})
        for number, content in enumerate(MESSAGES):  # one by one, so that their times differ
            metadata = {"state": "live", "number": number, "deep": {"a": "b", "c": "d"}}
            message = {"content": content, "peer_id": "ann", "metadata": metadata}
            added = await client.post(f"{work}/sessions/probe/messages", json={"messages": [message]})
        last = added.json()[-1]
        marked = await client.put(
            f"{work}/sessions/probe/messages/{last['id']}", json={"metadata": {"state": "old"}}
        )
        found = {}
        for text in QUERIES:
            answer = await client.post(f"{work}/sessions/probe/search", json={"query": text, "filters": LIVE})
            found[text] = _keys(answer.json()) if answer.status_code == 200 else answer.status_code
        listed = []
        for filters in FILTERS:
            body = {"filters": filters}
            answer = await client.post(f"{work}/sessions/probe/messages/list?reverse=true", json=body)
            listed.append(_keys(answer.json()["items"]) if answer.status_code == 200 else answer.status_code)
        odd = [await client.request(method, f"{work}/{path}", json=body) for method, path, body in ODD]
    return {
        "status": [made.status_code, added.status_code, marked.status_code],
        "message": sorted(last),
        "marked": marked.json()["metadata"],
        "search": found,
        "list": listed,
        "odd": [answer.status_code for answer in odd],
    }


def _keys(messages: list[dict[str, Any]]) -> list[str]:
    return [each["content"].partition(":")[0] for each in messages]


if __name__ == "__main__":
    answers = asyncio.run(probe(sys.argv[1], "any"))
    sys.stdout.write(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
