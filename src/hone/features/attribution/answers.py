"""Find an answer in a stored conversation, with the prompt that really produced it.

A conversation may have changed its model, its tools or its length since. The store keeps the lines it has
left, so each answer is found in the first line that had it.
"""

from collections.abc import Sequence

from hone.core.errors import Missing, Refused
from hone.core.ids import SessionId
from hone.core.messages import Role
from hone.core.ports import Sessions, StoredSession
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import OBJECTION
from hone.features.attribution.values import AnsweredTurn


class NoAnswer(Refused):
    """A conversation has no answer, or a message has none yet."""


async def find_answer(sessions: Sessions, beginning: str = "", number: int = 0) -> AnsweredTurn:
    """Return an answer: of a session (default: the latest), the last one or that of the turn of message
    `number`. Raises Missing or Refused."""
    if beginning:
        id = await sessions.find(beginning)
    else:
        latest = await sessions.list(1)
        if not latest:
            raise Missing("There is no conversation yet.")
        id = latest[0].header.id
    stored = await sessions.load(id)
    last = find_end(stored.transcript.nodes, number)
    line, at = await _first_line(sessions, stored, last)
    start = find_start(line.transcript.nodes, at)
    nodes = line.transcript.nodes
    return AnsweredTurn(stored.header, line.prefix, nodes[:start], nodes[start : at + 1], last + 1)


def find_end(nodes: Sequence[Node], number: int = 0) -> int:
    """Return the index of the answer that ends the turn of a message (0: the last turn)."""
    if number > len(nodes):
        raise Missing(f"This conversation has messages 1 to {len(nodes)}; {number} is none of them.")
    if number and nodes[number - 1].message.template:
        raise Refused(f"Message {number} is an example from a template; it was never said here.")
    ends = [at for at, node in enumerate(nodes) if _is_end(node)]
    wanted = [at for at in ends if at >= number - 1] if number else ends[-1:]
    if not wanted:
        raise NoAnswer("There is no answer yet.")
    return wanted[0]


def find_start(nodes: Sequence[Node], end: int) -> int:
    """Return the index of the request that an answer answers. What the user said while the agent worked did
    not begin a turn, and neither did a hook's objection."""
    for at in range(end, 0, -1):
        if nodes[at].message.role is Role.USER and _is_end(nodes[at - 1]) and not _objects(nodes[at]):
            return at
    return next((at for at, node in enumerate(nodes) if not node.message.template), 0)


def _is_end(node: Node) -> bool:
    return node.message.role is Role.ASSISTANT and not node.message.calls


def _objects(node: Node) -> bool:
    return node.trust is Trust.FOREIGN and node.message.text.startswith(OBJECTION)


async def _first_line(sessions: Sessions, stored: StoredSession, at: int) -> tuple[StoredSession, int]:
    """Return the first line that had a message, and its place there. Messages that a branch shares with its
    parent are in one of the parent's lines."""
    header = stored.header
    if header.parent and at < header.shared and (found := await _in_parent(sessions, stored, at)):
        return found
    for older in reversed(await sessions.earlier(header.id)):
        place = find_same(older.transcript.nodes, stored.transcript.nodes, at)
        if place is None:
            break
        stored, at = older, place
    return stored, at


async def _in_parent(sessions: Sessions, stored: StoredSession, at: int) -> tuple[StoredSession, int] | None:
    """Return None if the parent is gone, or has no line with this message."""
    try:
        parent = await sessions.load(SessionId(stored.header.parent or ""))
        lines = [parent, *await sessions.earlier(parent.header.id)]
    except Missing:
        return None
    said = [each.digest for each in stored.transcript.nodes[: at + 1]]
    for line in lines:
        if [each.digest for each in line.transcript.nodes[: at + 1]] == said:
            return await _first_line(sessions, line, at) if line is parent else (line, at)
    return None


def find_same(older: Sequence[Node], newer: Sequence[Node], at: int) -> int | None:
    """Return where a message of a newer line is in the older one that it follows; None if it is newer. A line
    under another prefix repeats the old one; a shortened one ends with the same messages."""
    if all(one.digest == two.digest for one, two in zip(older, newer, strict=False)):
        return at if at < len(older) else None
    last, wanted = older[-1], newer[at]
    for end in range(len(newer)):
        place = len(older) - 1 - (end - at)
        same = (newer[end].digest, newer[end].at) == (last.digest, last.at)
        if same and 0 <= place < len(older) and older[place].digest == wanted.digest:
            return place
    return None
