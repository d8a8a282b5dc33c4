"""J2: a conversation has one turn at a time among all processes that share its store, and no model is asked
for an answer that could not be stored."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from hone import Hone
from hone.core.claims import claim_of
from hone.core.errors import Occupied
from hone.core.messages import Message, assistant
from hone.core.turn import Stop
from hone.models.scripted import Scripted, call
from hone.settings import Settings
from hone.stores.postgres.home import LOCAL
from tests import databases
from tests.contract.test_claims import end_holder


class Model:
    """Calls the tool once if it is told to work, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def reply(self, messages: Sequence[Message]) -> Message:
        self.asked += 1
        if messages[-1].text == "Work.":
            return assistant(call("meanwhile"))
        return assistant(f"Done after {len(messages)}.")


@asynccontextmanager
async def two_processes(
    folder: Path, model: Model, happen: Callable[[], Awaitable[object]]
) -> AsyncIterator[tuple[Hone, Hone, str]]:
    """As far as claims can tell: each has its own home and its own connections. `happen` is what happens in
    the middle of a turn of the first."""

    async def meanwhile() -> str:
        """Let something happen."""
        await happen()
        return "It happened."

    with databases.new_database() as url:
        made = [
            Hone(
                home=folder / name,
                folder=folder,
                model=Scripted(model.reply),
                tools=[meanwhile],
                settings=Settings(database=url),
                learning="off",
            )
            for name in ("one", "two")
        ]
        async with made[0], made[1]:
            yield made[0], made[1], url


async def test_a_turn_keeps_every_other_process_out_until_it_has_ended(tmp_path: Path) -> None:
    model, refused = Model(), 0

    async def intrude() -> None:
        nonlocal refused
        for act in (lambda: other.send("Me, too."), lambda: other.switch(other.agent)):
            with pytest.raises(Occupied, match="Another process answers"):
                await act()
            refused += 1

    async with two_processes(tmp_path, model, intrude) as (one, two, _):
        session = await one.session()
        await session.send("Hello.")
        other = await two.resume(session.id)
        assert (await session.send("Work.")).stop is Stop.ANSWERED
        assert refused == 2
        again = await two.resume(session.id)
        assert (await again.send("And now?")).text == "Done after 7."


@pytest.mark.parametrize("faster", [False, True])
async def test_a_lost_claim_is_taken_again_or_ends_the_turn_before_the_model_is_asked(
    tmp_path: Path, faster: bool
) -> None:
    model = Model()
    async with AsyncExitStack() as held:

        async def lose() -> None:
            await asyncio.to_thread(end_holder, LOCAL, claim_of(session.id), url)
            if faster:
                assert await held.enter_async_context(two.stores.claims.hold(claim_of(session.id)))

        async with two_processes(tmp_path, model, lose) as (one, two, url):
            session = await one.session()
            await session.send("Hello.")
            asked = model.asked
            turn = await session.send("Work.")
            if faster:
                assert (turn.stop, "another process answers" in turn.error) == (Stop.FAILED, True)
                assert model.asked == asked + 1
                await held.aclose()
            else:
                assert (turn.stop, turn.text) == (Stop.ANSWERED, "Done after 5.")
            assert (await two.sessions.load(session.id)).transcript.head == session.transcript.head
            assert (await session.send("Go on.")).stop is Stop.ANSWERED, "the conversation can be continued"
