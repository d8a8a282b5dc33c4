"""What a change rests on, in the words that were said."""

from hone.core.errors import Corrupt, Missing
from hone.core.ledger import Evidence
from hone.core.ports import Sessions
from hone.core.transcript import Node
from hone.core.visible import one_line

LONGEST = 300
"""Letters that are shown of a message."""


async def words(sessions: Sessions, evidence: Evidence) -> str:
    """In quotes what was said; in brackets why it cannot be told."""
    try:
        nodes = (await sessions.load(evidence.session)).transcript.nodes
    except Missing:
        return "(the session is gone)"
    except Corrupt as error:
        return f"({error})"
    at = evidence.message - 1
    # A conversation that was shortened counts its messages anew; the digest still tells which one is meant.
    for node in (*nodes[at : at + 1], *nodes):
        if node.digest == evidence.digest:
            return f"“{one_line(_said(node), LONGEST)}”"
    return "(the session no longer has it)"


def _said(node: Node) -> str:
    message = node.message
    return message.text or (message.result.text if message.result else "")
