"""J1, J3: users of one server see nothing of each other, and nobody comes in without a valid key."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg import sql

from hone.core.clock import ManualClock
from hone.core.documents import RULES, DocumentKind
from hone.core.messages import Message, Role, assistant
from hone.features.users.service import make_key
from hone.models.scripted import call
from hone.settings import Settings
from hone.settings.sections import PriceSettings, ServeSettings
from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from hone.stores.postgres.documents import PostgresDocuments
from hone.stores.postgres.user_admin import UserAdmin
from hone.stores.postgres.users import PostgresUsers
from hone.web.tenants import IDLE, Tenants
from hone.web.user_gate import MOST_GUESSES
from hone.web.user_limits import LINGER, LONGEST, SPACE, LateRefusals
from tests import databases
from tests.conftest import Figures, Tier
from tests.web.rig import PATIENCE, Running, running

SECRET = "the secret of the proxy"
HEADER = "x-forwarded-user"


NO_PRICES: Mapping[str, PriceSettings] = {}


def random_text(size: int) -> str:
    """Letters that no compression makes much shorter."""
    return Random(size).randbytes(size // 2).hex()


def echo(messages: Sequence[Message]) -> Message:
    said = [each for each in messages if each.role is Role.USER][-1].text
    return assistant(f"{len(messages)}: {said}")


class Team:
    """A server with users."""

    def __init__(self, server: Running, url: str) -> None:
        self.server = server
        self.url = url
        self.admin = UserAdmin(url)

    @property
    def tenants(self) -> Tenants:
        assert self.server.state.tenants is not None
        return self.server.state.tenants

    def add(self, name: str, **limits: float) -> str:
        self.admin.add(name, limits)
        return make_key(self.admin, name, "first", "person", None)

    @asynccontextmanager
    async def client(self, key: str = "", **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
        given = {"authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(
            base_url=self.server.url, headers={**given, **headers}, timeout=PATIENCE
        ) as client:
            yield client

    def events(self) -> Counter[tuple[str, str, str]]:
        """What the audit log has: kind, user and detail, each as often as it happened."""
        found: Counter[tuple[str, str, str]] = Counter()
        for row in self.admin.audit("", "", 10_000):
            found[row.event, row.user, row.detail] += row.count
        return found


@asynccontextmanager
async def serving(
    tmp_path: Path,
    script: Any = echo,
    latency: float = 0.0,
    prices: Mapping[str, PriceSettings] = NO_PRICES,
    **serve: Any,
) -> AsyncIterator[Team]:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    with databases.new_database() as url:
        given = {"requests_per_minute": 0, **serve}
        settings = Settings(database=url, prices=prices, serve=ServeSettings(**given))
        async with running(
            tmp_path / "home", tmp_path / "work", script, settings=settings, latency=latency
        ) as server:
            yield Team(server, url)


async def finished(client: httpx2.AsyncClient, session: str) -> list[dict[str, Any]]:
    """The messages of a conversation whose turn has ended."""
    found = (await client.get(f"/api/sessions/{session}")).json()
    while found["busy"]:
        found = (await client.get(f"/api/sessions/{session}")).json()
    messages: list[dict[str, Any]] = found["messages"]
    return messages


async def test_each_user_has_their_own_conversations_sign_ins_and_events(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as team,
        team.client(team.add("alice")) as alice,
        team.client(team.add("bob")) as bob,
    ):
        begun = await alice.post("/api/sessions", json={"text": "My word is heliotrope."})
        assert begun.status_code == 202, begun.text
        session = begun.json()["session"]
        assert (await finished(alice, session))[0]["parts"][-1]["text"] == "My word is heliotrope."
        # Another's conversation and one that does not exist look the same.
        answers = [
            await client.get(f"/api/sessions/{id}")
            for client in (bob, team.server.client)
            for id in (session, "0123456789abcdef")
        ]
        assert {each.status_code for each in answers} == {404}
        assert len({each.text.replace(session, "0123456789abcdef") for each in answers}) == 1
        for client in (bob, team.server.client):
            assert (await client.get("/api/sessions")).json()["sessions"] == []
            assert (await client.get("/api/search", params={"query": "heliotrope"})).json()["hits"] == []
        # A history that the server knows belongs to nobody else.
        history = [{"role": "user", "content": "One."}]
        first = await alice.post("/v1/chat/completions", json={"messages": history})
        history += [{"role": "assistant", "content": first.json()["choices"][0]["message"]["content"]}]
        history += [{"role": "user", "content": "Two."}]
        on = [await each.post("/v1/chat/completions", json={"messages": history}) for each in (alice, bob)]
        assert on[0].headers["x-hone-session"] == first.headers["x-hone-session"]
        assert on[1].headers["x-hone-session"] != first.headers["x-hone-session"]
        link = (await alice.post("/api/tickets", json={})).json()["url"]
        async with team.client() as browser:
            assert (await browser.get(link.replace("~alice", "~bob"))).status_code == 401
            assert (await browser.get(link)).status_code == 303
            assert (await browser.get("/api/sessions")).json()["sessions"][-1]["session"] == session
            assert len((await browser.get("/api/logins")).json()["logins"]) == 1
        assert (await bob.get("/api/logins")).json()["logins"] == []
        assert (await team.server.get("/api/logins"))["logins"] == []


def edits(messages: Sequence[Message]) -> Message:
    """Do what the user writes: a tool, a space, its argument."""
    last = messages[-1]
    if last.role is Role.TOOL:
        return assistant("Done.")
    tool, _, argument = last.text.partition(" ")
    match tool:
        case "read":
            return assistant(call("read_file", path=argument))
        case "write":
            return assistant(call("write_file", path=argument, content="mine"))
        case _:
            return assistant(call("terminal", command=argument))


async def test_a_users_tools_stay_in_that_users_folder(tmp_path: Path) -> None:
    spaces = tmp_path / "home-workspaces"
    async with (
        serving(tmp_path, edits) as team,
        team.client(team.add("alice")) as alice,
        team.client(team.add("bob")) as bob,
    ):

        async def do(client: httpx2.AsyncClient, text: str) -> str:
            body = {"text": text, "mode": "full"}
            begun = await client.post("/api/sessions", json=body)
            messages = await finished(client, begun.json()["session"])
            return json.dumps(messages[-2])

        await do(alice, "write notes.txt")
        assert (spaces / "alice" / "notes.txt").read_text() == "mine"
        assert "mine" in await do(alice, "read notes.txt")
        assert "mine" in await do(alice, "run cat notes.txt")
        secret = tmp_path / "home" / "serve.key"
        for place in (spaces / "alice" / "notes.txt", secret, tmp_path / "home" / "users" / "alice"):
            assert "only read and write below" in await do(bob, f"read {place}")
            told = await do(bob, f"run cat {place} && echo got in")
            assert "got in" not in told.replace("echo got in", "")
        assert str(spaces / "alice") not in await do(bob, f"run ls {spaces}")
        assert (spaces / "alice").stat().st_mode & 0o777 == 0o700


async def test_nobody_comes_in_with_what_is_wrong_and_the_audit_log_has_each(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    async with serving(
        tmp_path, proxy_header=HEADER, proxy_peers=("127.0.0.1",), proxy_secret_file=str(secret)
    ) as team:
        key, other = team.add("alice"), team.add("bob")
        gone = make_key(team.admin, "alice", "gone", "person", None)
        team.admin.revoke("alice", "gone")
        late = make_key(team.admin, "alice", "late", "person", timedelta(hours=-1))
        off = team.add("carol")
        async with team.client(off) as carol:
            link = (await carol.post("/api/tickets", json={})).json()["url"]
            carols = (await carol.post("/api/tickets", json={})).json()["url"].partition("ticket=")[2]
            async with team.client() as browser:
                assert (await browser.get(link)).status_code == 303
                cookie = next(iter(browser.cookies.items()))
        team.admin.switch("carol", off=True)
        async with team.client(other) as bob, team.client() as browser:
            link = (await bob.post("/api/tickets", json={})).json()["url"]
            used = link.partition("ticket=")[2]
            assert (await browser.get(link)).status_code == 303
            good = next(iter(browser.cookies.items()))
        name, value = good
        wrong = {
            "wrong": {"authorization": f"Bearer {key[:-1]}{'A' if key[-1] != 'A' else 'B'}"},
            "another form": {"authorization": "Bearer hone-0123456789"},
            "revoked": {"authorization": f"Bearer {gone}"},
            "expired": {"authorization": f"Bearer {late}"},
            "disabled": {"authorization": f"Bearer {off}"},
            "disabled cookie": {"cookie": "=".join(cookie)},
            "another's cookie": {"cookie": f"{name}={value.replace('~bob', '~alice')}"},
            "no secret": {HEADER: "alice"},
            "wrong secret": {HEADER: "alice", "x-hone-proxy-secret": SECRET[:-1]},
            "beside a key": {HEADER: "alice", "authorization": f"Bearer {key}"},
            "unknown": {HEADER: "nobody", "x-hone-proxy-secret": SECRET},
            "disabled by proxy": {HEADER: "carol", "x-hone-proxy-secret": SECRET},
            "no user": {HEADER: "local", "x-hone-proxy-secret": SECRET},
        }
        answers = {}
        async with team.client() as stranger:
            for what, headers in wrong.items():
                answers[what] = await stranger.get("/api/sessions", headers=headers)
            twice = [(HEADER, "alice"), (HEADER, "bob"), ("x-hone-proxy-secret", SECRET)]
            answers["twice"] = await stranger.get("/api/sessions", headers=twice)
            for what, ticket in (("replayed", used), ("disabled link", carols), ("forged", f"{used}x~alice")):
                answers[what] = await stranger.get("/login", params={"ticket": ticket})
            figures.tally(len(answers), got_in=sum(each.is_success for each in answers.values()))
            assert {what: each.status_code for what, each in answers.items()} == dict.fromkeys(answers, 401)
            assert len({each.text for each in answers.values()}) == 1, "the answer says nothing of the reason"
            proxied = await stranger.get(
                "/api/sessions", headers={HEADER: "alice", "x-hone-proxy-secret": SECRET}
            )
            assert proxied.status_code == 200, "from the proxy itself"
            found = team.events()
            for row in (
                ("key refused", "", "wrong"),
                ("key refused", "alice", "revoked"),
                ("key refused", "alice", "expired"),
                ("key refused", "carol", "disabled"),
                ("cookie refused", "carol", "disabled"),
                ("cookie refused", "", "forged"),
                ("proxy header refused", "", "without the secret"),
                ("proxy header refused", "", "twice"),
                ("proxy header refused", "nobody", "wrong"),
                ("proxy header refused", "carol", "disabled"),
                ("link refused", "", "used, too old or wrong"),
                ("link refused", "carol", "disabled"),
                ("signed in", "bob", ""),
                ("key revoked", "alice", "gone"),
                ("user disabled", "carol", ""),
            ):
                assert found[row], row
            guesses = tier.size(short=60, full=2_000)

            async def guess(number: int) -> int:
                headers = {"authorization": f"Bearer hone-user-{number:043d}"}
                return (await stranger.get("/api/sessions", headers=headers)).status_code

            codes = Counter(await asyncio.gather(*map(guess, range(guesses))))
            figures.tally(guesses, got_in=codes[200])
            assert set(codes) <= {401, 429}
            assert codes[429] >= guesses - 2 * MOST_GUESSES, "counted within the minute"
            assert team.events()["guessing", "", ""]
            right = await stranger.get("/api/sessions", headers={"authorization": f"Bearer {key}"})
            assert right.status_code == 200, "nobody is locked out by the guesses of others"


PRICES = {"stage/scripted": PriceSettings(input=1_000.0, output=1_000.0)}


async def refusal(asking: Awaitable[httpx2.Response]) -> str:
    """The sentence of a refusal that names a limit."""
    answer = await asking
    assert answer.status_code == 429, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["type"] == "rate_limit_exceeded"
    return str(answer.json()["error"]["message"])


async def test_a_user_who_floods_is_held_to_each_limit_and_told_which(tmp_path: Path) -> None:
    async with serving(tmp_path, prices=PRICES) as team:

        async def begin(client: httpx2.AsyncClient, text: str = "Hello.") -> httpx2.Response:
            return await client.post("/api/sessions", json={"text": text})

        async with team.client(team.add("asks", requests_per_minute=5)) as asks:
            codes = Counter([(await asks.get("/api/modes")).status_code for _ in range(12)])
            assert 5 <= codes[200] <= 7, "the bucket fills up again meanwhile"
            assert codes[429] == 12 - codes[200]
            assert "more requests" in await refusal(asks.get("/api/modes"))
        async with team.client(team.add("spends", cost_per_day=0.5)) as spends:
            session = (await begin(spends)).json()["session"]
            await finished(spends, session)
            assert "0.50 USD" in await refusal(begin(spends))
            body = {"messages": [{"role": "user", "content": "Hello."}], "stream": True}
            assert "0.50 USD" in await refusal(spends.post("/v1/chat/completions", json=body))
            assert "0.50 USD" in await refusal(spends.post(f"/api/sessions/{session}/review", json={}))
            assert (await spends.get(f"/api/sessions/{session}")).status_code == 200
        async with team.client(team.add("keeps", storage_mb=1)) as keeps:
            session = (await begin(keeps, random_text(600_000))).json()["session"]
            await finished(keeps, session)  # the answer repeats it
            assert "limit is 1 MB" in await refusal(begin(keeps, random_text(300_000)))
            assert "limit is 1 MB" in await refusal(begin(keeps))
            skill = {"name": "large", "text": random_text(5_000)}
            assert "limit is 1 MB" in await refusal(keeps.post("/api/skills", json=skill))
            assert (await keeps.get(f"/api/sessions/{session}")).status_code == 200
        async with team.client(team.add("learns", reviews=1)) as learns:
            session = (await begin(learns)).json()["session"]
            await finished(learns, session)
            assert (await learns.post(f"/api/sessions/{session}/review", json={})).status_code == 202
            assert "reviews" in await refusal(learns.post(f"/api/sessions/{session}/review", json={}))
        assert {detail for event, _, detail in team.events() if event == "limit reached"} == {
            *("requests", "cost per day", "storage", "reviews")
        }
        async with team.client(team.add("usual")) as usual:
            assert (await begin(usual)).status_code == 202


async def test_turns_at_a_time_are_limited_and_others_go_on(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, latency=30.0) as team,
        team.client(team.add("many", turns=2)) as many,
        team.client(team.add("one")) as one,
    ):
        for _ in range(2):
            assert (await many.post("/api/sessions", json={"text": "Wait."})).status_code == 202
        assert "under way" in await refusal(many.post("/api/sessions", json={"text": "Too many."}))
        assert (await one.post("/api/sessions", json={"text": "Wait."})).status_code == 202


async def test_the_rate_of_a_user_holds_over_all_servers_together(tmp_path: Path) -> None:
    with databases.new_database() as url:
        admin = UserAdmin(url)
        admin.add("alice", {"requests_per_minute": 30})
        pools = [PostgresPool(url, lanes=1, readers=1) for _ in range(3)]
        servers = [PostgresUsers(pool, PostgresDatabase(pool, "local")) for pool in pools]
        waits = [servers[number % 3].enter_as("alice", "", None).wait for number in range(60)]
        for pool in pools:
            await pool.close()
        assert 10 <= waits.count(0.0) <= 13, "ten at once"
        assert all(0 < wait <= 2.0 for wait in waits if wait)


async def test_a_disabled_user_loses_what_is_open_and_idle_users_are_closed(tmp_path: Path) -> None:
    async with serving(tmp_path) as team, team.client(team.add("alice")) as alice:
        streaming = alice.stream("GET", "/api/events")
        async with streaming as response:
            assert response.status_code == 200
            team.admin.switch("alice", off=True)
            async for _ in response.aiter_lines():
                pass  # until the server ends it
        assert (await alice.get("/api/modes")).status_code == 401
        [tenant] = team.tenants.open.values()
        tenant.last -= IDLE
        await team.tenants.close_idle()
        assert team.tenants.open == {}
        team.admin.switch("alice", off=False)
        assert (await alice.get("/api/modes")).status_code == 200, "opened again"


async def test_many_open_users_share_the_connections_of_a_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as team:
        for number in range(30):
            async with team.client(team.add(f"u{number}")) as client:
                assert (await client.get("/api/sessions")).status_code == 200
        assert len(team.tenants.open) == 30
        with psycopg.connect(team.url) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            ).fetchone()
        assert row is not None
        assert row[0] <= 20


def test_the_application_role_reads_nothing_about_users(tmp_path: Path) -> None:
    with databases.new_database() as url:
        UserAdmin(url).add("alice", {})
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET search_path = hone; SET ROLE hone_app")
            for table in ("users", "user_keys", "audit", "user_rates", "user_requests", "guesses"):
                for query in (f"SELECT * FROM {table}", f"DELETE FROM {table}"):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(query)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT charge_request('alice', 1)")


async def test_an_erased_user_leaves_no_row_and_others_keep_theirs(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as team,
        team.client(team.add("alice")) as alice,
        team.client(team.add("bob")) as bob,
    ):
        for client in (alice, bob):
            begun = await client.post("/api/sessions", json={"text": "Remember heliotrope."})
            session = begun.json()["session"]
            await finished(client, session)
            await client.post(f"/api/sessions/{session}/review", json={})
            await client.put("/api/journal/user", json={"text": "I like heliotrope."})
        team.admin.switch("alice", off=True)
        gone = team.admin.erase("alice")
        assert {"contents", "nodes", "sessions", "jobs", "spending"} <= {
            table for table, count in gone.items() if count
        }
        with psycopg.connect(team.url) as connection:
            connection.execute("SET search_path = hone")
            for table in gone:
                query = sql.SQL("SELECT count(*) FROM {} WHERE owner = 'alice'").format(sql.Identifier(table))
                assert connection.execute(query).fetchone() == (0,), table
        assert (await alice.get("/api/sessions")).status_code == 401
        assert len((await bob.get("/api/sessions")).json()["sessions"]) == 1


class StillClock(ManualClock):
    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_refusals_of_one_user_leave_late_and_one_after_another() -> None:
    """Clients that hear at once that they come too early would all ask again at once."""
    clock = StillClock()
    late = LateRefusals(clock)
    for _ in range(300):
        await late.wait("alice")
    await late.wait("bob")
    alice = clock.slept[:-1]
    assert clock.slept[-1] == alice[0] == LINGER
    assert [round(after - before, 6) for before, after in pairwise(alice[:181])] == [SPACE] * 180
    assert max(alice) == LONGEST
    clock.advance(60.0)
    await late.wait("alice")
    assert clock.slept[-1] == LINGER


async def test_a_conversation_begins_without_a_question_that_holds_up_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that is read in the thread of the server makes everybody wait for the database."""
    asked: list[str] = []
    read = PostgresDocuments.read

    def note(documents: PostgresDocuments, kind: DocumentKind, name: str) -> bytes | None:
        if kind == RULES and threading.current_thread() is threading.main_thread():
            asked.append(name)
        return read(documents, kind, name)

    async with serving(tmp_path) as team, team.client(team.add("alice")) as alice:
        body = {"messages": [{"role": "user", "content": "Hello."}]}
        assert (await alice.post("/v1/chat/completions", json=body)).status_code == 200
        monkeypatch.setattr(PostgresDocuments, "read", note)
        assert (await alice.post("/v1/chat/completions", json=body)).status_code == 200
    assert asked == []
