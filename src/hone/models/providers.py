"""Choose a model: the known providers, and what is available on this machine."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import ModelError, SettingsError
from hone.core.loading import import_object
from hone.core.model import Model
from hone.core.value import replace
from hone.models.cacherules import UNKNOWN, CacheMarking, CacheRule, extend, find_rule
from hone.models.http import Http


class Provider(Struct, frozen=True):
    """`key` and `address` name environment variables; `default` is the model when only the key is there."""

    name: str
    url: str
    format: str = "openai"
    key: str = ""
    address: str = ""
    default: str = ""
    local: bool = False
    """A server of one's own: found by asking it, and taken to have a small window."""
    cache: CacheRule = UNKNOWN
    """How prompts of the chosen model are cached."""

    @property
    def caches_by_key(self) -> bool:
        return self.cache.marking in (CacheMarking.KEY, CacheMarking.BREAKPOINTS)

    def with_rule(self, model: str, window: str = "") -> "Provider":
        """Return the provider with the cache rule of a model; `window` names the longer one, to buy it."""
        rule = find_rule(self.name, model, self.format, local=bool(self.local))
        return replace(self, cache=extend(rule, window))


KNOWN = (
    Provider(
        "anthropic",
        "https://api.anthropic.com",
        format="anthropic",
        key="ANTHROPIC_API_KEY",
        address="ANTHROPIC_BASE_URL",
        default="claude-sonnet-5-5",
    ),
    Provider(
        "openai",
        "https://api.openai.com/v1",
        key="OPENAI_API_KEY",
        address="OPENAI_BASE_URL",
        default="gpt-5.4",
    ),
    Provider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        default="anthropic/claude-sonnet-5.5",
    ),
    Provider("ollama", "http://127.0.0.1:11434/v1", local=True),
    Provider("lmstudio", "http://127.0.0.1:1234/v1", local=True),
    Provider("llamacpp", "http://127.0.0.1:8080/v1", local=True),
    Provider("vllm", "http://127.0.0.1:8000/v1", local=True),
)


ADAPTERS = {"anthropic": "hone.models.anthropic:connect", "openai": "hone.models.openai:connect"}
"""Wire formats by name, and what connects to them. Only the one that is used is loaded."""


def connect(provider: Provider, environ: Mapping[str, str], http: Http, clock: Clock) -> Model:
    """Make a model that speaks the provider's wire format."""
    adapter: Callable[[Provider, str, str, Http, Clock], Model]
    adapter = import_object(ADAPTERS[provider.format])
    return adapter(provider, address(provider, environ), environ.get(provider.key, ""), http, clock)


class _Entry(Struct):
    id: str


class _Listing(Struct):
    data: list[_Entry]


async def choose(
    wanted: str, providers: Sequence[Provider], environ: Mapping[str, str], http: Http
) -> tuple[Provider, str]:
    """The provider and the model's full name. Raises SettingsError with what to do where nothing fits."""
    if wanted:
        return await _named(wanted, providers, environ, http)
    for provider in providers:
        if provider.key and provider.default and environ.get(provider.key):
            return provider, f"{provider.name}/{provider.default}"
    local = [provider for provider in providers if provider.local]
    found = await asyncio.gather(*(first_model(provider, environ, http) for provider in local))
    for provider, model in zip(local, found, strict=True):
        if model:
            return provider, f"{provider.name}/{model}"
    raise SettingsError(getting_started(providers))


async def _named(
    wanted: str, providers: Sequence[Provider], environ: Mapping[str, str], http: Http
) -> tuple[Provider, str]:
    name, _, model = wanted.partition("/")
    provider = next((each for each in providers if each.name == name), None)
    if provider is None:
        names = ", ".join(each.name for each in providers)
        raise SettingsError(f"{wanted!r} names no known provider; write provider/name with one of: {names}.")
    if provider.key and not environ.get(provider.key):
        raise SettingsError(f"No key for {name}. Set it with: export {provider.key}=…")
    model = model or provider.default or await first_model(provider, environ, http) or ""
    if not model:
        raise SettingsError(f"No model is named and none was found at {address(provider, environ)}.")
    return provider, f"{name}/{model}"


async def first_model(provider: Provider, environ: Mapping[str, str], http: Http) -> str | None:
    """The first model a local server offers that can talk; None if it does not answer."""
    try:
        async with http.get(f"{address(provider, environ)}/models", {}) as reply:
            listing = msgspec.json.decode(await reply.read(1 << 20), type=_Listing)
    except (ModelError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return next((entry.id for entry in listing.data if "embed" not in entry.id), None)


def address(provider: Provider, environ: Mapping[str, str]) -> str:
    return (environ.get(provider.address) or provider.url).rstrip("/")


def getting_started(providers: Sequence[Provider]) -> str:
    keys = [provider.key for provider in providers if provider.key]
    servers = [f"{provider.name} ({provider.url})" for provider in providers if provider.local]
    return "\n".join(
        (
            "No model to talk to yet. Any one of these will do:",
            f"  - a key:            export {keys[0]}=…   (or {', '.join(keys[1:])})",
            f"  - a local server:   start one; I looked for {', '.join(servers)}",
            "  - a small model:    hone models add smollm2, then hone --model local/smollm2 (for plain chat)",
            "  - an endpoint:      write it into hone.toml (`hone config` shows where and how)",
            "To see Hone at work without any of them: hone demo",
        )
    )
