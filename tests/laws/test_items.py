"""G2, E5: in whatever order things are stored, deleted, undone and delivered, the backend ends with the
ledger's items."""

import asyncio
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from hone.core.clock import ManualClock
from hone.core.errors import BackendError, Refused
from hone.core.ledger import Actor, Author, Change, Entry, memory_item
from hone.core.trust import Trust
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.labels import STORED_BY
from hone.features.backends.mirror import Mirror
from hone.knowledge.items import Items, KeptMemory, load
from hone.knowledge.keeper import Keeper
from tests.doubles.odd import Odd
from tests.reference.ledger import InMemoryLedger
from tests.reference.sessions import InMemoryOutbox

KEYS, VALUES = ("a", "b"), ("one", "two", "three")
AGENT = Author(Actor.AGENT, trust_floor=Trust.AGENT)


class Act(Struct, frozen=True):
    deed: str
    key: str = KEYS[0]
    value: str = VALUES[0]
    number: int = 0


ACTS = st.builds(
    Act,
    st.sampled_from(("store", "delete", "undo", "deliver", "fail", "staged", "dropped")),
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
    st.integers(0, 9),
)


class House:
    """A ledger with its keeper, and a backend that may be out of order."""

    def __init__(self) -> None:
        self.ledger = InMemoryLedger()
        self.outbox = InMemoryOutbox(self.ledger)
        self.backend = Odd()
        self.clock = ManualClock()
        self.keeper = Keeper(self.ledger, None, self.clock, lambda _: None)
        self.items = Items(self.keeper, self.clock)
        self.mirror = Mirror(self.ledger, self.outbox, GuardedBackend(self.backend), "ann")

    async def _finish(self, changes: Sequence[Change], contents: Mapping[str, bytes]) -> Sequence[Entry]:
        return await self.ledger.record(changes, contents, self.clock.now())

    async def do(self, act: Act) -> None:
        target, memory = memory_item("ann", act.key), KeptMemory(act.value, Trust.AGENT)
        match act.deed:
            case "store":
                await self.items.keep(target, memory, AGENT)
            case "delete":
                await self.items.keep(target, None, AGENT)
            case "staged" | "dropped":
                _, staged = self.keeper.stage()
                await Items(self.keeper, self.clock, staged).keep(target, memory, AGENT)
                if act.deed == "staged":
                    await self.keeper.commit(staged, self._finish)
            case "undo":
                entries = [
                    each for each in await self.ledger.entries() if await self.keeper.is_standing(each)
                ]
                if entries:
                    await self.keeper.undo(entries[act.number % len(entries)].id)
            case "deliver" | "fail":
                self.backend.mood = "fails" if act.deed == "fail" else "well"
                await self.mirror.deliver()


@given(st.lists(ACTS, max_size=12))
def test_the_backend_ends_with_what_the_ledger_holds(acts: Sequence[Act]) -> None:
    async def story() -> None:
        house = House()
        for act in acts:
            try:
                await house.do(act)
            except (Refused, BackendError):
                continue
        house.backend.mood = "well"
        await house.mirror.deliver()
        kept = {key: await load(house.ledger, memory_item("ann", key)) for key in KEYS}
        wanted = {("ann", key): memory.value for key, memory in kept.items() if memory}
        assert {place: memo.value for place, memo in house.backend.memos.items()} == wanted
        home = await house.outbox.home()
        assert all(memo.metadata[STORED_BY] == home for memo in house.backend.memos.values())
        assert (await house.outbox.post()).waiting == 0

    asyncio.run(story())
