"""The memory backend of a home: which one it is, how it is made, and whose memories it holds."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from hone.core.backend import Backend
from hone.core.clock import Clock
from hone.core.errors import BackendError, SettingsError, StoreError
from hone.core.messages import digest
from hone.core.value import dataclass
from hone.features.backends.choice import (
    HONCHO,
    KEY,
    NAMES,
    NULL,
    POSTGRES,
    BackendChoice,
    choose,
    is_remote,
    must_ask,
    shown,
)
from hone.features.backends.choice import user_id as fit
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.null import NullBackend
from hone.features.backends.wording import Wording

FILE = "memories.db"
PROBE = 2.0
"""Seconds for Honcho to answer, where it is not even asked for."""

Makers = Mapping[str, Callable[[], Backend]]
"""Of plugins, by name."""


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What the settings say. `backend` empty: whatever there is; `owner` empty: who is logged in."""

    backend: str = ""
    url: str = ""
    owner: str = ""
    deadline: float = 0.3


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
            installed = key and not wanted and _installed()
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
        url = self.url(name)
        match name:
            case "null":
                return NullBackend()
            case "sqlite":
                return self._file()
            case "postgres":
                from hone.features.backends.postgres import PostgresBackend

                remote = is_remote(url, self._environ)
                return PostgresBackend(url, _wording(), self._clock, is_cloud=remote)
            case "honcho":
                from hone.features.backends.honcho import HonchoBackend

                remote = not url or is_remote(url, {})
                key = self._environ.get(KEY, "")
                return HonchoBackend(url, key, self._clock, is_cloud=remote)
        raise SettingsError(f"There is no memory backend {name!r}; there are {', '.join(self.names)}.")

    def _file(self) -> Backend:
        from hone.features.backends.sqlite import SCHEMA, SqliteBackend
        from hone.stores.database import Database

        def opened(path: Path) -> Database:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{path.parent} cannot be made: {error.strerror}.") from error
            return Database.open(path, scripts=SCHEMA)

        return SqliteBackend(self._home / FILE, opened, _wording(), self._clock)

    def location(self, name: str) -> str:
        """Where what is stored lies, without names and keys."""
        match name:
            case "null":
                return "nowhere"
            case "sqlite":
                return str(self._home / FILE)
        place = "another machine" if self.make(name).is_cloud else "this machine"
        return f"{place} ({shown(self.url(name)) or 'its default address'})"

    def needs_key(self, name: str) -> bool:
        return name == HONCHO and self.make(name).is_cloud


def _wording() -> Wording:
    from hone.stores import words

    return Wording(words.spaced, words.terms)


def _installed() -> bool:
    """By the name of the distribution: another one has a module of the same name."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return bool(version("honcho-ai"))
    except PackageNotFoundError:
        return False
