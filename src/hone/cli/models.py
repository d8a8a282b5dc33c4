"""List the models that can be used now, for `hone models`."""

from collections.abc import Iterable, Sequence

from hone.app import Hone
from hone.cli.output import lay_out, screen_width
from hone.core.errors import HoneError
from hone.models.cacherules import AS_OF
from hone.models.wrappers import FREE, Price
from hone.runtime.model_factory import KeyedEnvironment, list_providers
from hone.runtime.offers import ModelOffer, ModelOffers, find_offers

TITLES = ("  model", "window", "input", "output", "why it can be used")
MOST = 10
"""How many models of one provider to list."""
NONE = "No model can be used yet. Choose one: hone setup"


async def look(hone: Hone) -> ModelOffers:
    """Return what can be used in this home."""
    providers = list_providers(hone.settings)
    environ = KeyedEnvironment(hone.home, hone.settings)
    more = (*hone.settings.models, *hone.settings.prices)
    return await find_offers(providers, hone.models, environ, hone.clock, more)


async def find_current(hone: Hone) -> str:
    """Return the model that is used by default, or nothing."""
    try:
        return await hone.model()
    except HoneError:
        return ""


def describe_offers(found: ModelOffers, current: str, added: Sequence[ModelOffer] = ()) -> list[str]:
    """Return lines: a table of models, what could not be used, and how old the prices are."""
    usable = (*found.usable, *added)
    rows, hidden = [], 0
    for offer in usable:
        same = [each for each in usable if _provider(each) == _provider(offer)]
        if same.index(offer) < MOST or offer.name == current:
            rows.append(_row(offer, current))
        else:
            hidden += 1
    lines = lay_out(TITLES, rows, screen_width(), ("window", "input", "output")) if rows else [NONE]
    if hidden:
        lines.append(f"… and {hidden:,} more; their servers list them.")
    if current and current in (each.name for each in usable):
        lines += ["", "* is used unless you name another one: hone --model NAME"]
    elif current:
        lines += ["", f"{current} is used unless you name another one: hone --model NAME"]
    if rows:
        lines.append(
            f"Dollars for a million tokens, as of {AS_OF}; [prices] and [models] in hone.toml add to it. "
            "Cache rules: hone models show NAME"
        )
    return [*lines, *_notes(found.notes)]


def to_values(found: ModelOffers, current: str, added: Sequence[ModelOffer] = ()) -> list[dict[str, object]]:
    """Return the offers for programs."""
    return [
        {
            "name": each.name,
            "used": each.name == current,
            "why": each.why,
            "window": each.window,
            "local": each.local,
            "price": {"input": each.price.input, "output": each.price.output, "cached": each.price.cached}
            if each.price
            else None,
        }
        for each in (*found.usable, *added)
    ]


def _row(offer: ModelOffer, current: str) -> tuple[str, ...]:
    mark = "* " if offer.name == current else "  "
    return f"{mark}{offer.name}", f"{offer.window:,}", *_prices(offer.price), offer.why


def _prices(price: Price | None) -> tuple[str, str]:
    if price is None:
        return "unknown", "unknown"
    if price == FREE:
        return "free", "free"
    return f"{price.input:.2f}", f"{price.output:.2f}"


def _notes(notes: Iterable[str]) -> list[str]:
    found = [f"✗ {note}" for note in notes]
    return ["", *found] if found else []


def _provider(offer: ModelOffer) -> str:
    return offer.name.partition("/")[0]
