"""Decide where a stored conversation continues, and whether today's agent still matches it."""

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.agent import Agent
from hone.core.errors import HoneError
from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.messages import Image
from hone.core.ports import IMPORTED, Header, Sessions, StoredSession
from hone.core.prefix import Prefix
from hone.core.tool import is_served
from hone.core.turn import Origin
from hone.core.value import replace
from hone.core.visible import path_to_text, text_to_path
from hone.runtime.session import new_id
from hone.settings import Settings

if TYPE_CHECKING:
    from hone.runtime.toolbox_factory import Enclosure


def has_same_shape(agent: Agent, stored: StoredSession) -> bool:
    """Tell whether an agent has the model and the tools of a stored conversation. Tools of servers may come
    and go."""
    today, then = agent.prefix, stored.prefix
    if today.model != then.model:
        return False
    return today.tools == then.tools or _own_tools(today) == _own_tools(then)


def _own_tools(prefix: Prefix) -> list[str]:
    return [schema for schema in prefix.tools if not is_served(json.loads(schema)["name"])]


def model_of(stored: StoredSession) -> str:
    """Return the model of a conversation; empty if it was imported, so that the default model continues
    it."""
    return "" if stored.prefix.provider == IMPORTED else stored.prefix.model


def find_folder(
    header: Header, otherwise: Path, notices: list[str], enclosure: "Enclosure | None" = None
) -> Path:
    """Return the folder in which a conversation began, unless tools must stay in an enclosure. If it is gone,
    a notice says which folder is used."""
    folder = text_to_path(header.folder) if header.folder else otherwise
    if enclosure and not folder.resolve().is_relative_to(enclosure.folder):
        return otherwise
    if not header.folder or folder.is_dir():
        return folder
    notices.append(f"{header.folder} no longer exists; the tools work in {path_to_text(otherwise)}.")
    return otherwise


def model_for(stored: StoredSession, wanted: str, settings: Settings) -> str:
    """Return the model to continue with. Raises Refused if it is a new one that is known not to see images
    and the conversation has some."""
    parts = (part for node in stored.transcript.nodes for part in node.message.parts)
    if wanted and any(isinstance(part, Image) for part in parts):
        import_object("hone.runtime.pictures:check_vision")(wanted, settings)
    return wanted or model_of(stored)


async def branch(store: Sessions, beginning: str, shared: int | None, now: datetime) -> SessionId:
    """Start a new conversation with the first messages of another one (default: all of them)."""
    parent = await store.load(await store.find(beginning))
    whole = len(parent.transcript)
    count = whole if shared is None else shared
    if not 0 < count <= whole:
        raise HoneError(f"Session {parent.header.id} has messages 1 to {whole}; {count} is none of them.")
    header = replace(
        parent.header, id=new_id(), created=now, origin=Origin.USER, parent=parent.header.id, shared=count
    )
    await store.start(header, parent.prefix, ())
    return header.id
