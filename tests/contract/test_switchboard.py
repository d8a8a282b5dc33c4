"""J2, I3: servers on one store tell each other what they ask of a turn, and nothing depends on a signal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import pytest

from hone.core.claims import Claims, claim_of
from hone.core.ids import SessionId
from hone.core.messages import user
from hone.core.permissions import Answer
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.switchboard import Post, Switchboard, name_end, name_server
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.home import Stores
from hone.stores.postgres.signals import AGAIN
from hone.web.local_switchboard import Board, LocalSwitchboard
from tests import databases
from tests.contract import kinds
from tests.contract.kinds import new_owner
from tests.reference.claims import InMemoryClaims

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NO = Answer("no", "Not \0 now.")


class Servers:
    """Three servers that live, on one store."""

    def __init__(self, boards: list[Switchboard], claims: Claims, stores: Stores | None) -> None:
        self.one, self.two, self.three = boards
        self.claims = claims
        self.stores = stores

    async def stored(self, id: str) -> str:
        """A conversation that others can choose a mode for."""
        if self.stores:
            prefix = Prefix("scripted", "You help.")
            start = Transcript(prefix.digest).then(user("Hello."), Trust.OWNER, NOW)
            await self.stores.sessions.start(Header(SessionId(id), NOW), prefix, start.nodes)
        return id


@pytest.fixture(params=("local", "postgres"))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def three_servers(kind: str) -> AsyncIterator[Servers]:
    async with AsyncExitStack() as stack:
        names, boards = ("one", "two", "three"), list[Switchboard]()
        if kind == "local":
            shared, claims, stores = Board(), InMemoryClaims(), None
            boards += [LocalSwitchboard(name, shared) for name in names]
        else:
            stores = kinds.postgres(new_owner())
            assert stores.open_switchboard is not None
            claims = stores.claims  # type: ignore[assignment]
            boards += [stores.open_switchboard(name) for name in names]
        for name, board in zip(names, boards, strict=True):
            await stack.enter_async_context(claims.hold(name_server(name)))
            stack.push_async_callback(board.close)
        yield Servers(boards, claims, stores)


@asynccontextmanager
async def turn(servers: Servers, board: Switchboard, session: str) -> AsyncIterator[None]:
    async with servers.claims.hold(claim_of(session)) as held:
        assert held
        await board.begin(session)
        yield
    await board.end(session)


async def test_turns_are_known_everywhere_and_their_server_is_asked_to_interrupt_them(kind: str) -> None:
    async with three_servers(kind) as servers:
        one, two = servers.one, servers.two
        assert (await two.busy(), await two.interrupt("talk")) == ([], False)
        async with turn(servers, one, "talk"), turn(servers, two, "other"):
            assert await two.busy() == await one.busy() == ["other", "talk"]
            assert await two.interrupt("talk")
            assert (await two.receive(["other"], ())).interrupted == []
            assert (await one.receive(["talk"], ())).interrupted == ["talk"]
            assert (await one.receive(["talk"], ())).interrupted == [], "once"
        assert (await two.busy(), await two.interrupt("talk")) == ([], False)


async def test_a_question_is_answered_once_from_anywhere(kind: str) -> None:
    async with three_servers(kind) as servers:
        one, two, three = servers.one, servers.two, servers.three
        assert not await two.answer("talk", "q1", NO)
        await one.ask("talk", "q1")
        await one.ask("talk", "q1")
        given = await asyncio.gather(*(each.answer("talk", "q1", NO) for each in (one, two, three)))
        assert sorted(given) == [False, False, True]
        assert (await two.receive((), ())).answers == []
        assert (await one.receive((), ())).answers == [("talk", "q1", NO)]
        await one.withdraw("talk", "q1")
        assert (await one.receive((), ())).answers == []
        assert not await two.answer("talk", "q1", NO)


async def test_a_chosen_mode_reaches_the_turn_under_way_and_the_next_one(kind: str) -> None:
    async with three_servers(kind) as servers:
        one, two, talk = servers.one, servers.two, await servers.stored("talk")
        async with turn(servers, one, talk):
            await two.choose_mode(talk, "plan")
            assert (await one.receive([talk], ())).modes == {talk: "plan"}
        assert await one.chosen_mode(talk) == "plan"
        assert (await two.begin(talk)).mode == "plan"
        await two.note_told(talk, "ask")
        assert await one.chosen_mode(talk) == "plan", "only what was told is forgotten"
        await two.note_told(talk, "plan")
        assert (await one.chosen_mode(talk), (await one.begin(talk)).mode) == ("", "")


async def test_events_reach_the_servers_that_listen_in_order_and_once(kind: str) -> None:
    async with three_servers(kind) as servers:
        one, two, three = servers.one, servers.two, servers.three
        await two.listen(["talk", ""])
        await three.listen(["talk"])
        assert (await one.begin("talk")).listeners == {"two", "three"}
        found = await one.receive(["talk"], ["talk", "", "other"])
        assert found.listeners == {"talk": frozenset({"two", "three"}), "": frozenset({"two"})}
        sent = [
            Post(server, "talk", "text", f'{{"text":"{n} \\u0000"}}')
            for n in range(50)
            for server in ("two", "three")
        ]
        await one.send(sent[:40])
        await one.send(sent[40:])
        for board in (two, three):
            assert (await board.receive((), ())).posts == [
                each for each in sent if each.server == board.server
            ]
            assert (await board.receive((), ())).posts == []
        async with turn(servers, two, "talk"):
            others = await one.receive((), ["talk"])
            assert others.listeners == {}, "those of a turn elsewhere are told by its server"
        await two.listen([""])
        assert (await one.receive(["talk"], ["talk"])).listeners == {"talk": frozenset({"three"})}


async def test_who_waits_for_the_end_of_a_turn_is_woken(kind: str) -> None:
    async with three_servers(kind) as servers:
        one, two = servers.one, servers.two
        await two.listen([name_end("talk")])
        async with asyncio.timeout(60):
            await two.stir(0.01)  # it listens to signals from now on
            await two.stir(0.01)
            waiting = asyncio.create_task(two.stir(3_600))
            async with turn(servers, one, "talk"):
                assert not waiting.done()
            await waiting
            waiting = asyncio.create_task(two.stir(3_600))
            await asyncio.sleep(0)
            two.wake()
            await waiting


async def test_a_lost_connection_for_signals_is_opened_again_and_what_came_meanwhile_is_taken() -> None:
    async with three_servers("postgres") as servers, asyncio.timeout(60):
        await servers.two.stir(0.01)
        databases.execute(
            databases.shared(),
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query LIKE 'LISTEN hone%'",
        )
        await servers.two.stir(3_600)  # it says so
        async with turn(servers, servers.two, "talk"):
            await servers.one.interrupt("talk")
            assert (await servers.two.receive(["talk"], ())).interrupted == ["talk"]
        for _ in range(3):
            await servers.two.stir(AGAIN)  # it listens again, and looks what it missed
        waiting = asyncio.create_task(servers.two.stir(3_600))
        await asyncio.sleep(0)
        await servers.one.send([Post("two", "talk", "text", "{}")])
        await waiting


async def test_what_a_dead_server_left_is_forgotten_and_what_a_crash_took_is_written_again() -> None:
    async with three_servers("postgres") as servers:
        stores = servers.stores
        assert stores is not None
        assert stores.open_switchboard is not None
        dead = stores.open_switchboard("dead")
        await dead.begin("talk")
        await dead.ask("talk", "q1")
        await dead.listen(["talk"])
        await servers.one.send([Post("dead", "talk", "text", "{}")])
        assert await servers.one.busy() == []
        assert not await servers.one.interrupt("talk")
        assert not await servers.one.answer("talk", "q1", NO)
        await servers.one.tidy()
        assert (await servers.one.begin("talk")).listeners == frozenset()
        assert (await dead.receive((), ())).posts == []
        await servers.one.end("talk")
        async with servers.claims.hold(claim_of("talk")):
            await servers.one.receive(["talk"], ())
            assert await servers.two.busy() == ["talk"]
