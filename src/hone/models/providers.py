"""Choose a model: the known providers, and what is available on this machine."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import ModelError, Rejected, SettingsError, Unauthorised, Unreachable
from hone.core.loading import import_object
from hone.core.model import Model
from hone.core.value import replace
from hone.models.cacherules import UNKNOWN, CacheMarking, CacheRule, extend, find_rule
from hone.models.dialects import find_format, find_returns, make_origin
from hone.models.endpoint import explain_hone, is_hone
from hone.models.http import Http
from hone.models.http.route import is_loopback

LARGEST = 1 << 20
"""The most bytes of a list of models."""


class Provider(Struct, frozen=True):
    """A provider. `key` and `address` name environment variables; `default` is the model when only the key is
    set. Empty `format` and `returns` are derived from the names; `origin` marks the parts that go back to
    it."""

    name: str
    url: str
    format: str = ""
    key: str = ""
    address: str = ""
    default: str = ""
    local: bool | None = None
    """Whether it is the owner's server, which has a small window and serves one request at a time. None: its
    address tells."""
    returns: str = ""
    origin: str = ""
    cache: CacheRule = UNKNOWN
    """How it caches prompts of the chosen model."""

    @property
    def caches_by_key(self) -> bool:
        return self.cache.marking in (CacheMarking.KEY, CacheMarking.BREAKPOINTS)

    def with_rule(self, model: str, window: str = "", *, local: bool = False) -> "Provider":
        """Return the provider with the cache rule of a model; `window` names the longer window to buy."""
        rule = find_rule(self.name, model, self.format, local=local)
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
    Provider("ollama", "http://127.0.0.1:11434/v1"),
    Provider("lmstudio", "http://127.0.0.1:1234/v1"),
    Provider("llamacpp", "http://127.0.0.1:8080/v1"),
    Provider("vllm", "http://127.0.0.1:8000/v1"),
)


ADAPTERS = {
    "anthropic": "hone.models.anthropic:connect",
    "openai": "hone.models.openai:connect",
    "responses": "hone.models.responses:connect",
}
"""Wire formats by name, and the modules that implement them. Only the one in use is loaded."""


def connect(
    provider: Provider, environ: Mapping[str, str], http: Http, clock: Clock, name: str = ""
) -> Model:
    """Return a model that speaks the provider's wire format. `name` is the model's, as provider/name."""
    adapter: Callable[[Provider, str, str, Http, Clock], Model]
    url = address(provider, environ)
    spoken = settle(replace(provider, local=is_local(provider, environ)), url, name)
    adapter = import_object(ADAPTERS[spoken.format])
    return adapter(spoken, url, environ.get(provider.key, ""), http, clock)


def settle(provider: Provider, url: str, name: str) -> Provider:
    """Derive how to talk to this model, where the settings do not say."""
    model = name.partition("/")[2]
    format = provider.format or find_format(provider.name, url, model)
    plain = provider.local or format != "openai"
    returns = provider.returns or ("" if plain else find_returns(provider.name, url, model))
    return replace(provider, format=format, returns=returns, origin=make_origin(name, format))


_OWN_NETWORKS = (
    *("0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.168.0.0/16", "::/127", "fc00::/7", "fe80::/10"),
)
"""This machine, private networks and link-local addresses. Home VPNs use 100.64.0.0/10."""


def is_local(provider: Provider, environ: Mapping[str, str]) -> bool:
    """Tell whether this is the owner's own server: by HONE_LOCAL, by the settings, or by its address."""
    forced = environ.get("HONE_LOCAL", "").lower()
    if forced in ("true", "false"):
        return forced == "true"
    if provider.local is not None:
        return provider.local
    return is_local_address(address(provider, environ))


def is_local_address(url: str) -> bool:
    """Tell whether an address is on this machine or in its own network. No name is resolved."""
    if url.startswith(("unix:", "http+unix:")):
        return True
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").partition("%")[0]
    except ValueError:
        return False
    try:
        found = ip_address(host)
    except ValueError:
        return is_loopback(host) or (bool(host) and "." not in host) or host.endswith(".local")
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in network for network in _own_networks())


@cache
def _own_networks() -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, _OWN_NETWORKS))


class _Entry(Struct):
    id: str


class _Listing(Struct):
    data: list[_Entry]


async def choose(
    wanted: str, providers: Sequence[Provider], environ: Mapping[str, str], http: Http
) -> tuple[Provider, str]:
    """Return the provider and the model's full name. If nothing fits, raises SettingsError with what to
    do."""
    if wanted:
        return await _named(wanted, providers, environ, http)
    for provider in providers:
        if provider.key and provider.default and environ.get(provider.key):
            return provider, f"{provider.name}/{provider.default}"
    servers = find_servers(providers, environ)
    found = await asyncio.gather(*(first_model(provider, environ, http) for provider in servers))
    for provider, model in zip(servers, found, strict=True):
        if model:
            return provider, f"{provider.name}/{model}"
    raise SettingsError(getting_started(providers, environ))


async def _named(
    wanted: str, providers: Sequence[Provider], environ: Mapping[str, str], http: Http
) -> tuple[Provider, str]:
    name, _, model = wanted.partition("/")
    provider = next((each for each in providers if each.name == name), None)
    if provider is None:
        names = ", ".join(each.name for each in providers)
        raise SettingsError(
            f"{wanted!r} does not name a known provider. Write provider/name with one of: {names}."
        )
    if provider.key and not environ.get(provider.key):
        raise SettingsError(
            f"No key for {name}. Store it with: hone keys set {name} (or export {provider.key}=…)"
        )
    model = model or provider.default or await _offered_first(provider, environ, http)
    return provider, f"{name}/{model}"


async def _offered_first(provider: Provider, environ: Mapping[str, str], http: Http) -> str:
    place = address(provider, environ)
    try:
        offered = await list_models(provider, environ, http)
    except ModelError as error:
        raise SettingsError(f"No model is named, and {place} offers none. {error}") from error
    if not offered:
        raise SettingsError(f"No model is named and none was found at {place}.")
    return offered[0]


def find_servers(providers: Sequence[Provider], environ: Mapping[str, str]) -> list[Provider]:
    """Return the owner's servers that can be asked for their models. The first of a name counts."""
    first = {each.name: each for each in reversed(providers)}
    return [
        each
        for each in providers
        if first[each.name] is each
        and (not each.key or environ.get(each.key))
        and (each.local or is_local_address(address(each, environ)))
    ]


async def first_model(provider: Provider, environ: Mapping[str, str], http: Http) -> str | None:
    """Return the first chat model that a local server offers; None if it does not answer."""
    try:
        return next(iter(await list_models(provider, environ, http)), None)
    except ModelError:
        return None


async def list_models(provider: Provider, environ: Mapping[str, str], http: Http) -> tuple[str, ...]:
    """Ask a server for its chat models. Raises ModelError, also if the server is Hone itself."""
    place, key = address(provider, environ), environ.get(provider.key, "")
    url = f"{place}/v1/models" if provider.format == "anthropic" else f"{place}/models"
    headers = {"anthropic-version": "2023-06-01"} if provider.format == "anthropic" else {}
    headers |= {"authorization": f"Bearer {key}", "x-api-key": key} if key else {}
    async with http.get(url, headers) as reply:
        if is_hone(reply.response.headers):
            raise Rejected(explain_hone(provider.name))
        body, status = await reply.read(LARGEST), reply.response.status
    if status in (401, 403):
        raise Unauthorised(f"{place} wants a key ({status}).")
    try:
        listing = msgspec.json.decode(body, type=_Listing)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unreachable(f"{url} does not answer with a list of models ({status}).") from None
    return tuple(entry.id for entry in listing.data if "embed" not in entry.id)


def address(provider: Provider, environ: Mapping[str, str]) -> str:
    return (environ.get(provider.address) or provider.url).rstrip("/")


def getting_started(providers: Sequence[Provider], environ: Mapping[str, str]) -> str:
    keys = [provider.key for provider in providers if provider.key]
    servers = [f"{each.name} ({address(each, environ)})" for each in find_servers(providers, environ)]
    return "\n".join(
        (
            "No model to talk to yet. Choose and test one with: hone setup",
            "It offers what there is. Any one of these will do:",
            f"  - a key:            export {keys[0]}=…   (or {', '.join(keys[1:])})",
            f"  - a local server:   start one; I looked for {', '.join(servers)}",
            "  - a small model:    hone models add smollm2, then hone --model local/smollm2 (for plain chat)",
            "  - an endpoint:      hone setup --url ADDRESS",
            "To see Hone at work without any of them: hone demo",
        )
    )
