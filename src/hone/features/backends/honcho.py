"""Store memory items in Honcho, hosted or self-hosted, through its SDK. Needs the extra `honcho`.

A memory item is a message in the session `hone-memory-USER`, with key and value in its metadata. Honcho
cannot delete single messages, so replaced and deleted items are marked and no longer returned.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hone.core.backend import KEYS, LIMIT, Availability, Deleted, MemoryItem
from hone.core.clock import Clock
from hone.core.errors import BackendError, Unfit
from hone.features.backends.forms import content_terms, has_form, roots
from hone.stores.question import words

if TYPE_CHECKING:
    from honcho import Honcho, Message, Session

WORKSPACE = "hone"
PATIENCE = 10.0
"""Seconds for one request."""
PAGE = 100
"""How many messages the service returns at once."""
LIVE, OLD, GONE = "live", "old", "deleted"
CONTENT = 20_000
"""The most characters of a message; the full value is in its metadata."""
ALONE = 6
"""How many words of a question to search separately as well."""
UNFIT = frozenset({400, 413, 422})


class HonchoBackend:
    """With an empty `url`: the service's own address, or HONCHO_URL."""

    name = "honcho"

    def __init__(
        self, url: str, key: str, clock: Clock, *, is_cloud: bool, patience: float = PATIENCE
    ) -> None:
        self.is_cloud = is_cloud
        self._patience = patience
        self._url = url
        self._key = key
        self._clock = clock
        self._client: Honcho | None = None
        self._sessions: dict[str, Session] = {}
        self.calls = 0

    async def warm(self) -> None:
        """Import the SDK and create its clients, which takes half a second."""
        await asyncio.to_thread(self._made)
        self._made().aio._get_async_http_client()  # it has no public way to create one, or to close it

    async def available(self) -> Availability:
        async with self._service() as service:
            await self._counted(service.aio.get_metadata())
        return Availability()

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        async with self._session(user_id) as session:
            before = await self._live(session, key)
            now = self._clock.now()
            created = min((_memory(each).created_at for each in before), default=now)
            memory = MemoryItem(key, value, user_id, created, max(created, now), dict(metadata or {}))
            await self._say(session, memory, LIVE)
            await self._retire(session, before)
            return memory

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None:
        """Return the newest message with this key."""
        async with self._session(user_id) as session:
            page = await self._counted(
                session.aio.messages(filters={"metadata": {"key": key}}, size=1, reverse=True)
            )
            found = [each for each in page.items if _is(each, LIVE)]
        return _memory(found[0]) if found else None

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        if dialectic:
            return await self._asked(user_id, text)
        asked = searches(text)
        async with self._session(user_id) as session:
            with each_alone():
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._searched(session, each, limit)) for each in asked]
        found = fuse([task.result() for task in tasks])
        newest = {each.metadata.get("key"): each for each in sorted(found, key=lambda each: each.created_at)}
        kept = {each.id for each in newest.values()}
        return [_memory(each) for each in found if each.id in kept and _is(each, LIVE)][:limit]

    async def _searched(self, session: "Session", asked: "HonchoSearch", limit: int) -> "list[Message]":
        live = {"metadata": {"state": LIVE}}
        call = session.aio.search(asked.text, filters=live, limit=min(limit, PAGE))
        return [each for each in await self._counted(call) if asked.fits(each.content)]

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        keys: dict[str, None] = {}
        async with self._session(user_id) as session:
            live = {"metadata": {"state": LIVE}}
            page = await self._counted(session.aio.messages(filters=live, size=PAGE, reverse=True))
            while page is not None and len(keys) < limit:
                keys.update(dict.fromkeys(_memory(each).key for each in page.items))
                page = await self._counted(page.get_next_page())
        return list(keys)[:limit]

    async def delete(self, user_id: str, key: str) -> Deleted:
        """Store a tombstone: the newest message says that there is nothing."""
        async with self._session(user_id) as session:
            before = await self._live(session, key)
            if not before:
                return Deleted.ABSENT
            now = self._clock.now()
            await self._say(session, MemoryItem(key, "", user_id, now, now), GONE)
            await self._retire(session, before)
        return Deleted.HIDDEN

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aio._get_async_http_client().close()
            self._client._get_http_client().close()

    async def _asked(self, user_id: str, text: str) -> Sequence[MemoryItem]:
        async with self._service() as service:
            peer = await self._counted(service.aio.peer(user_id))
            said = await self._counted(peer.aio.chat(text))
        now = self._clock.now()
        return [MemoryItem("dialectic", str(said), user_id, now, now)] if said else []

    async def _live(self, session: "Session", key: str) -> list["Message"]:
        wanted = {"metadata": {"key": key, "state": LIVE}}
        page = await self._counted(session.aio.messages(filters=wanted, size=PAGE, reverse=True))
        return list(page.items)

    async def _say(self, session: "Session", memory: MemoryItem, state: str) -> None:
        from honcho.api_types import MessageCreateParams

        metadata: dict[str, Any] = {
            "key": memory.key,
            "value": memory.value,
            "state": state,
            "created_at": memory.created_at.isoformat(),
            "updated_at": memory.updated_at.isoformat(),
            "metadata": dict(memory.metadata),
        }
        content = f"{memory.key}: {memory.value}"[:CONTENT] if state == LIVE else f"(forgotten: {memory.key})"
        said = MessageCreateParams(content=content, peer_id=memory.user_id, metadata=metadata)
        await self._counted(session.aio.add_messages(said))

    async def _retire(self, session: "Session", messages: Sequence["Message"]) -> None:
        """Mark old messages, so that one request to the service finds what is current."""
        for each in messages:
            await self._counted(session.aio.update_message(each, {**each.metadata, "state": OLD}))

    async def _counted(self, call: Awaitable[Any]) -> Any:
        self.calls += 1
        return await call

    @asynccontextmanager
    async def _session(self, user_id: str) -> "AsyncIterator[Session]":
        async with self._service() as service:
            if user_id not in self._sessions:
                made = await self._counted(service.aio.session(f"hone-memory-{user_id}"))
                self._sessions[user_id] = made
            yield self._sessions[user_id]

    @asynccontextmanager
    async def _service(self) -> "AsyncIterator[Honcho]":
        """Turn the errors of the service and its SDK into ours."""
        client = self._made()
        from honcho.http.exceptions import HonchoError
        from pydantic import ValidationError

        try:
            yield client
        except ValidationError as error:
            raise BackendError("Honcho answered something that its SDK does not understand.") from error
        except HonchoError as error:
            raise _explained(error) from error

    def _made(self) -> "Honcho":
        if (
            self.is_cloud and not self._key and find_spec("honcho") and is_installed()
        ):  # reported without importing the SDK
            raise BackendError("Honcho in the cloud needs a key: set HONCHO_API_KEY.")
        try:
            from honcho import Honcho
        except ImportError as error:
            raise BackendError("Honcho needs an extra: pip install 'hone-agent[honcho]'") from error
        if self._client is None:
            # Its own retries would delay callers; the outbox retries what must be delivered.
            self._client = Honcho(
                api_key=self._key or None,
                base_url=self._url or None,
                workspace_id=WORKSPACE,
                timeout=self._patience,
                max_retries=0,
            )
        return self._client


def is_installed() -> bool:
    """Tell whether the SDK is installed, by its distribution: another one has a module of the same name."""
    try:
        return bool(version("honcho-ai"))
    except PackageNotFoundError:
        return False


def _explained(error: Any) -> BackendError:
    match error.status:
        case 401 | 403:
            return BackendError("Honcho refuses the key; set HONCHO_API_KEY to one that is valid.")
        case 429:
            return BackendError("Honcho asks for patience (429).")
        case status if status in UNFIT:
            return Unfit(f"Honcho does not take this ({status}).")
        case 0:
            return BackendError(f"Honcho cannot be reached: {error}.")
        case status:
            return BackendError(f"Honcho failed ({status}).")


@contextmanager
def each_alone() -> Iterator[None]:
    """Raise the first error of a task group unchanged."""
    try:
        yield
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


class HonchoSearch(Struct, frozen=True):
    """One request for messages with these words. With a `root`, a message must have a form of it: the service
    also finds `port` inside `portrait`."""

    text: str
    root: str = ""

    def fits(self, content: str) -> bool:
        return not self.root or has_form(content, [self.root])


def searches(text: str) -> list[HonchoSearch]:
    """Return the requests for the service: all words together, then the longest ones alone, without their
    endings. The service takes any sign for a literal search, and finds only messages with all words."""
    together = HonchoSearch(" ".join(words(text)))
    alone = sorted((term.replace(" ", "") for term in content_terms(text)), key=len, reverse=True)[:ALONE]
    return [each for each in dict.fromkeys((together, *map(_alone, alone))) if each.text]


def _alone(term: str) -> HonchoSearch:
    root = next(iter(roots([term])), "")
    doubled = root[-1:] == root[-2:-1]  # running has a different n than run
    return HonchoSearch(term) if not root or doubled else HonchoSearch(root, root)


def fuse(answers: "Sequence[Sequence[Message]]") -> "list[Message]":
    """Return the messages of all answers, best first. Rare matches weigh more than common ones; the first
    answer, to the whole question, counts twice."""
    scores: dict[str, float] = {}
    messages = {message.id: message for answer in answers for message in answer}
    for number, answer in enumerate(answers):
        for rank, message in enumerate(answer):
            weight = 1 if number else 2
            scores[message.id] = scores.get(message.id, 0) + weight / (len(answer) + rank)
    return sorted(messages.values(), key=lambda each: (scores[each.id], each.created_at), reverse=True)


def _is(message: "Message", state: str) -> bool:
    return bool(message.metadata.get("state") == state)


def _memory(message: "Message") -> MemoryItem:
    """Return a memory. The service says whose it is: the peer who wrote it."""
    told = message.metadata
    try:
        times = [datetime.fromisoformat(told[name]) for name in ("created_at", "updated_at")]
        return MemoryItem(told["key"], told["value"], message.peer_id, times[0], times[1], told["metadata"])
    except (KeyError, TypeError, ValueError) as error:
        raise BackendError("Honcho gave back a message that is no memo of ours.") from error
