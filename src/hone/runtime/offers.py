"""Find the models that can be used now: by the keys that are set, and by asking servers."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import ModelError, Unreachable
from hone.models.providers import (
    KNOWN,
    Provider,
    address,
    find_servers,
    is_local,
    is_local_address,
    list_models,
)
from hone.models.wrappers import PRICES, Price
from hone.runtime.model_factory import KeyedEnvironment, ModelFactory

PATIENCE = 5.0
"""Seconds that a server gets to list its models."""


class ModelOffer(Struct, frozen=True):
    """A model that can be used now, and why."""

    name: str
    why: str
    window: int
    price: Price | None = None
    local: bool = False


class ModelOffers(Struct, frozen=True):
    """`notes` say what was found but cannot be used."""

    usable: tuple[ModelOffer, ...] = ()
    notes: tuple[str, ...] = ()


async def find_offers(
    providers: Iterable[Provider],
    models: ModelFactory,
    environ: KeyedEnvironment,
    clock: Clock,
    more: Sequence[str] = (),
) -> ModelOffers:
    """Return what can be used now, in the order in which Hone would choose. `more` are models that the
    settings name besides the built-in ones."""
    first: dict[str, Provider] = {}
    for each in providers:
        first.setdefault(each.name, each)
    known = tuple(first.values())
    asked = [*find_servers(known, environ), *(each for each in known if _lists(each, environ))]
    named = [each for each in known if each not in asked and environ.get(each.key)]
    answers = await asyncio.gather(*(_ask(each, models, environ, clock) for each in asked))
    offers = [_offer(each, name, models, environ) for each in named for name in _list_known(each, more)]
    notes = []
    for provider, answer in zip(asked, answers, strict=True):
        if isinstance(answer, str):
            notes += [answer] if answer else []
        else:
            offers += [_offer(provider, name, models, environ) for name in answer]
    return ModelOffers(tuple(offers), tuple(notes))


def _lists(provider: Provider, environ: Mapping[str, str]) -> bool:
    """Tell whether only the provider itself knows its models."""
    is_elsewhere = not is_local_address(address(provider, environ))
    return is_elsewhere and not provider.default and bool(provider.key and environ.get(provider.key))


def _list_known(provider: Provider, more: Sequence[str]) -> list[str]:
    """Return the provider's models that are built in or named in the settings, its default first."""
    own = [name.partition("/")[2] for name in (*PRICES, *more) if name.startswith(f"{provider.name}/")]
    return list(dict.fromkeys((provider.default, *own)))


async def _ask(
    provider: Provider, models: ModelFactory, environ: Mapping[str, str], clock: Clock
) -> tuple[str, ...] | str:
    """Return a server's models, or why there are none; nothing if a known local server does not run."""
    try:
        async with clock.timeout(PATIENCE):
            return await list_models(provider, environ, models.http)
    except TimeoutError:
        return f"{provider.name}: {address(provider, environ)} did not answer within {PATIENCE:.0f} seconds."
    except Unreachable as error:
        return "" if _is_usual(provider) else f"{provider.name}: {error}"
    except ModelError as error:
        return f"{provider.name}: {error}"


def _is_usual(provider: Provider) -> bool:
    """Tell whether Hone tries this address by default."""
    return provider in KNOWN


def _offer(provider: Provider, model: str, models: ModelFactory, environ: KeyedEnvironment) -> ModelOffer:
    name, local = f"{provider.name}/{model}", is_local(provider, environ)
    return ModelOffer(
        name, _why(provider, environ), models.window(name, local=local), models.price(name), local
    )


def _why(provider: Provider, environ: KeyedEnvironment) -> str:
    if provider.default and provider.key:
        return f"{provider.key} is {environ.describe(provider.key)}"
    return f"answers at {address(provider, environ)}"
