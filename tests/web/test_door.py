"""I3: who may come in. Every route the app has is tried from outside, so a new one is from its first day."""

import asyncio
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from errno import EDQUOT
from pathlib import Path
from stat import S_ISDIR

import httpx2
import pytest
from starlette.routing import Route

from hone.core.clock import ManualClock
from hone.core.errors import Refused, StoreError
from hone.web.address_file import FILE, PublishedAddress, published
from hone.web.answers import HEADERS
from hone.web.app import create_app
from hone.web.auth import LARGEST, OPEN
from hone.web.guesses import MOST as GUESSES
from hone.web.guesses import PAUSE
from hone.web.keys import STAY, Keys, password, stored
from hone.web.serving import Address
from hone.web.tickets import WAIT
from tests.cli.driving import environment, hone
from tests.conftest import Figures
from tests.web.rig import Running, running

CLOSED = {400, 401, 403, 415}
JSON = {"content-type": "application/json"}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "")
PLACEHOLDER = re.compile(r"\{(\w+)(:\w+)?\}")
Case = tuple[str, Mapping[str, str]]


def routes(visit: Running) -> list[tuple[str, str]]:
    """Every method and path, from the app's own table; and where one logs in, which is before it."""
    table = create_app(visit.state, ()).routes
    found = [("GET", "/login"), ("GET", "/"), ("GET", "/nothing/like/it")]
    for route in table:
        assert isinstance(route, Route), f"{route} is not tried"
        path = PLACEHOLDER.sub(lambda match: "1" if match[2] == ":int" else "memory", route.path)
        found += [(method, path) for method in sorted(route.methods or ())]
    return found


def hosts(own: str) -> list[str]:
    """Thirty names that are not ours."""
    port = own.rpartition(":")[2]
    return [
        *("evil.example", f"evil.example:{port}", "localhost", "127.0.0.1", "[::1]", "", " "),
        *(f"localhost:{int(port) + 1}", "127.0.0.1:80", f"localhost.evil.example:{port}"),
        *(f"127.0.0.1.evil.example:{port}", f"evil.example@127.0.0.1:{port}", f"127.0.0.1:{port}@evil"),
        *(f"0.0.0.0:{port}", f"127.1:{port}", f"127.0.0.2:{port}", f"2130706433:{port}"),
        *(f"0x7f.1:{port}", f"[::ffff:127.0.0.1]:{port}", f"[0:0:0:0:0:0:0:1]:{port}", f"LOCALHOST:{port}"),
        *(f"localhost.:{port}", f"127.0.0.1.:{port}", f"127.0.0.1:0{port}", f"127.0.0.1:{port}/"),
        *(f"127.0.0.1:{port}#", f"127.0.0.1:{port}, evil.example", f"a.localhost:{port}", "null"),
        "169.254.169.254",
    ]


def strangers(visit: Running) -> Iterator[Case]:
    """Without a right to come in."""
    name, port = visit.state.keys.cookie_name, int(visit.url.rpartition(":")[2])
    past = Keys(visit.key, ManualClock(datetime(2020, 1, 1, tzinfo=UTC)), port)
    other = Keys("another key entirely", visit.state.clock, port)
    good = visit.state.keys.cookie()
    until, rest = good.split(".", 1)
    yield "no credential", {}
    yield "a wrong key", {"authorization": "Bearer wrong"}
    yield "an empty key", {"authorization": "Bearer "}
    yield (
        "the key, by another scheme",
        {"authorization": f"Basic {b64encode(f':{visit.key}'.encode()).decode()}"},
    )
    yield "half the key", {"authorization": f"Bearer {visit.key[:-1]}"}
    yield "an expired cookie", {"cookie": f"{name}={past.cookie()}", "origin": visit.url}
    yield "a cookie with another key", {"cookie": f"{name}={other.cookie()}", "origin": visit.url}
    yield "a cookie made longer", {"cookie": f"{name}={int(until) + 9}.{rest}", "origin": visit.url}
    yield "a cookie of another name", {"cookie": f"hone={good}", "origin": visit.url}
    yield "an unreadable cookie", {"cookie": f'{name}="\\999; ;=', "origin": visit.url}
    yield "the key in a cookie", {"cookie": f"{name}={visit.key}", "origin": visit.url}


def pages(visit: Running) -> Iterator[Case]:
    """With a right to come in, but from the page of somebody else."""
    key = {"authorization": f"Bearer {visit.key}"}
    cookie = {"cookie": f"{visit.state.keys.cookie_name}={visit.state.keys.cookie()}"}
    port = int(visit.url.rpartition(":")[2])
    for origin in (
        *(
            "null",
            "http://evil.example",
            "https://127.0.0.1",
            "http://127.0.0.1",
            f"http://127.0.0.1:{port + 1}",
        ),
        *(
            f"http://localhost:{port}",
            f"http://127.0.0.1:{port}.evil.example",
            f"{visit.url}/",
            "file://",
            "",
        ),
    ):
        yield f"a page of {origin!r}, key", {**key, "origin": origin}
        yield f"a page of {origin!r}, cookie", {**cookie, "origin": origin}
    for site in ("cross-site", "same-site"):
        yield f"a {site} fetch", {**cookie, "sec-fetch-site": site}


class Wire:
    """One connection, kept while the server keeps it. What is sent is sent to the byte."""

    def __init__(self, visit: Running) -> None:
        self._host, _, self._port = visit.url.removeprefix("http://").partition(":")
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"{}") -> int:
        host = {"host": f"{self._host}:{self._port}"}
        sized = {} if method in ("GET", "HEAD") else {"content-length": str(len(body))}
        lines = [f"{name}: {value}" for name, value in {**host, **headers, **sized}.items()]
        head = "\r\n".join((f"{method} {path} HTTP/1.1", *lines, "", "")).encode("latin-1")
        reader, writer = self._streams = self._streams or await asyncio.open_connection(
            self._host, int(self._port)
        )
        writer.write(head + (body if sized else b""))
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", answer)
        if length is None or "connection: close" in answer or method == "HEAD":
            await self.close()
        else:
            await reader.readexactly(int(length[1]))
        return int(answer.split()[1])

    async def close(self) -> None:
        if self._streams:
            self._streams[1].close()
            self._streams = None


async def tried(visit: Running, cases: list[Case], table: list[tuple[str, str]]) -> list[str]:
    """Those that got in."""
    wire, open_ = Wire(visit), []
    for method, path in table:
        for name, headers in cases:
            code = await wire.ask(method, path, {**JSON, **headers})
            if code not in CLOSED:
                open_.append(f"{method} {path} with {name}: {code}")
    await wire.close()
    return open_


async def test_no_route_but_health_answers_a_stranger_a_foreign_page_or_a_wrong_host(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    async with running(home, tmp_path) as visit:
        table = routes(visit)
        key = {"authorization": f"Bearer {visit.key}"}
        own = visit.url.removeprefix("http://")
        assert len(set(hosts(own))) == 30
        outside = [*strangers(visit), *pages(visit)]
        names: list[Case] = [(f"the host {host!r}", {**key, "host": host}) for host in hosts(own)]
        forms: list[Case] = [(f"the type {form!r}", {**key, "content-type": form}) for form in FORMS]
        changing = [each for each in table if each[0] not in ("GET", "HEAD")]
        closed = [each for each in table if each[1] not in OPEN]
        open_ = await tried(visit, outside, closed)
        open_ += await tried(visit, names, closed)
        open_ += await tried(visit, forms, changing)
        count = (len(outside) + len(names)) * len(closed) + len(forms) * len(changing)
        figures.tally(count, got_in=len(open_), note=f"requests to {len(table)} routes and methods")
        assert open_ == []
        assert not await visit.state.hone.sessions.list()
        assert await visit.state.hone.ledger.latest() == 0


async def test_with_the_key_or_a_cookie_the_same_requests_are_let_in(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        wire = Wire(visit)
        for method, path in routes(visit):
            if path.endswith(("/login", "/mcp")):  # agents have keys of their own
                continue
            cookie = {"cookie": f"a=b; {visit.state.keys.cookie_name}={visit.state.keys.cookie()}"}
            for headers in ({"authorization": f"Bearer {visit.key}"}, {**cookie, "origin": visit.url}):
                code = await wire.ask(method, path, {**JSON, **headers})
                assert code not in CLOSED - {400}, f"{method} {path}: {code}"
                assert code < 500, f"{method} {path}: {code}"
        await wire.close()


async def test_a_cookie_alone_changes_nothing_where_no_page_is_named(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        cookie = {"cookie": f"{visit.state.keys.cookie_name}={visit.state.keys.cookie()}"}
        wire = Wire(visit)
        assert await wire.ask("GET", "/api/status", cookie) == 200
        assert await wire.ask("POST", "/api/tickets", {**JSON, **cookie}) == 401
        assert await wire.ask("POST", "/api/tickets", {**JSON, **cookie, "origin": visit.url}) == 201
        await wire.close()


async def test_a_ticket_lets_one_browser_in_once_with_a_cookie_no_script_can_read(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        url = (await visit.post("/api/tickets"))["url"]
        async with httpx2.AsyncClient() as browser:
            first = await browser.get(url)
            assert (first.status_code, first.headers["location"]) == (303, "/")
            said = first.headers["set-cookie"].lower()
            assert "httponly" in said
            assert "samesite=strict" in said
            assert "domain" not in said
            assert (await browser.get(f"{visit.url}/api/status")).status_code == 200
        async with httpx2.AsyncClient() as another:
            assert (await another.get(url)).status_code == 401
            assert (await another.get(f"{visit.url}/api/status")).status_code == 401


async def test_a_browser_signs_in_by_the_form_and_one_of_several_is_signed_out(
    home: Path, tmp_path: Path
) -> None:
    word, page = "correct horse battery", {"accept": "text/html"}
    async with (
        running(home, tmp_path, password=word) as visit,
        httpx2.AsyncClient(base_url=visit.url) as one,
        httpx2.AsyncClient(base_url=visit.url) as two,
    ):
        used = await one.get("/login?ticket=used", headers=page)
        assert (used.status_code, "hone serve" in used.text) == (401, True)
        assert "has been used already" in used.text
        own = {"origin": visit.url}
        assert (await one.post("/login", data={"password": word})).status_code == 403
        wrong = await one.post("/login", data={"password": "wrong"}, headers=own)
        assert (wrong.status_code, "not the password" in wrong.text) == (401, True)
        assert (await one.post("/login", data={"password": word}, headers=own)).status_code == 303
        assert (await two.get((await visit.post("/api/tickets"))["url"])).status_code == 303
        logins = (await one.get("/api/logins")).json()["logins"]
        assert [each["here"] for each in logins] == [True, False]
        path = f"/api/logins/{logins[1]['login']}"
        assert (await one.request("DELETE", path, headers={**JSON, **own})).status_code == 200
        assert ((await one.get("/api/status")).status_code, (await two.get("/api/status")).status_code) == (
            200,
            401,
        )
        kept = dict(one.cookies)
        assert (await one.post("/api/logout", json={}, headers=own)).status_code == 200
        async with httpx2.AsyncClient(base_url=visit.url, cookies=kept) as thief:
            assert (await thief.get("/api/status")).status_code == 401


async def test_every_answer_forbids_foreign_scripts_frames_and_caches(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit, httpx2.AsyncClient() as stranger:
        answers = [
            await stranger.get(f"{visit.url}/health"),
            await stranger.get(f"{visit.url}/api/status"),
            await stranger.get(f"{visit.url}/", headers={"accept": "text/html"}),
            await visit.client.get("/api/status"),
            await visit.client.get("/nothing"),
            await visit.client.put("/api/status", json={}),
        ]
        assert [each.status_code for each in answers] == [200, 401, 401, 200, 404, 405]
        for each in answers:
            assert {name: each.headers.get(name) for name in HEADERS} == HEADERS
            assert "access-control-allow-origin" not in each.headers
        policy = HEADERS["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "<script" not in answers[2].text


async def test_a_request_that_is_too_large_is_refused_whether_or_not_it_says_so(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        response = await visit.client.post("/api/skills", content=b" " * (LARGEST + 1), headers=JSON)
        assert response.status_code == 413

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(LARGEST // 1_000_000 + 2):
                yield b" " * 1_000_000

        response = await visit.client.post("/api/skills", content=endless(), headers=JSON)
        assert response.status_code == 413


async def test_a_password_opens_the_door_and_cannot_be_guessed(home: Path, tmp_path: Path) -> None:
    word = "correct horse battery"
    clock = ManualClock(datetime.now(UTC))
    keys = Keys("k" * 40, clock, 1, word)
    assert keys.takes_password(word)
    for _ in range(GUESSES):
        assert not keys.takes_password("wrong")
    assert not keys.takes_password(word)
    clock.advance(PAUSE + 1)
    assert keys.takes_password(word)
    async with running(home, tmp_path, password=word) as visit, httpx2.AsyncClient() as browser:
        closed = await browser.get(f"{visit.url}/login")
        assert closed.status_code == 401
        assert closed.headers["www-authenticate"].startswith("Basic")
        assert (await browser.get(f"{visit.url}/login", auth=("me", "wrong"))).status_code == 401
        assert (await browser.get(f"{visit.url}/api/status", auth=("me", word))).status_code == 401
        assert (await browser.get(f"{visit.url}/login", auth=("me", word))).status_code == 303
        assert (await browser.get(f"{visit.url}/api/status")).status_code == 200


def test_tickets_and_cookies_end() -> None:
    clock = ManualClock()
    keys = Keys("k" * 40, clock, 1)
    ticket, late, cookie = keys.ticket(), keys.ticket(), keys.cookie()
    assert not keys.takes_ticket("")
    assert keys.takes_ticket(ticket)
    assert not keys.takes_ticket(ticket)
    clock.advance(WAIT.total_seconds() + 1)
    assert not keys.takes_ticket(late)
    assert keys.takes_cookie(cookie)
    assert not Keys("k" * 40, clock, 1, "another password").takes_cookie(cookie)
    clock.advance(STAY)
    assert not keys.takes_cookie(cookie)
    assert not keys.takes_cookie("")


def test_the_key_is_made_once_and_only_the_owner_can_read_it(tmp_path: Path) -> None:
    key = stored(tmp_path / "home")
    assert stored(tmp_path / "home") == key
    assert ((tmp_path / "home/serve.key").stat().st_mode & 0o777) == 0o600
    (tmp_path / "home/serve.key").write_text("\n")
    with pytest.raises(StoreError, match="holds no key"):
        stored(tmp_path / "home")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_an_address_that_others_can_reach_needs_a_password(host: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="password"):
        Address(host).check()
    Address(host, names=("hone.example.org",), password="correct horse battery").check()
    assert Address(host, 80, ("hone.example.org",), "x").hosts(80) >= {"hone.example.org"}
    assert not Address(host, 80).hosts(80) & {"localhost:80", "127.0.0.1:80"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_this_machine_alone_needs_none(host: str) -> None:
    Address(host).check()


def test_a_wildcard_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="--name"):
        Address("0.0.0.0", password="correct horse battery").check()


def test_a_password_that_is_easy_to_guess_is_refused(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("secret\n")
    with pytest.raises(Refused, match="12 characters"):
        password(tmp_path / "word")
    with pytest.raises(Refused, match="cannot be read"):
        password(tmp_path / "nothing")


async def test_the_command_refuses_to_be_open_to_others(home: Path, tmp_path: Path) -> None:
    ended = await hone("serve", "--host", "0.0.0.0", env=environment(home), folder=tmp_path)
    assert (ended.code, ended.out) == (1, "")
    assert "--password-file" in ended.err


async def test_a_home_that_cannot_be_opened_is_said_before_anybody_is_asked_in(
    home: Path, tmp_path: Path
) -> None:
    (home / "hone.db").write_text("This is no database, and none was ever here.\n" * 99)
    ended = await hone("serve", "--port", "0", env=environment(home), folder=tmp_path)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"{home / 'hone.db'} is not a database")
    assert ended.err.count("\n") == 1


async def test_a_server_that_could_keep_nothing_says_so_and_does_not_start(
    home: Path, tmp_path: Path
) -> None:
    ended = await hone("--home", "/proc/hone", "serve", "--port", "0", env=environment(home), folder=tmp_path)
    assert (ended.code, ended.out) == (1, "")
    assert "/proc/hone cannot be written, and a server has to keep what it answers." in ended.err


def test_a_server_starts_although_the_disk_cannot_keep_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int) -> None:
        if S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", refuse)
    with published(tmp_path, PublishedAddress("http://127.0.0.1:1", "127.0.0.1", 1)):
        assert (tmp_path / FILE).exists()
