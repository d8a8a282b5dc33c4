"""Decide where a stored conversation continues, and whether the agent of today is the one that had it."""

from pathlib import Path

from hone.core.agent import Agent
from hone.core.loading import import_object
from hone.core.messages import Image
from hone.core.ports import IMPORTED, Header, StoredSession
from hone.core.visible import path_to_text, text_to_path
from hone.settings import Settings


def has_same_shape(agent: Agent, stored: StoredSession) -> bool:
    """Tell whether an agent has the model and the tools that a stored conversation was had with."""
    return (agent.prefix.model, agent.prefix.tools) == (stored.prefix.model, stored.prefix.tools)


def model_of(stored: StoredSession) -> str:
    """Return the model of a conversation; empty if it was imported: the default model continues it."""
    return "" if stored.prefix.provider == IMPORTED else stored.prefix.model


def find_folder(header: Header, otherwise: Path, notices: list[str]) -> Path:
    """Return the folder that a conversation was begun in. Where it is gone, a notice says what is used."""
    folder = text_to_path(header.folder) if header.folder else otherwise
    if not header.folder or folder.is_dir():
        return folder
    notices.append(f"{header.folder} is gone; the tools work in {path_to_text(otherwise)}.")
    return otherwise


def model_for(stored: StoredSession, wanted: str, settings: Settings) -> str:
    """Return the model to continue with. Raises Refused if it is a new one that is known not to see, and the
    conversation has pictures."""
    parts = (part for node in stored.transcript.nodes for part in node.message.parts)
    if wanted and any(isinstance(part, Image) for part in parts):
        import_object("hone.runtime.pictures:check_vision")(wanted, settings)
    return wanted or model_of(stored)
