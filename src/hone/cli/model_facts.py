"""`hone models show`: the context window, the prices and the cache rule of one model."""

import os
from collections.abc import Iterator

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.context import in_home
from hone.core.secrets import mask_password
from hone.core.visible import visible
from hone.learning.lookback import look_after
from hone.models.cacherules import AS_OF, CacheRule, LongerWindow
from hone.models.providers import address, is_local
from hone.models.wrappers import ModelTerms
from hone.runtime.model_factory import list_providers

LABEL = 16
"""Width of the first column."""


class ModelFacts(Struct, frozen=True):
    """`place` is its address, if it has one. `silence`: seconds before a review is due; None: never."""

    name: str
    place: str
    window: int
    local: bool
    terms: ModelTerms
    silence: float | None = None


@click.command("show", short_help="Show a model's context window, prices and cache rule.")
@click.argument("name", required=False, default="")
@in_home
async def show(hone: Hone, name: str) -> str:
    """Show what applies to the model NAME, or to the one in use.

    NAME is provider/name; a provider alone means its default model. No request is sent to a model.
    """
    return "\n".join(map(visible, describe(await gather(hone, name))))


async def gather(hone: Hone, name: str) -> ModelFacts:
    """Collect the facts about a model; a known provider needs no key for this. Raises SettingsError for an
    unknown model."""
    known = {each.name: each for each in reversed(list_providers(hone.settings))}
    provider, _, model = name.partition("/")
    if provider in known and (model or known[provider].default):
        name = name if model else f"{provider}/{known[provider].default}"
        local = is_local(known[provider], os.environ)
        window = hone.models.window(name, local=local)
    else:
        found = await hone.models.find(name)
        name, local, window = found.name, found.local, found.window
        provider = name.partition("/")[0]
    place = mask_password(address(known[provider], os.environ)) if provider in known else ""
    silence = look_after(hone.settings.learning.after_exit, hone.models.cache_rule)(name)
    return ModelFacts(name, place, window, local, hone.models.terms(name), silence)


def describe(facts: ModelFacts) -> Iterator[str]:
    """Yield the lines that are shown."""
    terms, rule = facts.terms, facts.terms.rule
    yield facts.name
    yield _row("runs", "on your own machine or network" if facts.local else "at a provider")
    if facts.place:
        yield _row("address", facts.place)
    yield _row("context window", f"{facts.window:,} tokens")
    yield _row("price", _price(facts))
    yield _row("cache window", _window(rule))
    yield _row("cached from", f"{rule.minimum:,} tokens on" if rule.minimum else "the first token on")
    yield _row("cache marks", rule.marking.value)
    if terms.price or rule.read is not None:
        yield _row("cache read", _cost(terms, terms.price.cached if terms.price else None, rule.read))
        yield _row("cache write", _cost(terms, terms.price.written if terms.price else None, rule.write))
    if rule.longer:
        yield _row("longer window", _longer(terms, rule.longer))
    yield _row("review", _review(facts))
    yield f"Cache rules as of {AS_OF}; prices are for a million tokens."


def _row(label: str, text: str) -> str:
    return f"  {label.ljust(LABEL)}{text}"


def _price(facts: ModelFacts) -> str:
    price = facts.terms.price
    if price:
        return f"${price.input:.2f} in, ${price.output:.2f} out"
    return "none" if facts.local else "not known; set it under [prices] in hone.toml"


def _window(rule: CacheRule) -> str:
    text = f"{spell(rule.window)} after the last request"
    if rule.sticky is None:
        return text
    return f"{text}; the router stays with one server for {spell(rule.sticky)}"


def _cost(terms: ModelTerms, price: float | None, factor: float | None) -> str:
    """Write a cache price, as far as it is known, and its share of the price of fresh input."""
    if terms.price and terms.price.input and price is not None:
        return f"${price:.3f} ({price / terms.price.input:.3g} times fresh input)"
    return "not known" if factor is None else f"{factor:g} times fresh input"


def _longer(terms: ModelTerms, longer: LongerWindow) -> str:
    cost = _cost(terms, terms.price.extended if terms.price else None, longer.write)
    state = "in use" if terms.rule.extended else f'off; cache = "{longer.name}" in hone.toml turns it on'
    return f"{spell(longer.seconds)} for system text and tools, write {cost}: {state}"


def _review(facts: ModelFacts) -> str:
    if facts.silence is None:
        return "only after a number of turns"
    lasts = spell(facts.terms.rule.lasts)
    return f"due after {spell(facts.silence)} of silence; reads a digest after {lasts}"


def spell(seconds: float) -> str:
    """Write a duration in hours or minutes."""
    unit, size = ("hour", 3_600) if seconds >= 3_600 else ("minute", 60)
    number = f"{seconds / size:g}"
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"
