"""What an import would add, told before anything is stored; and then just that."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice

from hone.core.errors import Conflict, StoreError
from hone.core.ids import SessionId
from hone.core.ports import Sessions
from hone.core.visible import one_line
from hone.features.imports.carrying import (
    WANTED,
    Import,
    ImportState,
    Trail,
    carry,
    compared,
    fitted,
    look_up,
)
from hone.features.imports.conversation import ImportReport
from hone.features.imports.sources import SourceFile

TRIES = 3
ROOM = 64 * 1024 * 1024
"""Bytes of conversations that are kept from the survey to the storing, so that most are read only once."""
TOGETHER = 32
"""Conversations that are handed over at once: the store commits them together, each whole or not at all."""
Told = Callable[[int], object]
"""Is told how far it has come: bytes read, or messages stored."""


@dataclass(slots=True)
class ImportPlan:
    """`standings` by session; `wanted` are the ends of the lines that would be stored, with their length;
    `kept` are those lines, as long as there is `room` for them, and `rest` has the files with the others;
    `unreadable` are sentences about whole files."""

    room: int = ROOM
    report: ImportReport = field(default_factory=ImportReport)
    standings: dict[SessionId, ImportState] = field(default_factory=dict)
    trails: dict[SessionId, Trail] = field(default_factory=dict)
    wanted: dict[tuple[SessionId, str], int] = field(default_factory=dict)
    kept: list[Import] = field(default_factory=list)
    rest: list[SourceFile] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    added: int = 0
    first: datetime | None = None
    last: datetime | None = None

    @property
    def messages(self) -> int:
        return sum(len(trail.digests) for trail in self.trails.values())

    @property
    def counts(self) -> Counter[ImportState]:
        return Counter(self.standings.values())

    @property
    def due(self) -> int:
        return sum(standing in WANTED for standing in self.standings.values())


async def survey(
    store: Sessions,
    source: str,
    files: Iterable[SourceFile],
    told: Told,
    *,
    foreign: bool,
    room: int = ROOM,
) -> ImportPlan:
    """Reads everything and stores nothing."""
    found = ImportPlan(room)
    for source_file in files:
        whole = True
        for each in _imports(source, source_file, found.report, found.unreadable, foreign=foreign):
            if await _note(store, found, each) in WANTED:
                whole = _keep(found, each) and whole
        if not whole:
            found.rest.append(source_file)
        told(source_file.size)
    return found


def _keep(found: ImportPlan, each: Import) -> bool:
    size = sum(len(node.encoded) for node in each.transcript.nodes)
    if size > found.room:
        return False
    found.room -= size
    found.kept.append(each)
    return True


async def _note(store: Sessions, found: ImportPlan, each: Import) -> ImportState:
    id, trail = each.header.id, Trail.of(each.transcript)
    here = found.trails.get(id)
    if here is None:
        stored = await look_up(store, id)
        here = Trail.of(stored.transcript) if stored else None
    standing = compared(here, trail)
    if standing in WANTED:
        found.wanted[id, each.transcript.head] = len(trail.digests)
        found.added += len(trail.digests) - (len(here.digests) if here else 0)
    if id not in found.standings or found.standings[id] not in WANTED:
        found.standings[id] = standing
    if standing in WANTED or id not in found.trails:
        found.trails[id] = trail
    times = [node.at for node in each.transcript.nodes]
    found.first = min(times) if found.first is None else min(found.first, *times)
    found.last = max(times) if found.last is None else max(found.last, *times)
    return standing


def _imports(
    source: str, source_file: SourceFile, report: ImportReport, unreadable: list[str], *, foreign: bool
) -> Iterator[Import]:
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
    store: Sessions, source: str, found: ImportPlan, told: Told, *, foreign: bool
) -> tuple[int, list[SessionId]]:
    """Stores what the survey found and nothing else: a file that has to be read again and has changed since
    is left for the next time. Gives how many sessions have it now, and those that went another way."""
    stored: set[SessionId] = set()
    met: set[SessionId] = set()

    async def store_one(each: Import) -> None:
        standing = await _carried(store, each, new=found.standings[each.header.id] is ImportState.NEW)
        (met if standing is ImportState.OTHER else stored).add(each.header.id)
        told(found.wanted[each.header.id, each.transcript.head])

    due = chain(found.kept, _again(source, found, foreign=foreign))
    while batch := list(islice(due, TOGETHER)):
        await asyncio.gather(*(store_one(each) for each in batch))
    return len(stored), sorted(met)


def _again(source: str, found: ImportPlan, *, foreign: bool) -> Iterator[Import]:
    kept = {(each.header.id, each.transcript.head) for each in found.kept}
    for source_file in found.rest:
        for each in _imports(source, source_file, ImportReport(), [], foreign=foreign):
            key = each.header.id, each.transcript.head
            if key in found.wanted and key not in kept:
                yield each


async def _carried(store: Sessions, each: Import, *, new: bool) -> ImportState:
    """Somebody else may import the same at this moment: then there is nothing left to add."""
    for attempt in range(TRIES):
        try:
            return await carry(store, each, new=new and attempt == 0)
        except Conflict:
            continue
    return ImportState.OTHER
