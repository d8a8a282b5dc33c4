"""Plan an import: show what it would add to the sessions, then store exactly that."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import chain, islice, takewhile
from pathlib import PurePath
from typing import Self

from msgspec import Struct

from hone.core.errors import Conflict, Missing, StoreError
from hone.core.ids import SessionId
from hone.core.jobs import PendingLook
from hone.core.messages import Role, digest, sound
from hone.core.ports import IMPORTED, Header, Sessions, StoredSession
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.visible import one_line, visible
from hone.features.imports.conversation import Conversation, ImportReport
from hone.features.imports.looks import LookPlan
from hone.features.imports.pairing import LOST, paired
from hone.features.imports.sources import SourceFile
from hone.prompt.compose import compose

TITLE = 100
TRIES = 3
ROOM = 64 * 1024 * 1024
"""How many bytes of conversations to keep between survey and storing, so that most are read only once."""
TOGETHER = 32
"""How many conversations to store at once: the store commits them together, each complete or not at all."""
Told = Callable[[int], object]
"""Hears the progress: bytes read, or messages stored."""


class ImportState(StrEnum):
    """How a conversation relates to the session of its name here."""

    NEW = "new"
    LONGER = "longer"
    """It continues what is here."""
    CHANGED = "changed"
    """It has more, but not only after what is here: an answer that was being written, an undone turn."""
    SAME = "same"
    """There is nothing to add."""
    OTHER = "other"
    """They have diverged."""


WANTED = (ImportState.NEW, ImportState.LONGER, ImportState.CHANGED)


def name(source: str, own: str) -> SessionId:
    """Return a stable name for a conversation; it begins with the source."""
    return SessionId(f"{source.partition('-')[0]}-{digest(f'{source} {sound(own)}'.encode())[:12]}")


def prefix(source: str) -> Prefix:
    """Return a prefix without system text and tools: the other agent's instructions are not ours."""
    return compose(f"{IMPORTED}/{source}", (), (), {})


def fitted(
    source: str, found: Conversation, report: ImportReport, otherwise: datetime, *, foreign: bool
) -> StoredSession | None:
    """Return a conversation fit to store; None if it is empty. `otherwise` is the default for its time. If it
    is `foreign`, nobody vouches for words under the user's name, nor for the folder."""
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
    return StoredSession(header, base, Transcript(base.digest, tuple(nodes)))


def _folder(path: str) -> str:
    """Return the folder, if it is valid on this system and can be shown unchanged."""
    fit = PurePath(path).is_absolute() and len(path) < 1_000 and visible(sound(path)) == path
    return path if fit else ""


class Trail(Struct, frozen=True):
    """The part of a transcript needed to compare it: what was said, how many messages really existed, and the
    length of the last one."""

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
    """Compare two transcripts by what was said, not by the prefix: the conversation may have continued
    here."""
    if here is None:
        return ImportState.NEW
    shorter = min(len(here.digests), len(found.digests))
    if here.digests[:shorter] == found.digests[:shorter]:
        return ImportState.LONGER if len(found.digests) > shorter else ImportState.SAME
    # Only growth counts, so that two files of one conversation cannot replace each other forever.
    grown = (found.said, found.last) > (here.said, here.last)
    return ImportState.CHANGED if grown and here.root == found.root else ImportState.OTHER


def shared(here: Trail, found: Trail) -> int:
    """Return how many messages both start with."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(here.digests, found.digests, strict=False))
    return sum(1 for _ in pairs)


async def look_up(store: Sessions, session: SessionId) -> StoredSession | None:
    try:
        return await store.load(session)
    except Missing:
        return None


async def carry(
    store: Sessions, found: StoredSession, *, new: bool = False, looks: LookPlan | None = None
) -> ImportState:
    """Store the additions, in one transaction, with the time to look back over them. A conversation known to
    be `new` needs no lookup. Raises Conflict if another process was faster."""
    id = found.header.id
    here = None if new else await look_up(store, id)
    trail = Trail.of(found.transcript)
    before = Trail.of(here.transcript) if here else None
    state = compared(before, trail)
    known = shared(before, trail) if before else 0
    look = looks.look(found.transcript, known) if looks else None
    if here is None:
        await store.start(found.header, found.prefix, found.transcript.nodes, look)
    elif state is ImportState.LONGER:
        counts = looks.count_new(found.transcript, known) if looks and look else ()
        nodes = _behind(here.transcript, found.transcript.nodes)
        await store.append(id, nodes, counts=counts, look=look)
    elif state is ImportState.CHANGED:
        await store.shorten(id, here.transcript.head, found.transcript, look=look)
    return state


def _behind(here: Transcript, nodes: Sequence[Node]) -> list[Node]:
    """Return what follows the stored messages, under whatever prefix they have now."""
    added: list[Node] = []
    for node in nodes[len(here) :]:
        parent = added[-1].hash if added else here.head
        added.append(Node.make(parent, node.message, node.trust, node.at))
    return added


@dataclass(slots=True)
class ImportPlan:
    """`states` by session; `wanted` are the ends of the lines that would be stored, with their length; `kept`
    are those lines, as long as there is `room` for them, and `rest` has the files with the others;
    `unreadable` are sentences about whole files; `looks` is what there is to look back over, each with the
    bytes that its review would read; `unread` are sessions that were imported without a look."""

    room: int = ROOM
    report: ImportReport = field(default_factory=ImportReport)
    states: dict[SessionId, ImportState] = field(default_factory=dict)
    trails: dict[SessionId, Trail] = field(default_factory=dict)
    wanted: dict[tuple[SessionId, str], int] = field(default_factory=dict)
    kept: list[StoredSession] = field(default_factory=list)
    rest: list[SourceFile] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    added: int = 0
    first: datetime | None = None
    last: datetime | None = None
    looks: dict[SessionId, tuple[PendingLook, int]] = field(default_factory=dict)
    unread: list[SessionId] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return sum(len(trail.digests) for trail in self.trails.values())

    @property
    def counts(self) -> Counter[ImportState]:
        return Counter(self.states.values())

    @property
    def due(self) -> int:
        return sum(state in WANTED for state in self.states.values())


async def survey(
    store: Sessions,
    source: str,
    files: Iterable[SourceFile],
    told: Told,
    *,
    foreign: bool,
    room: int = ROOM,
    looks: LookPlan | None = None,
) -> ImportPlan:
    """Read everything and store nothing."""
    found = ImportPlan(room)
    for source_file in files:
        whole = True
        for each in _imports(source, source_file, found.report, found.unreadable, foreign=foreign):
            if await _note(store, found, each, looks) in WANTED:
                whole = _keep(found, each) and whole
        if not whole:
            found.rest.append(source_file)
        told(source_file.size)
    return found


def _keep(found: ImportPlan, each: StoredSession) -> bool:
    size = sum(len(node.encoded) for node in each.transcript.nodes)
    if size > found.room:
        return False
    found.room -= size
    found.kept.append(each)
    return True


async def _note(
    store: Sessions, found: ImportPlan, each: StoredSession, looks: LookPlan | None = None
) -> ImportState:
    id, trail = each.header.id, Trail.of(each.transcript)
    here, stored = found.trails.get(id), None
    if here is None:
        stored = await look_up(store, id)
        here = Trail.of(stored.transcript) if stored else None
    state = compared(here, trail)
    if looks:
        _note_look(found, each, shared(here, trail) if here else 0, stored, looks)
    if state in WANTED:
        found.wanted[id, each.transcript.head] = len(trail.digests)
        found.added += len(trail.digests) - (len(here.digests) if here else 0)
    if id not in found.states or found.states[id] not in WANTED:
        found.states[id] = state
    if state in WANTED or id not in found.trails:
        found.trails[id] = trail
    times = [node.at for node in each.transcript.nodes]
    found.first = min(times) if found.first is None else min(found.first, *times)
    found.last = max(times) if found.last is None else max(found.last, *times)
    return state


def _note_look(
    found: ImportPlan, each: StoredSession, after: int, stored: StoredSession | None, looks: LookPlan
) -> None:
    """Note what is new to look back over, or everything that was imported and not reviewed."""
    id = each.header.id
    is_unread = stored is not None and id not in looks.known and stored.prefix.provider == IMPORTED
    look = looks.pending(each, 0 if is_unread else after)
    if look and (is_unread or after < len(each.transcript)):
        found.looks[id] = look, looks.measure(each.transcript)
        if is_unread and after == len(each.transcript):
            found.unread.append(id)


def _imports(
    source: str, source_file: SourceFile, report: ImportReport, unreadable: list[str], *, foreign: bool
) -> Iterator[StoredSession]:
    try:
        for conversation in source_file.read(report):
            each = fitted(source, conversation, report, source_file.at, foreign=foreign)
            if each:
                yield each
    except OSError as error:
        unreadable.append(f"{one_line(str(source_file.path), 200)} cannot be read: {error.strerror}.")
    except StoreError as error:
        unreadable.append(str(error))


async def bring(
    store: Sessions,
    source: str,
    found: ImportPlan,
    told: Told,
    *,
    foreign: bool,
    looks: LookPlan | None = None,
) -> tuple[int, list[SessionId]]:
    """Store what the survey found and nothing else: a file that must be read again and has changed since is
    left for next time. Return how many sessions have it now, and those that have diverged."""
    stored: set[SessionId] = set()
    met: set[SessionId] = set()

    async def store_one(each: StoredSession) -> None:
        state = await _carried(store, each, looks, new=found.states[each.header.id] is ImportState.NEW)
        (met if state is ImportState.OTHER else stored).add(each.header.id)
        told(found.wanted[each.header.id, each.transcript.head])

    due = find_due(source, found, foreign=foreign)
    while batch := list(islice(due, TOGETHER)):
        ended = await asyncio.gather(*(store_one(each) for each in batch), return_exceptions=True)
        if failed := next((each for each in ended if isinstance(each, BaseException)), None):
            raise _explain(failed, len(stored))
    return len(stored), sorted(met)


def find_due(source: str, found: ImportPlan, *, foreign: bool) -> Iterator[StoredSession]:
    """Yield what the survey wants to store. Anything not kept is read again."""
    return chain(found.kept, _again(source, found, foreign=foreign))


async def carry_over(store: Sessions, each: StoredSession) -> ImportState:
    """Store what a conversation adds to the current state."""
    return await _carried(store, each, None, new=False)


def _explain(error: BaseException, stored: int) -> BaseException:
    """Say what was stored anyway, if the store failed."""
    if not isinstance(error, StoreError):
        return error
    count = "1 conversation was" if stored == 1 else f"{stored:,} conversations were"
    return type(error)(f"{error} {count} stored before; import once more to continue.")


def _again(source: str, found: ImportPlan, *, foreign: bool) -> Iterator[StoredSession]:
    kept = {(each.header.id, each.transcript.head) for each in found.kept}
    for source_file in found.rest:
        for each in _imports(source, source_file, ImportReport(), [], foreign=foreign):
            key = each.header.id, each.transcript.head
            if key in found.wanted and key not in kept:
                yield each


async def _carried(store: Sessions, each: StoredSession, looks: LookPlan | None, *, new: bool) -> ImportState:
    """Store additions. Another process may import the same right now: then nothing is left to add."""
    for attempt in range(TRIES):
        try:
            return await carry(store, each, new=new and attempt == 0, looks=looks)
        except Conflict:
            continue
    return ImportState.OTHER
