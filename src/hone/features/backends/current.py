"""Select and create the memory backend of a home, and name the user whose memories it holds."""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from hone.core.backend import KEYS, LIMIT, Availability, Backend, Deleted, MemoryItem
from hone.core.clock import Clock
from hone.core.errors import BackendError, SettingsError
from hone.core.loading import import_object
from hone.core.messages import digest
from hone.core.regex import regex
from hone.core.secrets import mask_password, passwords
from hone.features.backends.guarded import GuardedBackend
from hone.settings.sections import HONCHO_KEY as KEY
from hone.settings.sections import Memory

NULL, SQLITE, POSTGRES, HONCHO = "null", "sqlite", "postgres", "honcho"
NAMES = (NULL, SQLITE, POSTGRES, HONCHO)
_HERE = regex(r"localhost|127(?:\.\d{1,3}){3}|\[?::1\]?|", re.IGNORECASE)
_UNFIT = regex(r"[^A-Za-z0-9_-]+")
FILE = "memories.db"
EPOCH = datetime.fromtimestamp(0, UTC)
CLASSES = {
    SQLITE: "hone.features.backends.sqlite:SqliteBackend",
    POSTGRES: "hone.features.backends.postgres:PostgresBackend",
    HONCHO: "hone.features.backends.honcho:HonchoBackend",
}
INSTALLED = "hone.features.backends.honcho:is_installed"
"""Imported by name: a process needs at most one of them."""
PROBE = 2.0
"""Seconds that Honcho gets to answer when nobody has asked for it."""

Makers = Mapping[str, Callable[[], Backend]]
"""Of plugins, by name."""


class BackendChoice(Struct, frozen=True):
    """`why` is the deciding fact, in a few words."""

    name: str
    why: str


def choose(
    wanted: str, known: Collection[str], *, key: bool, installed: bool, answers: bool
) -> BackendChoice:
    """Choose a backend. Settings always override the environment. Without settings: Honcho if its key is
    there, its SDK is installed and it answers; else none. Raises SettingsError."""
    if wanted:
        if wanted not in known:
            raise SettingsError(f"memory.backend is {wanted!r}; there are {', '.join(sorted(known))}.")
        return BackendChoice(wanted, "it is set")
    if not key:
        return BackendChoice(NULL, "nothing is set")
    if not installed:
        return BackendChoice(NULL, f"nothing is set; {KEY} is there, but not the SDK")
    if not answers:
        return BackendChoice(NULL, f"nothing is set; {KEY} is there, but Honcho does not answer")
    return BackendChoice(HONCHO, f"nothing is set, and {KEY} is there")


def must_ask(wanted: str, *, key: bool, installed: bool) -> bool:
    """Tell whether the choice depends on Honcho's answer."""
    return not wanted and key and installed


def is_remote(url: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a database or a service is on another machine. In doubt the answer is yes."""
    if "://" in url:
        try:
            address = urlsplit(url)
            asked = re.findall(r"(?:^|&)host(?:addr)?=([^&]*)", address.query)
            hosts = asked or [part.rpartition("@")[2] for part in address.netloc.split(",")]
            hosts = [re.sub(r":\d*$", "", host) for host in hosts]
        except ValueError:
            return True
    else:
        hosts = re.findall(r"\bhost(?:addr)?\s*=\s*'?([^\s']*)", url)
    named = [host.replace("%2F", "/") for host in hosts if host] or [environ.get("PGHOST", "")]
    return not all(
        host.startswith("/") or _HERE.fullmatch(host) for each in named for host in each.split(",")
    )


def user_id(name: str) -> str:
    """Return a user name that every backend accepts."""
    return _UNFIT.sub("-", name).strip("-")[:64] or "owner"


class NullBackend:
    """Stores nothing, at no cost."""

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
    """The backend in use. Backends are made on demand, and once. `say` takes a sentence for the owner."""

    def __init__(
        self, home: Path, clock: Clock, wish: Memory, makers: Makers, say: Callable[[str], None]
    ) -> None:
        self.wish = wish
        self._environ = environ = dict(os.environ)
        self.user_id = user_id(wish.owner or environ.get("LOGNAME") or environ.get("USER") or "")
        self.choice: BackendChoice | None = None
        self._home = home
        self._clock = clock
        self._makers = makers
        self._say = say
        self._made: dict[str, GuardedBackend] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return (*NAMES, *sorted(self._makers.keys() - set(NAMES)))

    @property
    def used(self) -> Backend | None:
        """Return the chosen backend, unless it stores nothing."""
        return self.make(self.choice.name) if self.choice and self.choice.name != NULL else None

    @property
    def address(self) -> str:
        """Return a value that distinguishes one place from another, and reveals nothing about it."""
        name = self.choice.name if self.choice else NULL
        return f"{name}-{digest(f'{self.url(name)} {self.user_id}'.encode())[:16]}"

    def url(self, name: str) -> str:
        """Return the address of a backend, as far as it is set: a web address is Honcho's, any other a
        database's."""
        web = self.wish.url.startswith(("http://", "https://"))
        if self.wish.url and name == (HONCHO if web else POSTGRES):
            return self.wish.url
        return self._environ.get("HONCHO_URL", "") if name == HONCHO else ""

    async def choose(self) -> BackendChoice:
        """Choose once. The result is kept for the lifetime of this object."""
        if self.choice is None:
            wanted, key = self.wish.backend, bool(self._environ.get(KEY))
            installed = key and not wanted and import_object(INSTALLED)()
            answers = must_ask(wanted, key=key, installed=installed) and await self._answers()
            self.choice = choose(wanted, self.names, key=key, installed=installed, answers=answers)
            await self.make(self.choice.name).warm()
            if answers:
                away = ": they leave this machine" if self.make(HONCHO).is_cloud else ""
                self._say(
                    f"Memories are kept with Honcho, because {KEY} is set{away}. "
                    'To prevent that, set backend = "null" under [memory] in hone.toml.'
                )
        return self.choice

    def make(self, name: str) -> GuardedBackend:
        """Make a backend. Raises SettingsError for an unknown name."""
        if name not in self._made:
            secrets = (self._environ.get(KEY, ""), *passwords(self.url(name)))
            self._made[name] = GuardedBackend(self._new(name), secrets)
        return self._made[name]

    async def close(self) -> None:
        for backend in self._made.values():
            with suppress(BackendError):  # a backend that cannot be closed is gone
                await backend.close()

    async def _answers(self) -> bool:
        await self.make(HONCHO).warm()
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
        """Return where data is stored, without names and keys."""
        match name:
            case "null":
                return "nowhere"
            case "sqlite":
                return str(self._home / FILE)
        place = "another machine" if self.make(name).is_cloud else "this machine"
        return f"{place} ({mask_password(self.url(name)) or 'its default address'})"

    def needs_key(self, name: str) -> bool:
        return name == HONCHO and self.make(name).is_cloud
