"""From a name to a model that answers: settings and the environment in, adapters out."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.clock import Clock
from hone.core.model import Model
from hone.core.value import dataclass
from hone.models.http import Http
from hone.models.priced import FREE, PRICES, Price, Priced
from hone.models.providers import KNOWN, Provider, choose, connect
from hone.models.retrying import Patience, Retrying
from hone.settings import Settings

if TYPE_CHECKING:
    from hone.features.local_models.local import Local

LOCAL = "local"
"""The provider that runs on this machine, inside Hone."""
LARGE, SMALL = 200_000, 32_000
"""Tokens. Many models take more, at a price that grows with every call."""

Makers = Mapping[str, Callable[[str], Model]]
"""Of plugins, by provider name."""


@dataclass(frozen=True, slots=True)
class Connection:
    """`window` is how many tokens a conversation may take. `plain`: it has little judgement, and gets a few
    lines and no tools."""

    name: str
    model: Model
    window: int
    plain: bool = False


class ModelFactory:
    """`is_local` tells whether a server on this machine is among them, which does one thing at a time."""

    def __init__(
        self, settings: Settings, home: Path, clock: Clock, model: str | Model, makers: Makers
    ) -> None:
        self.http = Http(clock, first_byte=settings.first_byte)
        self.is_local = False
        self._settings = settings
        self._home = home
        self._clock = clock
        self._model = model or settings.model
        self._makers = makers
        self._environ = dict(os.environ)
        self._engines: dict[str, Local] = {}

    async def close(self) -> None:
        for engine in self._engines.values():
            await engine.close()
        await self.http.close()

    async def find(self, wanted: str) -> Connection:
        """By name, or the object that was handed in."""
        window = self._settings.window or LARGE
        if not isinstance(self._model, str):
            return Connection(f"custom/{type(self._model).__name__.lower()}", self._model, window)
        wanted = wanted or self._model
        plugin, _, rest = wanted.partition("/")
        if plugin in self._makers:
            return Connection(wanted, self._makers[plugin](rest), window)
        if plugin == LOCAL and LOCAL not in self._settings.providers:
            return self._engine(rest)
        own = [
            Provider(name, each.url, each.format, each.key) for name, each in self._settings.providers.items()
        ]
        provider, name = await choose(wanted, (*own, *KNOWN), self._environ, self.http)
        self.is_local = self.is_local or provider.local
        small = provider.local and not self._settings.window
        return Connection(name, self._adapter(provider, name), SMALL if small else window)

    def price(self, name: str) -> Price | None:
        own = self._settings.prices.get(name)
        if own is None:
            return PRICES.get(name)
        cached = own.input if own.cached is None else own.cached
        return Price(own.input, own.output, cached, own.input if own.written is None else own.written)

    def _engine(self, name: str) -> Connection:
        """One engine a model, however many conversations it has; it starts with the first request."""
        from hone.features.local_models.local import Local
        from hone.features.local_models.weights import ModelCache

        stock = ModelCache(self._home / "models").ready(name)
        whole = f"{LOCAL}/{name}"
        engine = self._engines.setdefault(whole, Local(stock, self._clock))
        self.is_local = True
        priced = Priced(engine, self.price(whole) or FREE)
        window = min(self._settings.window or stock.window, stock.window)
        return Connection(whole, self._patient(priced), window, plain=True)

    def _adapter(self, provider: Provider, name: str) -> Model:
        adapter = connect(provider, self._environ, self.http, self._clock)
        return self._patient(Priced(adapter, self.price(name)))

    def _patient(self, model: Model) -> Model:
        return Retrying(model, self._clock, Patience(tries=self._settings.tries))
