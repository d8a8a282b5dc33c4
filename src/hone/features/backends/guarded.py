"""Wrap a memory backend: normalize its input, check its output, and convert its errors to BackendError."""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from hone.core.backend import KEYS, LIMIT, Availability, Backend, Deleted, MemoryItem
from hone.core.errors import BackendError, HoneError, Unfit
from hone.core.messages import sound
from hone.core.secrets import conceal, redact
from hone.core.visible import visible

LONGEST_KEY, LONGEST = 200, 20_000
"""The most characters of a key and of a value."""
SHORTEST = 4
"""The fewest characters of a password to remove from errors; a shorter one may be part of any word."""


class GuardedBackend:
    """The same backend, with its promises enforced. A backend is arbitrary code or a remote service: another
    user's memory in an answer is its error, and so is anything that is not a memory item."""

    def __init__(self, backend: Backend, secrets: Collection[str] = ()) -> None:
        """`secrets` are its key and password, which no error may show."""
        self._backend = backend
        self._secrets = secrets
        self.name = backend.name
        self.is_cloud = backend.is_cloud

    @property
    def calls(self) -> int:
        """The number of requests to a server so far, if the backend counts them."""
        return int(getattr(self._backend, "calls", 0))

    async def warm(self) -> None:
        """Do what takes time at the first use before somebody waits for it. A failure is reported at that
        use."""
        if warm := getattr(self._backend, "warm", None):
            with suppress(BackendError):
                await self._asked(warm())

    async def available(self) -> Availability:
        """Tell whether it can be used. A backend may also say no by raising."""
        try:
            found = await self._asked(self._backend.available())
        except BackendError as error:
            return Availability(str(error))
        if isinstance(found, Availability):
            return Availability(redact(self._clear(found.why)))
        return Availability("" if found is True else f"The memory backend {self.name} cannot be used.")

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        value = checked_value(value)
        told = {sound(name): visible(sound(each)) for name, each in (metadata or {}).items()}
        return self._checked(
            await self._asked(self._backend.store(user_id, named(key), value, told)), user_id
        )

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None:
        found = await self._asked(self._backend.retrieve(user_id, named(key)))
        if found is None:
            return None
        memory = self._checked(found, user_id)
        if memory.key != named(key):
            raise BackendError(self._lie("another memo than the one that was asked for"))
        return memory

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        text = visible(sound(text)).strip()
        if not text or limit < 1:
            return ()
        asked = self._backend.query(user_id, text, limit, dialectic=dialectic)
        return [self._checked(each, user_id) for each in self._several(await self._asked(asked))[:limit]]

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        if limit < 1:
            return ()
        keys = self._several(await self._asked(self._backend.list_keys(user_id, limit)))[:limit]
        texts = [visible(sound(key)) for key in keys if isinstance(key, str)]
        if len(texts) < len(keys):
            raise BackendError(self._lie("keys that are no text"))
        return texts

    async def delete(self, user_id: str, key: str) -> Deleted:
        done = await self._asked(self._backend.delete(user_id, named(key)))
        if not isinstance(done, Deleted):
            raise BackendError(self._lie("no word on what became of the memo"))
        return done

    async def close(self) -> None:
        await self._asked(self._backend.close())

    async def _asked(self, answer: Awaitable[object]) -> object:
        try:
            return await answer
        except BackendError as error:
            raise self._concealed(error) from None
        except HoneError as error:
            raise self._concealed(error) from error
        except Exception as error:  # the wall: a plugin or an SDK may raise anything
            raise BackendError(
                f"The memory backend {self.name} failed with {type(error).__name__}."
            ) from error

    def _concealed(self, error: HoneError) -> BackendError:
        """Remove secrets. All text of a backend that goes into an error passes through here."""
        kind = Unfit if isinstance(error, Unfit) else BackendError
        return kind(self._clear(str(error)))

    def _clear(self, text: str) -> str:
        return conceal(text, self._secrets, "password", SHORTEST)

    def _several(self, found: object) -> list[object]:
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise BackendError(self._lie("no list"))
        return list(found)

    def _checked(self, found: object, user_id: str) -> MemoryItem:
        if not isinstance(found, MemoryItem) or not _is_sound(found):
            raise BackendError(self._lie("something that is no memo"))
        if found.user_id != user_id:
            raise BackendError(self._lie("what belongs to another user"))
        metadata = {visible(name): visible(each) for name, each in found.metadata.items()}
        return MemoryItem(
            visible(sound(found.key)),
            visible(sound(found.value)),
            user_id,
            found.created_at,
            found.updated_at,
            metadata,
        )

    def _lie(self, what: str) -> str:
        return f"The memory backend {self.name} gave back {what}; its answer was dropped."


def named(key: str) -> str:
    """Return a key as it is stored. Raises Unfit."""
    key = visible(sound(key)).strip()
    # Some services treat a lone asterisk as a wildcard.
    if not 1 <= len(key) <= LONGEST_KEY or "\n" in key or "\t" in key or key == "*":
        raise Unfit(f"A key is one line of 1 to {LONGEST_KEY} characters, such as editor or deploy/host.")
    return key


def checked_value(value: str) -> str:
    """Return a value as it is stored. Raises Unfit."""
    value = visible(sound(value))
    if not value.strip() or len(value) > LONGEST:
        raise Unfit(f"A value has 1 to {LONGEST:,} characters; this one has {len(value):,}.")
    return value


def _is_sound(memory: MemoryItem) -> bool:
    told: object = memory.metadata
    if not isinstance(told, Mapping):
        return False
    texts: tuple[object, ...] = (memory.key, memory.value, memory.user_id, *told.keys(), *told.values())
    times: tuple[object, ...] = (memory.created_at, memory.updated_at)
    dated = all(isinstance(each, datetime) and each.tzinfo for each in times)
    return all(isinstance(each, str) for each in texts) and dated
