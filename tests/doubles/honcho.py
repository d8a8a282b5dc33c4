"""Honcho's HTTP interface (v3) as far as its official SDK calls it for memos, on loopback, in memory.

What it answers follows the service: get-or-create for workspaces, peers and sessions, messages that can be
added and marked but not taken out, filters on metadata by containment with `*` for anything, pages of at most
100, bearer keys, and 422 for a body that does not fit.
"""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from hone.models.fake_provider.serving import Caller, HttpRequest
from tests.doubles.honcho_search import score

ID = re.compile(r"[A-Za-z0-9_-]{1,512}")
LONGEST = 25_000
START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "a-valid-key"


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


class Wrong(Exception):
    """Ends a request with this status and detail."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass
class Workspace:
    made: str
    metadata: dict[str, Any] = field(default_factory=dict)
    peers: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


@dataclass
class HonchoDouble:
    """`faults` are answered in place of the next requests, one each; with `hung` nothing is answered."""

    key: str = KEY
    faults: list[Answer] = field(default_factory=list)
    hung: bool = False
    dialectic: str = "The user likes short answers."
    url: str = ""
    seen: list[HttpRequest] = field(default_factory=list)
    lying: Callable[[Any], Any] | None = None
    workspaces: dict[str, Workspace] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ticks = count()
        self._names = count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(Caller(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, caller: Caller) -> None:
        try:
            with suppress(ConnectionError):
                while request := await caller.hear():
                    self.seen.append(request)
                    if self.hung:
                        await caller.gone()
                        return
                    await caller.send(_wire(self._answer(request)))
        finally:
            caller.abandon()

    def _answer(self, request: HttpRequest) -> Answer:
        if self.faults:
            return self.faults.pop(0)
        try:
            if request.headers.get("authorization") != f"Bearer {self.key}":
                raise Wrong(401, "Invalid authentication credentials")
            answer = self._route(request)
        except Wrong as wrong:
            return Answer(wrong.status, {"detail": wrong.detail})
        return Answer(answer.status, self.lying(answer.body)) if self.lying else answer

    def _route(self, request: HttpRequest) -> Answer:
        address = urlsplit(request.path)
        asked = {name: values[-1] for name, values in parse_qs(address.query).items()}
        body = _json(request.body)
        match request.method, *address.path.strip("/").split("/"):
            case "POST", "v3", "workspaces":
                return Answer(201, self._workspace(_id(body)))
            case "POST", "v3", "workspaces", work, "peers":
                return Answer(201, self._made(self._known(work).peers, work, _id(body)))
            case "POST", "v3", "workspaces", work, "sessions":
                made = self._made(self._known(work).sessions, work, _id(body))
                return Answer(201, {**made, "is_active": True})
            case "POST", "v3", "workspaces", work, "sessions", session, "messages":
                return Answer(201, self._add(self._known(work), work, session, body))
            case "POST", "v3", "workspaces", work, "sessions", session, "messages", "list":
                return Answer(200, self._list(self._known(work), session, body, asked))
            case "PUT", "v3", "workspaces", work, "sessions", session, "messages", name:
                return Answer(200, self._update(self._known(work), session, name, body))
            case "POST", "v3", "workspaces", work, "sessions", session, "search":
                return Answer(200, self._search(self._known(work), session, body))
            case "POST", "v3", "workspaces", work, "peers", peer, "chat":
                self._known(work).peers[_named(peer)]
                _text(body, "query", 10_000)
                return Answer(200, {"content": self.dialectic})
        raise Wrong(404, "Not Found")

    def _now(self) -> str:
        """A clock of its own, that never stands still."""
        return (START + timedelta(milliseconds=next(self._ticks))).isoformat()

    def _known(self, name: str) -> Workspace:
        if name not in self.workspaces:
            raise Wrong(404, f"Workspace {name} not found")
        return self.workspaces[name]

    def _workspace(self, name: str) -> dict[str, Any]:
        space = self.workspaces.setdefault(name, Workspace(self._now()))
        return {"id": name, "metadata": space.metadata, "configuration": {}, "created_at": space.made}

    def _made(self, known: dict[str, str], work: str, name: str) -> dict[str, Any]:
        made = known.setdefault(name, self._now())
        return {"id": name, "workspace_id": work, "metadata": {}, "configuration": {}, "created_at": made}

    def _add(self, space: Workspace, work: str, session: str, body: Any) -> list[dict[str, Any]]:
        wanted = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(wanted, list) or not 1 <= len(wanted) <= 100:
            raise Wrong(422, [{"loc": ["body", "messages"], "msg": "List should have 1 to 100 items"}])
        added = []
        for each in wanted:
            content, peer = _text(each, "content", LONGEST), _named(_text(each, "peer_id", 512))
            metadata = each.get("metadata") or {}
            if not isinstance(metadata, dict):
                raise Wrong(422, [{"loc": ["body", "metadata"], "msg": "Input should be an object"}])
            space.peers.setdefault(peer, self._now())
            added.append(
                {
                    "id": f"message-{next(self._names)}",
                    "content": content,
                    "peer_id": peer,
                    "session_id": session,
                    "workspace_id": work,
                    "metadata": metadata,
                    "created_at": each.get("created_at") or self._now(),
                    "token_count": len(content.split()),
                }
            )
        space.sessions.setdefault(session, self._now())
        space.messages.setdefault(session, []).extend(added)
        return added

    def _list(self, space: Workspace, session: str, body: Any, asked: dict[str, str]) -> dict[str, Any]:
        found = _chosen(space.messages.get(session, []), (body or {}).get("filters"))
        if asked.get("reverse") == "true":
            found.reverse()
        page, size = int(asked.get("page", "1")), int(asked.get("size", "50"))
        if not (page >= 1 and 1 <= size <= 100):
            raise Wrong(422, [{"loc": ["query", "size"], "msg": "Input should be 1 to 100"}])
        part = found[(page - 1) * size : page * size]
        return {
            "items": part,
            "total": len(found),
            "page": page,
            "size": size,
            "pages": -(-len(found) // size),
        }

    def _update(self, space: Workspace, session: str, name: str, body: Any) -> dict[str, Any]:
        for message in space.messages.get(session, []):
            if message["id"] == name:
                message["metadata"] = body.get("metadata") or {}
                return message
        raise Wrong(404, f"Message with ID {name} not found")

    def _search(self, space: Workspace, session: str, body: Any) -> list[dict[str, Any]]:
        text, limit = _text(body, "query", 10_000), body.get("limit", 10)
        if not isinstance(limit, int) or not 1 <= limit <= 100:
            raise Wrong(422, [{"loc": ["body", "limit"], "msg": "Input should be 1 to 100"}])
        found = _chosen(space.messages.get(session, []), body.get("filters"))
        scored = [(fit, each) for each in found if (fit := score(text, each["content"])) is not None]
        best = sorted(scored, key=lambda pair: (pair[0], pair[1]["created_at"]), reverse=True)
        return [each for _, each in best][:limit]


def _chosen(messages: list[dict[str, Any]], filters: Any) -> list[dict[str, Any]]:
    wanted = filters or {}
    unknown = set(wanted) - {"metadata", "peer_id", "session_id", "created_at"}
    if unknown or not isinstance(wanted.get("metadata", {}), dict):
        raise Wrong(422, f"Invalid filter: {sorted(unknown)}")
    metadata = wanted.get("metadata", {})
    return [each for each in messages if _contains(each["metadata"], metadata)]


def _contains(held: Any, wanted: Any) -> bool:
    """As PostgreSQL compares JSON objects: what is wanted is a part of what is held. An asterisk asks for
    nothing, not even that there is a value."""
    if not isinstance(wanted, dict):
        return bool(wanted == "*" or (type(held) is type(wanted) and held == wanted))
    held = held if isinstance(held, dict) else {}
    return all(_contains(held.get(name), value) for name, value in wanted.items())


def _json(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        raise Wrong(422, [{"loc": ["body"], "msg": "JSON decode error"}]) from None


def _id(body: Any) -> str:
    return _named(_text(body, "id", 512))


def _named(name: str) -> str:
    if not ID.fullmatch(name):
        raise Wrong(422, [{"loc": ["id"], "msg": "String should match pattern '^[A-Za-z0-9_-]+$'"}])
    return name


def _text(body: Any, name: str, longest: int) -> str:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str) or len(value) > longest:
        raise Wrong(422, [{"loc": ["body", name], "msg": f"a string of at most {longest} characters"}])
    return value


def _wire(answer: Answer) -> bytes:
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    lines = [
        f"HTTP/1.1 {answer.status} -",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
    ]
    return "\r\n".join((*lines, "", "")).encode() + body
