"""Create the model for a name, from the settings and the environment."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.agent import Agent, Helper
from hone.core.clock import Clock
from hone.core.loading import import_object
from hone.core.model import Connection, Model
from hone.core.monitor import UNMONITORED, Monitors
from hone.core.part import Connect
from hone.core.value import replace
from hone.models.cacherules import UNKNOWN, CacheRule
from hone.models.dialects import takes_schemas
from hone.models.http import LOCAL, REMOTE, Http, ReplyBounds
from hone.models.providers import KNOWN, Provider, address, choose, connect, is_local, settle
from hone.models.wrappers import (
    PRICES,
    ModelTerms,
    Monitored,
    Patience,
    Price,
    Priced,
    Retrying,
    Windowed,
    price_by,
)
from hone.settings import Settings

if TYPE_CHECKING:
    from hone.stores.keys import ProviderKeys

MILLION = 1_000_000
KEYS_FILE = "keys.json"
"""Where keys are stored in a home. The code that reads it is imported if it exists."""
LARGE, SMALL = 200_000, 32_000
"""In tokens. Many models accept more, at a price that grows with every call."""

Connector = Callable[[str], Connect | None]
"""Returns how to reach a provider of a plugin or a feature; None: it belongs to neither."""


def list_providers(settings: Settings) -> tuple[Provider, ...]:
    """Return the endpoints of the settings, then the known providers. The first of a name counts."""
    own = (
        Provider(name, each.url, each.format, each.key, returns=each.returns, local=each.local)
        for name, each in settings.providers.items()
    )
    return (*own, *KNOWN)


class KeyedEnvironment(Mapping[str, str]):
    """The environment, and then the keys that are stored in a home. A variable that is set wins."""

    def __init__(
        self, home: Path | None, settings: Settings, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._home = home
        self._environ = dict(environ)
        self._names = frozenset(each.key for each in list_providers(settings) if each.key)

    def __getitem__(self, name: str) -> str:
        found = self._environ.get(name) or self.stored(name)
        if not found:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)

    def stored(self, name: str) -> str:
        """Return the stored key of a provider, or nothing. Raises StoreError if it cannot be read."""
        keys = open_keys(self._home) if self._home and name in self._names else None
        return keys.get(name) if keys else ""

    def describe(self, name: str) -> str:
        """Return whether a key is set, stored or missing."""
        return "set" if self._environ.get(name) else "stored" if self.stored(name) else "not set"


def open_keys(home: Path) -> "ProviderKeys | None":
    """Return the keys that are stored in a home, or None if there are none."""
    return _keys_of(home) if os.path.lexists(_keys_path(home)) else None


@cache
def _keys_path(home: Path) -> str:
    """Join the path once: each result of a tool asks for it."""
    return str(home / KEYS_FILE)


@cache
def _keys_of(home: Path) -> "ProviderKeys":
    """Cache keys from the keyring, which may ask the owner each time."""
    keys: ProviderKeys = import_object("hone.stores.keys:ProviderKeys")(home)
    return keys


class ModelFactory:
    """`is_local` tells whether the owner's own server is in use, which serves one request at a time. `home`
    is where keys may be stored; `monitors` hear of each call."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        model: str | Model,
        connector: Connector,
        home: Path | None = None,
        monitors: Monitors = UNMONITORED,
    ) -> None:
        self.http = Http(clock, bound(settings, REMOTE), certificates=settings.certificates)
        self.is_local = False
        self._settings = settings
        self._clock = clock
        self._model = model or settings.model
        self._connector = connector
        self._environ = KeyedEnvironment(home, settings)
        self._monitors = monitors

    async def close(self) -> None:
        await self.http.close()

    async def find(self, wanted: str) -> Connection:
        """Connect to a model by name, or return the given object."""
        found = await self._find(wanted)
        self.is_local = self.is_local or found.local
        if self._monitors:
            found = replace(found, model=Monitored(found.model, self._monitors))
        return found if found.window else replace(found, window=self.window(found.name))

    async def hire(self, agent: Agent, helper: Helper) -> Agent:
        """Return the agent with the rights of a helper and, if it names one, its model. Raises SettingsError
        for a model that cannot be used."""
        narrow = agent.narrowed(helper.permit)
        if not helper.model:
            return narrow
        found = await self.find(helper.model)
        room = Windowed(found.model, found.window, self._settings.compact_at, schemas=found.schemas)
        return replace(narrow, model=room, prefix=replace(narrow.prefix, model=found.name))

    async def _find(self, wanted: str) -> Connection:
        if not isinstance(self._model, str):
            return Connection(self._model, f"custom/{type(self._model).__name__.lower()}")
        wanted = wanted or self._model
        provider, _, rest = wanted.partition("/")
        if connect := self._connector(provider):
            return replace(connect(rest), name=wanted)
        chosen, name = await choose(wanted, list_providers(self._settings), self._environ, self.http)
        local = is_local(chosen, self._environ)
        window, schemas = self.window(name, local=local), not local and self._takes_schemas(chosen, name)
        return Connection(self._adapter(chosen, name), name, window, local=local, schemas=schemas)

    def _takes_schemas(self, provider: Provider, name: str) -> bool:
        url = address(provider, self._environ)
        return takes_schemas(provider.name, url, name.partition("/")[2], settle(provider, url, name).format)

    def window(self, name: str, *, local: bool = False) -> int:
        """Return how many tokens a conversation with a model may take."""
        own = self._settings.models.get(name)
        return (own.window if own else 0) or self._settings.window or (SMALL if local else LARGE)

    def price(self, name: str) -> Price | None:
        """Return a model's price: as set in hone.toml, else as published; None if neither is known."""
        own = self._settings.prices.get(name)
        if own is None:
            return PRICES.get(name)
        found = price_by(self.cache_rule(name), own.input, own.output)
        cached = found.cached if own.cached is None else own.cached
        return replace(found, cached=cached, written=found.written if own.written is None else own.written)

    def cache_rule(self, name: str) -> CacheRule:
        """Return how a model's prompts are cached."""
        provider, _, model = name.partition("/")
        known = next((each for each in list_providers(self._settings) if each.name == provider), None)
        if known is None:
            return UNKNOWN
        local = is_local(known, self._environ)
        return known.with_rule(model, self._settings.cache, local=local).cache

    def terms(self, name: str) -> ModelTerms:
        """Return how a model's prompts are cached, and its price."""
        return ModelTerms(self.cache_rule(name), self.price(name))

    def patient(self, model: Model, price: Price | None) -> Model:
        """Wrap a model so that its calls are priced and retried as the settings say."""
        return Retrying(Priced(model, price), self._clock, Patience(tries=self._settings.tries))

    def _adapter(self, provider: Provider, name: str) -> Model:
        ruled = replace(provider, cache=self.cache_rule(name))
        http = self.http.within(bound(self._settings, LOCAL if is_local(provider, self._environ) else REMOTE))
        adapter = connect(ruled, self._environ, http, self._clock, name)
        return self.patient(adapter, self.price(name))


def bound(settings: Settings, default: ReplyBounds) -> ReplyBounds:
    """Return the limits of a reply: those in the settings, or the defaults."""
    own = settings.bounds
    return ReplyBounds(
        connect=own.connect or default.connect,
        first_byte=settings.first_byte or default.first_byte,
        first_content=own.first_content or default.first_content,
        silence=own.silence or default.silence,
        reply=own.reply or default.reply,
        size=int(own.size * MILLION) or default.size,
    )
