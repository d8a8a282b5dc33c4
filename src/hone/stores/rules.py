"""Checks that every session store makes, their error messages, and one-line summaries of conversations."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from hone.core.errors import Conflict, Missing
from hone.core.ids import SessionId
from hone.core.messages import Message, Role, sound
from hone.core.ports import Header, SessionSummary
from hone.core.transcript import Node
from hone.core.value import replace

OPENING = 80
CANDIDATES = 5


def storable(header: Header) -> Header:
    """Return storable text: a folder's name may hold bytes that are not text, and so may a title from the
    command line."""
    return replace(header, title=sound(header.title), folder=sound(header.folder))


def follow(session: SessionId, head: str, nodes: Sequence[Node]) -> None:
    """Raise Conflict unless each node is the child of the one before, and the first one of `head`."""
    for node in nodes:
        if node.parent != head:
            raise gone_on(session)
        head = node.hash


def begin(header: Header, nodes: Sequence[Node]) -> None:
    """Raise Conflict if the new session would have no message, or shares some without a parent."""
    if not nodes and not header.shared:
        raise Conflict(f"Session {header.id} cannot start without a message.")
    if header.shared and header.parent is None:
        raise Conflict(f"Session {header.id} cannot share messages without a parent.")


def reach(header: Header, theirs: str, ours: str, length: int) -> None:
    """Raise Conflict unless a parent of this length has the messages to be shared, under the same prefix."""
    if not 0 <= header.shared <= length:
        raise Conflict(f"Session {header.parent} has {length} messages, so {header.shared} cannot be shared.")
    if header.shared and theirs != ours:
        raise Conflict(f"Session {header.id} cannot share messages under another prefix than its parent's.")


def replaces(session: SessionId, head: str, after: str, nodes: Sequence[Node]) -> None:
    """Raise Conflict unless `after` is the head and there is something to continue with."""
    if head != after or not nodes:
        raise changed(session)


def opening(messages: Iterable[Message]) -> tuple[int, str]:
    """Return the number of the message with the user's first words, and their start in one line; 0 if there
    is none."""
    for number, message in enumerate(messages, 1):
        if message.role is Role.USER and (words := message.text.split()):
            return number, " ".join(words)[:OPENING]
    return 0, ""


def interleave(own: Iterable[SessionSummary], brought: Sequence[SessionSummary]) -> Iterator[SessionSummary]:
    """Merge sessions: imported ones (`brought`), latest first, are placed by their own time; the others keep
    their order."""
    waiting = deque(brought)
    for each in own:
        while waiting and waiting[0].updated > each.updated:
            yield waiting.popleft()
        yield each
    yield from waiting


def select(beginning: str, ids: Sequence[str]) -> SessionId:
    """Return the only id that starts with `beginning`. A full id always matches itself only."""
    if beginning in ids or len(ids) == 1:
        return SessionId(beginning if beginning in ids else ids[0])
    if not ids:
        raise Missing(f"There is no session whose name starts with {beginning!r}.")
    named = ", ".join(sorted(ids)[:CANDIDATES])
    more = f" and {len(ids) - CANDIDATES} more" if len(ids) > CANDIDATES else ""
    raise Missing(f"Several sessions start with {beginning!r}: {named}{more}.")


def missing(session: str) -> Missing:
    return Missing(f"There is no session {session}.")


def taken(session: str) -> Conflict:
    return Conflict(f"There is already a session {session}.")


def gone_on(session: str) -> Conflict:
    return Conflict(
        f"Session {session} has gone on elsewhere in the meantime; this was not added. Load it again."
    )


def changed(session: str) -> Conflict:
    return Conflict(f"Session {session} has other messages by now; it was not moved. Load it again.")
