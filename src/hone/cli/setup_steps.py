"""The steps of `hone setup` without questions: find a server, test a model, prepare hone.toml."""

from pathlib import Path

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.cli.settings_file import Value
from hone.core.errors import ModelError, Unauthorised, Unusable
from hone.core.messages import user
from hone.core.model import Reply
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.models.providers import KNOWN, Provider, list_models
from hone.runtime.model_factory import KeyedEnvironment
from hone.settings import Settings
from hone.settings.sections import ProviderSettings

QUESTION = "This is a test of the connection. Reply with one short sentence that says hello."
NAME = "mine"
"""A server's default name in hone.toml."""
_ENDS = ("/chat/completions", "/completions", "/models", "/messages", "/responses")


class ModelChoice(Struct, frozen=True):
    """A model to use. With a `url` its provider is new, and `key` names its variable. `stored` is the
    variable of a key that was stored for this choice."""

    model: str
    url: str = ""
    key: str = ""
    stored: str = ""


class ServerFound(Struct, frozen=True):
    """A server and its models. `variable` names its key's variable, whether or not it has a key."""

    name: str
    url: str
    variable: str
    models: tuple[str, ...] = ()
    has_key: bool = False
    wants_key: bool = False


async def find_server(home: Path, settings: Settings, url: str, name: str, key: str) -> ServerFound:
    """Find the server behind an address as people write it. Raises ModelError if there is none."""
    failures: list[ModelError] = []
    for place in list_addresses(url):
        called = name or _name_server(place, settings)
        variable = key or name_variable(called)
        trial = with_provider(settings, called, place, variable)
        async with Hone(home=home, settings=trial, learning="off") as hone:
            environ = KeyedEnvironment(home, trial)
            found = ServerFound(called, place, variable, has_key=bool(environ.get(variable)))
            try:
                models = await list_models(Provider(called, place, key=variable), environ, hone.models.http)
                return msgspec.structs.replace(found, models=models)
            except Unauthorised:
                if found.has_key:
                    raise
                return msgspec.structs.replace(found, wants_key=True)
            except ModelError as error:
                failures.append(error)
    raise failures[0]


def name_variable(provider: str) -> str:
    """Return the variable for a new provider's key."""
    letters = (letter if letter.isascii() and letter.isalnum() else "_" for letter in provider.upper())
    return f"{''.join(letters)}_API_KEY"


def list_addresses(text: str) -> list[str]:
    """Return the base addresses that may be meant, likeliest first."""
    place = text.strip().rstrip("/")
    place = place if "://" in place else f"http://{place}"
    for end in _ENDS:
        place = place.removesuffix(end)
    return [place] if place.partition("://")[2].count("/") else [f"{place}/v1", place]


def with_provider(settings: Settings, name: str, url: str, key: str) -> Settings:
    """Return the settings with one more endpoint."""
    providers = {**settings.providers, name: ProviderSettings(url, key=key)}
    return msgspec.structs.replace(settings, providers=providers)


def _name_server(url: str, settings: Settings) -> str:
    """Return the address's existing name, or else a free one."""
    known = {each.url.rstrip("/"): each.name for each in KNOWN}
    known |= {each.url.rstrip("/"): name for name, each in settings.providers.items()}
    names = (NAME, *(f"{NAME}{number}" for number in range(2, 1_000)))
    return known.get(url) or next(name for name in names if name not in settings.providers)


async def greet(home: Path, settings: Settings, choice: ModelChoice) -> str:
    """Send one question as a conversation would, with tools, and return the answer. Raises HoneError."""
    trial = msgspec.structs.replace(settings, model=choice.model, fallback="", tries=1)
    if choice.url:
        trial = with_provider(trial, choice.model.partition("/")[0], choice.url, choice.key)
    async with Hone(home=home, settings=trial, learning="off") as hone:
        agent = await hone.agent(choice.model)
        transcript = Transcript(agent.prefix.digest).then(user(QUESTION), Trust.OWNER, hone.clock.now())
        async for piece in agent.model.stream(agent.prefix, transcript):
            if isinstance(piece, Reply):
                return piece.message.text or "(a call of a tool)"
    raise Unusable(f"{choice.model} did not answer.")


def find_settings_changes(choice: ModelChoice) -> dict[tuple[str, ...], Value]:
    """Return the changes for hone.toml."""
    changes: dict[tuple[str, ...], Value] = {("model",): choice.model}
    name = choice.model.partition("/")[0]
    if choice.url and not any(each.name == name and each.url == choice.url for each in KNOWN):
        changes["providers", name, "url"] = choice.url
        if choice.key:
            changes["providers", name, "key"] = choice.key
    return changes
