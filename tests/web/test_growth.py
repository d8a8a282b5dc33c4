"""I3, F1: what clients leave behind is closed, what a server keeps is bounded, and its reviews keep up."""

import asyncio
import gc
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import httpx2
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.soak import play
from hone import Hone
from hone.core.clock import ManualClock
from hone.core.messages import Message, Role, assistant
from hone.core.value import replace
from hone.models.fake_provider import FakeProvider
from hone.models.openai import ChatAssembly, OpenAIChat
from hone.models.scripted import Scripted, call, lines
from hone.settings import Settings
from hone.settings.sections import Learning, ProviderSettings
from hone.tools.shell import Shell
from hone.web.bus import Bus
from hone.web.garbage import EVERY, SHARE, GarbageCollector
from hone.web.open_sessions import OpenSessions, Words
from hone.web.openai.matching import ALIKE, Places
from tests.models.loopback import until
from tests.rig import faults
from tests.web.rig import PATIENCE, Running, running

COUNT = 12


def endless(messages: Sequence[Message]) -> Message:
    """Calls a tool again and again where it is told to work, and answers otherwise."""
    said = [message.text for message in messages if message.role is Role.USER]
    return assistant(call("todo", items=[])) if "work" in said[-1] else assistant("Well.")


async def leave(visit: Running, number: int) -> None:
    """Ask for a streamed answer, and go away when it has begun."""
    body = {"messages": [{"role": "user", "content": "work"}], "stream": True}
    headers = {"x-hone-session": f"talk-{number}"}
    async with visit.client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
        assert response.status_code == 200
        await anext(response.aiter_raw())


async def ask(visit: Running, number: int) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}]}
    headers = {"x-hone-session": f"talk-{number}"}
    answer = await visit.client.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.json()["choices"][0]["message"]["content"] == "Well."


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_clients_that_go_away_leave_no_turn_no_task_and_no_descriptor_behind(
    home: Path, tmp_path: Path
) -> None:
    """Their turns end as interrupted, at once, and the conversations continue."""
    async with running(home, tmp_path, endless) as visit:
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(
            base_url=visit.url, headers=visit.client.headers, limits=limits, timeout=PATIENCE
        ) as visit.client:
            await asyncio.gather(*(ask(visit, number) for number in range(COUNT)))
            sessions = visit.state.open_sessions
            tasks, descriptors = len(asyncio.all_tasks()), count_descriptors()
            for _ in range(2):
                await asyncio.gather(*(leave(visit, number) for number in range(COUNT)))
                await until(lambda: not sessions.busy)
            await until(lambda: len(asyncio.all_tasks()) <= tasks and count_descriptors() <= descriptors)
            await asyncio.gather(*(ask(visit, number) for number in range(COUNT)))
        assert visit.stage.invalid == []
        hone = visit.state.hone
        found = await hone.sessions.list()
        assert len(found) == COUNT
        for each in found:
            said = list((await hone.sessions.load(each.header.id)).transcript)
            assert faults(said) == []
            assert sum("interrupted" in message.text for message in said) == 2


async def test_a_server_closes_the_conversation_that_was_quiet_for_longest_and_forgets_what_it_held(
    home: Path, tmp_path: Path
) -> None:
    """A model to fall back on has the tools of the conversation, and no others that stay open."""
    settings = Settings(fallback="custom/other")
    async with Hone(home=home, folder=tmp_path, model=Scripted(lines("Well.")), settings=settings) as hone:
        sessions = OpenSessions(hone, Bus(), hone.clock, most=2)
        for name in ("first", "second", "first", "third", "fourth"):
            await sessions.send(await sessions.enter_or_begin(name), Words("hello"))
        assert [name for name in ("first", "second", "third", "fourth") if sessions.find(name)] == [
            "third",
            "fourth",
        ]
        assert hone.toolboxes.lent == 2
        await sessions.enter_or_begin("third")
        await sessions.enter_or_begin("fifth")
        assert sessions.find("third"), "it was used last"
        assert not sessions.find("fourth")
        assert hone.toolboxes.lent == 2


async def test_a_conversation_that_is_closed_and_a_review_that_is_done_are_gone_at_once(
    home: Path, tmp_path: Path
) -> None:
    """Objects that hold each other stay until Python looks for garbage, and under load that is megabytes."""
    settings = Settings(learning=Learning(turns=1))

    def held() -> int:
        return sum(isinstance(each, OpenAIChat | Shell | ChatAssembly) for each in gc.get_objects())

    async with FakeProvider(endless) as stage:
        known = replace(settings, providers={"stage": ProviderSettings(f"{stage.url}/v1")})
        async with Hone(home=home, model="stage/scripted", folder=tmp_path, settings=known) as hone:
            gc.collect()
            gc.disable()
            try:
                before = held()
                session = await hone.session()
                await session.send("hello")
                assert held() > before
                await hone.release(session)
                del session
                await hone.background.drain()
                assert (held(), len(await hone.jobs.waiting())) == (before, 0)
            finally:
                gc.enable()


@given(st.lists(st.tuples(st.floats(0.1, 60), st.floats(0, 2)), max_size=50))
def test_garbage_is_collected_regularly_and_takes_a_small_share_of_the_time(
    looks: list[tuple[float, float]],
) -> None:
    async def run() -> None:
        clock, spent, done = ManualClock(), 0.0, list[tuple[float, float]]()
        costs = iter([cost for _, cost in looks])

        def collect() -> None:
            nonlocal spent
            spent += (took := next(costs))
            done.append((clock.monotonic(), took))

        garbage = GarbageCollector(clock, collect, lambda: spent)
        for pause, _ in looks:
            clock.advance(pause)
            garbage.tidy()
        for (earlier, took), (later, _) in pairwise(done):
            assert later - earlier >= 0.999 * max(EVERY, took / SHARE)
        assert done or clock.monotonic() < EVERY

    asyncio.run(run())


def test_of_conversations_in_the_same_words_the_latest_are_remembered() -> None:
    places, pairs = Places(), (("user", "hi"), ("assistant", "Hello."))
    for number in range(3 * ALIKE):
        places.remember(pairs, (f"session-{number}", 2))

    async def every() -> list[str]:
        found = [await places.find(pairs, None, _always) for _ in range(ALIKE)]  # type: ignore[arg-type]
        return [place[0] for place in found if place]

    assert asyncio.run(every()) == [f"session-{number}" for number in range(3 * ALIKE - 1, 2 * ALIKE - 1, -1)]


async def _always(_: str) -> bool:
    return True


def test_a_short_soak_loses_no_turn_drains_its_queue_and_ends_in_order() -> None:
    """Clients, provider and server are processes of their own, and some clients go away in the middle."""
    soak = play(minutes=0.05, clients=16, think=0.0, seed=1)
    assert soak.wrong == []
    assert soak.drained is not None
    assert soak.cut
    assert soak.looks[-1].reviewed
    assert soak.looks[-1].descriptors <= soak.looks[1].descriptors
