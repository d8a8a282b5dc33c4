"""Open the embedder from the settings, if the owner agreed to where it sends text."""

import os
from collections.abc import Mapping
from pathlib import Path

from hone.core.clock import Clock
from hone.core.embedding import Embedder
from hone.core.errors import SettingsError
from hone.core.loading import import_object
from hone.features.recall.endpoint import EndpointEmbedder, Report, find_host
from hone.models.endpoint import Endpoint
from hone.models.http import LOCAL, REMOTE, Http
from hone.models.providers import Provider, address, is_local
from hone.models.wrappers import Patience
from hone.runtime.model_factory import KeyedEnvironment, bound, list_providers
from hone.settings import Settings

OPEN_LOCAL = "hone.features.recall.local:open_local"
"""Imported if weights on this machine are used."""
LOCAL_PROVIDER = "local"


async def open_embedder(
    settings: Settings,
    home: Path,
    clock: Clock,
    environ: Mapping[str, str] = os.environ,
    report: Report | None = None,
) -> Embedder | None:
    """Return the embedder of `[recall] embedder`, or None if there is none. The first `embed` loads weights
    and sends text, nothing before it does. Raises SettingsError, with what to do, if it cannot be used or
    text would be sent to a host that the owner did not agree to."""
    name = settings.recall.embedder
    if not name:
        return None
    embedder = make_embedder(name, settings, home, clock, environ, report)
    if embedder.host and embedder.host not in settings.recall.send_to:
        await embedder.close()
        raise SettingsError(
            f"{name} would send the text of your conversations to {embedder.host}, and you have not agreed "
            f"to that. Nothing was sent. To agree: hone recall use {name}"
        )
    return embedder


def make_embedder(
    name: str,
    settings: Settings,
    home: Path,
    clock: Clock,
    environ: Mapping[str, str] = os.environ,
    report: Report | None = None,
) -> Embedder:
    """Return an embedder by its name, without asking whether text may be sent to it."""
    provider, _, model = name.partition("/")
    if not model:
        raise SettingsError(
            f"{name!r} names no embedder: write local/minilm, local/gte-small or PROVIDER/MODEL, such as "
            "ollama/nomic-embed-text."
        )
    if provider == LOCAL_PROVIDER:
        local: Embedder = import_object(OPEN_LOCAL)(home, model)
        return local
    known = KeyedEnvironment(home, settings, environ)
    found = _find_provider(provider, settings, known)
    http = Http(
        clock,
        bound(settings, LOCAL if is_local(found, known) else REMOTE),
        certificates=settings.certificates,
    )
    key = known.get(found.key, "") if found.key else ""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    endpoint = Endpoint(provider, f"{address(found, known)}/embeddings", headers, found.key)
    patience = Patience(tries=settings.tries)
    if report is None:
        return EndpointEmbedder(http, clock, endpoint, model, patience)
    return EndpointEmbedder(http, clock, endpoint, model, patience, report)


def _find_provider(name: str, settings: Settings, environ: Mapping[str, str]) -> Provider:
    providers = list_providers(settings)
    found = next((each for each in providers if each.name == name), None)
    if found is None or found.format == "anthropic":
        names = ", ".join(dict.fromkeys(each.name for each in providers if each.format != "anthropic"))
        why = "has no embeddings" if found else "is no known provider"
        raise SettingsError(f"{name} {why}; write local/minilm, or PROVIDER/MODEL with one of: {names}.")
    if found.key and not environ.get(found.key) and find_host(address(found, environ)):
        raise SettingsError(
            f"No key for {name}. Store it with: hone keys set {name} (or export {found.key}=…)"
        )
    return found
