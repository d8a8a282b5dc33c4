"""Decide which agent continues a conversation: the one that had it, the model of today, or a fallback."""

from hone.core.agent import Agent
from hone.core.ports import IMPORTED, StoredSession
from hone.core.value import replace


def has_same_shape(agent: Agent, stored: StoredSession) -> bool:
    """Tell whether an agent has the model and the tools that a stored conversation was had with."""
    return (agent.prefix.model, agent.prefix.tools) == (stored.prefix.model, stored.prefix.tools)


def model_of(stored: StoredSession) -> str:
    """Return the model of a conversation; empty if it was imported: the default model continues it."""
    return "" if stored.prefix.provider == IMPORTED else stored.prefix.model


def relieve(agent: Agent, spare: Agent | None) -> Agent | None:
    """Return the spare agent with the rights of the one it relieves; None if that one is the spare itself."""
    if spare is None or spare.prefix.model == agent.prefix.model:
        return None
    return replace(spare, permit=agent.permit, limits=agent.limits)
