"""E2, E7: copies get to the backend beside the conversation, again and again, by one process at a time."""

import asyncio
from pathlib import Path

from hone.core.clock import ManualClock
from hone.core.ledger import MEMORY, USER, Ledger, project
from hone.core.outbox import Outbox
from hone.core.skill import SkillOrigin
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.mirror import Mirror
from hone.features.backends.outbox_worker import CLAIM, OutboxWorker
from hone.files.tree import FileTree
from hone.knowledge import journal
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.skills import folder
from hone.stores.claims import FileClaims
from tests.doubles.odd import Odd
from tests.reference.ledger import InMemoryLedger
from tests.reference.sessions import InMemoryOutbox

SKILL = "---\nname: tax-letters\ndescription: Write letters to the tax office.\n---\n\nGreet first.\n"


class Bench:
    """A ledger with a keeper, a backend with moods, and the worker between them."""

    def __init__(self, home: Path) -> None:
        self.clock = ManualClock()
        self.ledger: Ledger = InMemoryLedger()
        self.outbox: Outbox = InMemoryOutbox(self.ledger)
        self.backend = Odd(self.clock)
        self.keeper = Keeper(self.ledger, FileTree(home), self.clock, lambda _: None)
        self.mirror = Mirror(self.ledger, self.outbox, GuardedBackend(self.backend), "ann")
        self.worker = OutboxWorker(self._mirror, lambda: FileClaims(home), self.clock)

    async def _mirror(self) -> Mirror | None:
        return self.mirror

    async def note(self, text: str) -> None:
        await self.keeper.note([(USER, journal.Add(text))], OWNER)

    @property
    def copies(self) -> list[str]:
        return [memo.value for memo in self.backend.memos.values()]


async def until(condition: object) -> None:
    for _ in range(1_000):
        if callable(condition) and condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def test_a_backend_that_is_down_is_tried_again_ever_more_seldom_until_it_is_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.note("tea")
    bench.backend.mood = "fails"
    bench.worker.attend()
    waits = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0]
    try:
        for number, pause in enumerate(waits, 1):
            await settled(bench, number)
            bench.worker.notify()  # a turn in between makes nobody well
            bench.clock.advance(pause - 0.5)
            await asyncio.sleep(0)
            assert (await bench.outbox.letters())[0].tries == number
            bench.clock.advance(0.5)
        bench.backend.mood = "well"
        await settled(bench, len(waits) + 1)
        bench.clock.advance(300)
        await until(lambda: bench.copies == ["tea"])
        assert (await bench.outbox.post()).waiting == 0
    finally:
        await bench.worker.close()


async def settled(bench: Bench, tries: int) -> None:
    for _ in range(1_000):
        letters = await bench.outbox.letters()
        if letters and letters[0].tries == tries:
            break
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_comes_later_is_told_when_somebody_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.worker.attend()
    try:
        await bench.note("tea")
        bench.worker.notify()
        await until(lambda: bench.copies == ["tea"])
        await bench.note("milk")
        bench.worker.notify()
        await until(lambda: bench.copies == ["tea", "milk"])
    finally:
        await bench.worker.close()


async def test_while_another_process_delivers_this_one_keeps_still(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.note("tea")
    async with FileClaims(tmp_path).hold(CLAIM) as held:
        assert held
        await bench.worker.drain()
        assert bench.copies == []
    await bench.worker.drain()
    assert bench.copies == ["tea"]


async def test_somebody_who_leaves_is_not_kept_by_a_backend_that_hangs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.note("tea")
    bench.backend.mood = "slow"
    await bench.worker.finish()
    assert bench.clock.monotonic() <= 30
    assert (await bench.outbox.post()).waiting == 1


async def test_what_the_backend_will_never_take_is_put_aside_and_the_rest_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for number in range(2):
        await bench.keeper.note([(MEMORY, journal.Add(f"fact {number}"))], OWNER)
    [first, _] = await bench.outbox.letters()
    await bench.outbox.failed(first.change, "It is too long.", final=True)
    await bench.worker.drain()
    assert bench.copies == ["fact 1"]
    post = await bench.outbox.post()
    assert (post.waiting, post.refused, post.error) == (0, 1, "It is too long.")


async def test_a_change_that_is_told_twice_is_stored_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.note("tea")
    stored: list[str] = []
    store = bench.backend.store

    async def counted(user_id: str, key: str, *rest: object, **more: object) -> object:
        stored.append(key)
        return await store(user_id, key, *rest, **more)  # type: ignore[arg-type]

    bench.backend.store = counted  # type: ignore[method-assign,assignment]
    await bench.mirror._tell((await bench.ledger.entries())[0])
    await bench.worker.drain()
    assert len(stored) == 1


async def test_a_skill_is_copied_renewed_and_taken_back_when_it_is_put_away(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.keeper.edit_skill("tax-letters", folder.Create(SKILL, SkillOrigin.AGENT, ""), OWNER)
    await bench.worker.drain()
    assert bench.copies == [SKILL]
    await bench.keeper.edit_skill("tax-letters", folder.Patch("Greet", "Bow"), OWNER)
    await bench.worker.drain()
    assert bench.copies == [SKILL.replace("Greet", "Bow")]
    await bench.keeper.edit_skill("tax-letters", folder.Archive(), OWNER)
    await bench.worker.drain()
    assert bench.copies == []


async def test_a_projects_folder_is_named_to_nobody(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.keeper.note([(project("/secret/place"), journal.Add("It uses tabs."))], OWNER)
    await bench.worker.drain()
    [memo] = bench.backend.memos.values()
    assert memo.metadata["scope"] == "project"
    assert "secret" not in memo.key + str(memo.metadata)
