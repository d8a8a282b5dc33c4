"""From what was found to sessions: how each stands to what is here, and into the store, each as a whole."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import PurePath
from typing import Self

from msgspec import Struct

from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.messages import Role, digest, sound
from hone.core.ports import IMPORTED, Header, Sessions, StoredSession
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.visible import one_line, visible
from hone.features.imports.conversation import Conversation, ImportReport
from hone.features.imports.pairing import LOST, paired
from hone.prompt.compose import compose

TITLE = 100


class ImportState(StrEnum):
    """How a conversation stands to the session of its name here."""

    NEW = "new"
    LONGER = "longer"
    """It goes on after what is here."""
    CHANGED = "changed"
    """It has more, but not only behind what is here: an answer that was being written, a turn taken back."""
    SAME = "same"
    """There is nothing to add."""
    OTHER = "other"
    """They went different ways."""


WANTED = (ImportState.NEW, ImportState.LONGER, ImportState.CHANGED)


class Import(Struct, frozen=True):
    """A conversation as it would be stored."""

    header: Header
    prefix: Prefix
    transcript: Transcript


def name(source: str, own: str) -> SessionId:
    """The same for the same conversation, every time; it begins with where it comes from."""
    return SessionId(f"{source.partition('-')[0]}-{digest(f'{source} {sound(own)}'.encode())[:12]}")


def prefix(source: str) -> Prefix:
    """Without system text and without tools: what the other agent was told is none of our instructions."""
    return compose(f"{IMPORTED}/{source}", (), (), {})


def fitted(
    source: str, found: Conversation, report: ImportReport, otherwise: datetime, *, foreign: bool
) -> Import | None:
    """`otherwise` is when it was said if nothing says so. None if there is nothing in it. If it is `foreign`,
    nobody vouches for what stands under the user's name, nor for the folder."""
    messages = paired(found.messages, report)
    if not messages:
        return None
    base = prefix(source)
    at = next((raw.at for raw in messages if raw.at), otherwise)
    created, lowest, nodes = at, Trust.OWNER, list[Node]()
    for raw in messages:
        at = raw.at or at
        trust = Trust.FOREIGN if foreign else raw.trust
        if raw.message.role is Role.ASSISTANT:
            trust = min(trust, lowest)
        lowest = min(lowest, trust)
        nodes.append(Node.make(nodes[-1].hash if nodes else base.digest, raw.message, trust, at))
    folder = "" if foreign else _folder(found.folder)
    header = Header(name(source, found.own), created, one_line(sound(found.title), TITLE), folder=folder)
    return Import(header, base, Transcript(base.digest, tuple(nodes)))


def _folder(path: str) -> str:
    """One of this kind of system, and one that can be shown as it is."""
    fit = PurePath(path).is_absolute() and len(path) < 1_000 and visible(sound(path)) == path
    return path if fit else ""


class Trail(Struct, frozen=True):
    """As much of a transcript as is needed to compare it: what was said, how many messages of it were really
    there, and how long the last one is."""

    root: str
    digests: tuple[str, ...]
    said: int
    last: int

    @classmethod
    def of(cls, transcript: Transcript) -> Self:
        nodes = transcript.nodes
        said = len(nodes) - (nodes[0].message.text == LOST)
        return cls(transcript.root, tuple(node.digest for node in nodes), said, len(nodes[-1].encoded))


def compared(here: Trail | None, found: Trail) -> ImportState:
    """By what is said, not by the prefix: it may have been gone on with here."""
    if here is None:
        return ImportState.NEW
    shorter = min(len(here.digests), len(found.digests))
    if here.digests[:shorter] == found.digests[:shorter]:
        return ImportState.LONGER if len(found.digests) > shorter else ImportState.SAME
    # Only what grows counts, so that two files of one conversation cannot replace each other for ever.
    grown = (found.said, found.last) > (here.said, here.last)
    return ImportState.CHANGED if grown and here.root == found.root else ImportState.OTHER


async def look_up(store: Sessions, session: SessionId) -> StoredSession | None:
    try:
        return await store.load(session)
    except Missing:
        return None


async def carry(store: Sessions, found: Import, *, new: bool = False) -> ImportState:
    """Stores what is to be added, in one transaction. It need not look if it is known to be `new`. Raises
    Conflict if somebody else was quicker."""
    id = found.header.id
    here = None if new else await look_up(store, id)
    standing = compared(Trail.of(here.transcript) if here else None, Trail.of(found.transcript))
    if here is None:
        await store.start(found.header, found.prefix, found.transcript.nodes)
    elif standing is ImportState.LONGER:
        await store.append(id, _behind(here.transcript, found.transcript.nodes))
    elif standing is ImportState.CHANGED:
        await store.shorten(id, here.transcript.head, found.transcript)
    return standing


def _behind(here: Transcript, nodes: Sequence[Node]) -> list[Node]:
    """What comes after what is here, whatever prefix that has by now."""
    added: list[Node] = []
    for node in nodes[len(here) :]:
        parent = added[-1].hash if added else here.head
        added.append(Node.make(parent, node.message, node.trust, node.at))
    return added
