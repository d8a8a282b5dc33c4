"""I3: whoever listens hears everything in order, and who was away too long is told so."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hone.web.bus import BEAT, BEHIND, KEPT, RESET, Bus, Signal


async def heard(bus: Bus, channel: str, count: int, since: str = "") -> list[Signal]:
    listening = bus.listen(channel, since)
    found = [await anext(listening) for _ in range(count)]
    await listening.aclose()
    return found


async def test_the_present_and_the_late_hear_the_same_in_order() -> None:
    bus = Bus()
    early = asyncio.ensure_future(heard(bus, "a", 3))
    await asyncio.sleep(0)
    for number in range(3):
        bus.publish("a", "said", {"number": number})
        bus.publish("b", "said", {"number": -1})
    late = await heard(bus, "a", 3)
    assert await early == late
    assert [signal.data["number"] for signal in late] == [0, 1, 2]


@given(st.integers(0, 20), st.integers(0, 20))
def test_who_comes_back_with_a_mark_misses_nothing_and_hears_nothing_twice(before: int, after: int) -> None:
    async def story() -> None:
        bus = Bus()
        for number in range(before):
            bus.publish("a", "said", {"number": number})
        mark = bus.now
        for number in range(after):
            bus.publish("a", "said", {"number": before + number})
        found = await heard(bus, "a", after, mark)
        assert [signal.data["number"] for signal in found] == list(range(before, before + after))

    asyncio.run(story())


async def test_what_is_no_longer_kept_is_a_reset() -> None:
    bus = Bus()
    bus.publish("a", "said", {})
    mark = bus.now
    for _ in range(KEPT + 1):
        bus.publish("a", "said", {})
    assert (await heard(bus, "a", 1, mark))[0].kind == RESET
    assert (await heard(bus, "a", 1, "of another bus-3"))[0].kind == RESET
    assert (await heard(bus, "a", 1, "nonsense"))[0].kind == RESET
    mark = bus.now
    bus.clear("a")
    bus.publish("a", "said", {"again": True})
    assert (await heard(bus, "a", 1, mark))[0].data == {"again": True}


async def test_a_listener_that_falls_behind_is_told_to_look_anew_and_holds_nobody_up() -> None:
    bus = Bus()
    listening = bus.listen("a")
    first = asyncio.ensure_future(anext(listening))
    await asyncio.sleep(0)
    for number in range(BEHIND + 10):
        bus.publish("a", "said", {"number": number})
    assert (await first).kind == RESET
    assert (await anext(listening)).data["number"] == BEHIND + 1
    await listening.aclose()


async def test_a_sign_of_life_reaches_those_who_listen_and_is_not_kept() -> None:
    bus = Bus()
    early = asyncio.ensure_future(heard(bus, "a", 1))
    await asyncio.sleep(0)
    bus.beat()
    assert (await early)[0].kind == BEAT
    bus.publish("a", "said", {})
    assert [signal.kind for signal in await heard(bus, "a", 1)] == ["said"]


async def test_the_end_of_the_bus_is_the_end_for_all() -> None:
    bus = Bus()
    early = asyncio.ensure_future(_all(bus))
    await asyncio.sleep(0)
    bus.publish("a", "said", {})
    bus.close()
    assert await early == 1
    assert await _all(bus) == 0


async def _all(bus: Bus) -> int:
    return len([signal async for signal in bus.listen("a")])
