"""The memory backend of a home: which one it is, how it is made, and whose memories it holds."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from hone.core.backend import KEYS, LIMIT, Availability, Backend, Deleted, MemoryItem
from hone.core.clock import Clock
from hone.core.errors import BackendError, SettingsError
from hone.core.loading import import_object
from hone.core.messages import digest
from hone.core.secrets import mask_password
from hone.features.backends.choice import (
    HONCHO,
    KEY,
    NAMES,
    NULL,
    POSTGRES,
    SQLITE,
    BackendChoice,
    choose,
    is_remote,
    must_ask,
)
from hone.features.backends.choice import user_id as fit
from hone.features.backends.guarded import GuardedBackend

FILE = "memories.db"
EPOCH = datetime.fromtimestamp(0, UTC)
CLASSES = {
    SQLITE: "hone.features.backends.sqlite:SqliteBackend",
    POSTGRES: "hone.features.backends.postgres:PostgresBackend",
    HONCHO: "hone.features.backends.honcho:HonchoBackend",
}
INSTALLED = "hone.features.backends.honcho:is_installed"
"""Loaded by name: a process needs one of them at most."""
PROBE = 2.0
"""Seconds for Honcho to answer, where it is not even asked for."""

Makers = Mapping[str, Callable[[], Backend]]
"""Of plugins, by name."""


class BackendOptions(Struct, frozen=True):
    """What the settings say. `backend` empty: whatever there is; `owner` empty: who is logged in."""

    backend: str = ""
    url: str = ""
    owner: str = ""
    deadline: float = 0.3


class NullBackend:
    """Keeps nothing, at no cost."""

    name = "null"
    is_cloud = False

    async def available(self) -> Availability:
        return Availability()

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        """Return the item and forget it."""
        return MemoryItem(key, value, user_id, EPOCH, EPOCH, dict(metadata or {}))

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None:
        return None

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        return ()

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        return ()

    async def delete(self, user_id: str, key: str) -> Deleted:
        return Deleted.ABSENT

    async def close(self) -> None:
        """Do nothing: nothing was opened."""


class CurrentBackend:
    """Backends are made when they are asked for, and once. `say` takes a sentence for the owner."""

    def __init__(
        self,
        home: Path,
        clock: Clock,
        wish: BackendOptions,
        makers: Makers,
        say: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.wish = wish
        self.user_id = fit(wish.owner or environ.get("LOGNAME") or environ.get("USER") or "")
        self.choice: BackendChoice | None = None
        self._home = home
        self._clock = clock
        self._makers = makers
        self._say = say
        self._environ = environ
        self._made: dict[str, GuardedBackend] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return (*NAMES, *sorted(self._makers.keys() - set(NAMES)))

    @property
    def used(self) -> Backend | None:
        """The one that was chosen, unless it keeps nothing."""
        return self.make(self.choice.name) if self.choice and self.choice.name != NULL else None

    @property
    def address(self) -> str:
        """Tells one place from another, and nothing about it."""
        name = self.choice.name if self.choice else NULL
        return f"{name}-{digest(f'{self.url(name)} {self.user_id}'.encode())[:16]}"

    def url(self, name: str) -> str:
        """Where a backend is, as far as that is set: an address of the web is Honcho's, any other a
        database's."""
        web = self.wish.url.startswith(("http://", "https://"))
        if self.wish.url and name == (HONCHO if web else POSTGRES):
            return self.wish.url
        return self._environ.get("HONCHO_URL", "") if name == HONCHO else ""

    async def choose(self) -> BackendChoice:
        """Once; the answer holds as long as this object does."""
        if self.choice is None:
            wanted, key = self.wish.backend, bool(self._environ.get(KEY))
            installed = key and not wanted and import_object(INSTALLED)()
            asked = must_ask(wanted, key=key, installed=installed)
            answers = asked and await self._answers()
            self.choice = choose(wanted, self.names, key=key, installed=installed, answers=answers)
            await self._warm(self.choice.name)
            if answers:
                away = ": they leave this machine" if self.make(HONCHO).is_cloud else ""
                self._say(
                    f"Memories are kept with Honcho, because {KEY} is set{away}. "
                    'To prevent that, set backend = "null" under [memory] in hone.toml.'
                )
        return self.choice

    def make(self, name: str) -> GuardedBackend:
        """Raises SettingsError for a name that nobody knows."""
        if name not in self._made:
            self._made[name] = GuardedBackend(self._new(name))
        return self._made[name]

    async def close(self) -> None:
        for backend in self._made.values():
            with suppress(BackendError):  # what cannot be closed is gone
                await backend.close()

    async def _warm(self, name: str) -> None:
        await self.make(name).warm()

    async def _answers(self) -> bool:
        await self._warm(HONCHO)
        try:
            async with self._clock.timeout(PROBE):
                return bool(await self.make(HONCHO).available())
        except TimeoutError:
            return False

    def _new(self, name: str) -> Backend:
        if name in self._makers and name not in NAMES:
            return self._makers[name]()
        if name == NULL:
            return NullBackend()
        if name not in NAMES:
            raise SettingsError(f"There is no memory backend {name!r}; there are {', '.join(self.names)}.")
        url = self.url(name)
        made: Backend
        match name:
            case "sqlite":
                made = import_object(CLASSES[name])(self._home / FILE, self._clock)
            case "postgres":
                made = import_object(CLASSES[name])(url, self._clock, is_cloud=is_remote(url, self._environ))
            case "honcho":
                remote = not url or is_remote(url, {})
                made = import_object(CLASSES[name])(
                    url, self._environ.get(KEY, ""), self._clock, is_cloud=remote
                )
        return made

    def location(self, name: str) -> str:
        """Where what is stored lies, without names and keys."""
        match name:
            case "null":
                return "nowhere"
            case "sqlite":
                return str(self._home / FILE)
        place = "another machine" if self.make(name).is_cloud else "this machine"
        return f"{place} ({mask_password(self.url(name)) or 'its default address'})"

    def needs_key(self, name: str) -> bool:
        return name == HONCHO and self.make(name).is_cloud
