"""Label a tool's result with a trust level, based on what the call did. No other module sets this label."""

from hone.core.messages import Role, ToolCall, digest, sound
from hone.core.permit import Effect
from hone.core.tool import Toolbox
from hone.core.transcript import Transcript
from hone.core.trust import Trust

NETWORK = frozenset({Effect.NETWORK})
OUTWARD = NETWORK | {Effect.SPAWN}
"""By the network, or by another agent that may have used it."""


def label(best: Trust, agent: Trust, *, tainted: bool) -> Trust:
    """Return the label of a result. `best` is the tool's claim about it, `agent` the current trust of the
    model's own words. Once a conversation has reached the network, any result may come from there."""
    if best >= Trust.AGENT:
        return min(best, agent)
    return Trust.FOREIGN if tainted else best


def has_effect(effects: frozenset[Effect], call: ToolCall, toolbox: Toolbox) -> bool:
    """Tell whether a call has one of these effects. A tool that is unknown, or fails to tell, counts as
    having them all."""
    tool = toolbox.get(call.name)
    try:
        return tool is None or bool(tool.spec.effects_of(call) & effects)
    except Exception:  # noqa: BLE001  the wall: a plugin's surface is anybody's code
        return True


def is_tainted(transcript: Transcript, toolbox: Toolbox) -> bool:
    """Tell whether a call has reached out. A refused call has not: its result is in our own words. A child
    whose task comes from foreign words counts as tainted, and so do words with a reminder from foreign
    memory."""
    if transcript.trust is not Trust.FOREIGN:
        return False
    calls: dict[str, ToolCall] = {}
    for node in transcript.nodes:
        if node.message.role is Role.USER and node.trust_floor is Trust.FOREIGN:
            return True
        calls.update((call.id, call) for call in node.message.calls)
        result = node.message.result
        if result and node.trust is Trust.FOREIGN:
            call = calls.get(result.call)
            if call is None or has_effect(OUTWARD, call, toolbox):
                return True
    return False


def identify(call: str, text: str) -> str:
    """Return a digest that identifies a result: by the id of its call, and its text."""
    return digest(f"{call}\n{sound(text)}".encode())
