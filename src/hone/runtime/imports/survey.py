"""What an import would add, told before anything is stored; and then just that."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hone.core.errors import Conflict, StoreError
from hone.core.ids import SessionId
from hone.core.ports import Sessions
from hone.core.visible import one_line
from hone.runtime.imports.carrying import WANTED, Import, Standing, Trail, carry, compared, fitted, look_up
from hone.runtime.imports.conversation import Account
from hone.runtime.imports.sources import Portion

TRIES = 3
Told = Callable[[int], object]
"""Is told how far it has come: bytes read, or messages stored."""


@dataclass(slots=True)
class Survey:
    """`standings` by session; `wanted` are the ends of the lines that would be stored, with their length;
    `unreadable` are sentences about whole files."""

    account: Account = field(default_factory=Account)
    standings: dict[SessionId, Standing] = field(default_factory=dict)
    trails: dict[SessionId, Trail] = field(default_factory=dict)
    wanted: dict[tuple[SessionId, str], int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    added: int = 0
    first: datetime | None = None
    last: datetime | None = None

    @property
    def messages(self) -> int:
        return sum(len(trail.digests) for trail in self.trails.values())

    @property
    def counts(self) -> Counter[Standing]:
        return Counter(self.standings.values())

    @property
    def due(self) -> int:
        return sum(standing in WANTED for standing in self.standings.values())


async def survey(
    store: Sessions, source: str, portions: Iterable[Portion], told: Told, *, foreign: bool
) -> Survey:
    """Reads everything and stores nothing."""
    found = Survey()
    for portion in portions:
        for each in _imports(source, portion, found.account, found.unreadable, foreign=foreign):
            await _note(store, found, each)
        told(portion.size)
    return found


async def _note(store: Sessions, found: Survey, each: Import) -> None:
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


def _imports(
    source: str, portion: Portion, account: Account, unreadable: list[str], *, foreign: bool
) -> Iterator[Import]:
    try:
        for conversation in portion.read(account):
            each = fitted(source, conversation, account, portion.at, foreign=foreign)
            if each:
                yield each
    except OSError as error:
        unreadable.append(f"{one_line(str(portion.path), 200)} cannot be read: {error.strerror}.")
    except StoreError as error:
        unreadable.append(str(error))


async def bring(
    store: Sessions, source: str, portions: Sequence[Portion], found: Survey, told: Told, *, foreign: bool
) -> tuple[int, list[SessionId]]:
    """Stores what the survey found and nothing else: a file that has changed since is left for the next time.
    Gives how many sessions have it now, and those that went another way meanwhile."""
    stored: set[SessionId] = set()
    met: set[SessionId] = set()
    for portion in portions:
        for each in _imports(source, portion, Account(), [], foreign=foreign):
            length = found.wanted.get((each.header.id, each.transcript.head))
            if length is None:
                continue
            standing = await _carried(store, each)
            (met if standing is Standing.OTHER else stored).add(each.header.id)
            told(length)
    return len(stored), sorted(met)


async def _carried(store: Sessions, each: Import) -> Standing:
    """Somebody else may import the same at this moment: then there is nothing left to add."""
    for _ in range(TRIES):
        try:
            return await carry(store, each)
        except Conflict:
            continue
    return Standing.OTHER
