"""I3: links for more browsers, who is signed in, and signing out, by command and by a running server."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from hone.core.clock import ManualClock, SystemClock
from hone.web.address_file import FILE as ADDRESS
from hone.web.address_file import PublishedAddress, find_server, published
from hone.web.keys import STAY, Keys
from hone.web.logins import FILE as LOGINS
from hone.web.logins import OFTEN, Logins, describe_browser
from hone.web.tickets import FILE as TICKETS
from hone.web.tickets import MOST, WAIT, Tickets
from tests.cli.driving import environment, hone
from tests.web.rig import Running, running

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1"


def told(home: Path, visit: Running) -> PublishedAddress:
    host, _, port = visit.url.removeprefix("http://").partition(":")
    return PublishedAddress(visit.url, host, int(port))


async def test_links_by_command_let_browsers_in_and_commands_sign_them_out_at_once(
    home: Path, tmp_path: Path
) -> None:
    env = environment(home)
    early = await hone("serve", "link", env=env)
    assert (early.code, "No server is running" in early.err) == (0, True)
    assert early.out.startswith("http://127.0.0.1:8420/login?ticket=")
    async with running(home, tmp_path) as visit, AsyncExitStack() as stack:
        with published(home, told(home, visit)):
            late = await hone("serve", "link", env=env)
        assert late.out.startswith(f"{visit.url}/login?ticket=")
        assert "No server" not in late.err
        links = [f"{visit.url}/login?{each.out.strip().partition('?')[2]}" for each in (early, late)]
        browsers = [
            await stack.enter_async_context(httpx2.AsyncClient(headers={"user-agent": agent}))
            for agent in (FIREFOX, PHONE)
        ]
        for browser, link in zip(browsers, links, strict=True):
            assert (await browser.get(link)).status_code == 303
            assert (await browser.get(link)).status_code == 401
        listed = await hone("serve", "logins", env=env)
        assert "Firefox on Linux" in listed.out
        assert "Safari on iPhone" in listed.out
        rows = json.loads((await hone("serve", "logins", "list", "--json", env=env)).out)
        assert [each["label"] for each in rows] == ["Firefox on Linux", "Safari on iPhone"]
        gone = await hone("serve", "logins", "remove", rows[0]["login"], env=env)
        assert gone.out == "Signed out Firefox on Linux.\n"
        assert [(await each.get(f"{visit.url}/api/status")).status_code for each in browsers] == [401, 200]
        again = await hone("serve", "logins", "remove", rows[0]["login"], env=env)
        assert (again.code, "hone serve logins" in again.err) == (1, True)
        assert (await hone("serve", "logins", "remove", env=env)).code == 2
        await hone("serve", "logins", "remove", "--all", env=env)
        assert (await browsers[1].get(f"{visit.url}/api/status")).status_code == 401
        assert (await visit.client.get("/api/status")).status_code == 200
    for name in (LOGINS, TICKETS):
        assert ((home / name).stat().st_mode & 0o777) == 0o600
    stored = b"".join(each.read_bytes() for each in home.glob("serve-*"))
    for link in links:
        assert link.rpartition("=")[2].encode() not in stored


async def test_browsers_stay_signed_in_after_a_restart_and_over_two_servers(home: Path) -> None:
    clock = ManualClock()
    one = Keys("k" * 40, clock, 1, logins=Logins(clock, home), tickets=Tickets(clock, home))
    two = Keys("k" * 40, clock, 1, logins=Logins(clock, home), tickets=Tickets(clock, home))
    cookie, ticket = one.cookie(), one.ticket()
    assert (two.takes_cookie(cookie) is not None, two.takes_ticket(ticket) is not None) == (True, True)
    assert one.takes_ticket(ticket) is None
    clock.advance(OFTEN.total_seconds())
    assert one.takes_cookie(cookie)
    [login] = two.logins.list()
    assert (login.used - login.created) == OFTEN
    two.logins.remove(login.id)
    assert one.takes_cookie(cookie) is None
    other = one.cookie()
    (home / LOGINS).write_text("not what was written")
    assert (one.takes_cookie(other), one.logins.list()) == (None, ())  # nobody is let in by mistake
    renewed = one.cookie()
    assert two.takes_cookie(renewed)
    clock.advance(STAY)
    assert (two.takes_cookie(renewed), two.logins.list()) == (None, ())


def test_a_ticket_that_many_want_at_once_is_taken_by_one_and_waits_an_hour_at_most(home: Path) -> None:
    clock = ManualClock()
    tickets = Tickets(clock, home)
    words = [tickets.add() for _ in range(3)]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: Tickets(clock, home).take(words[0]), range(8)))
    assert sum(each is not None for each in taken) == 1
    clock.advance(-10)
    assert tickets.take(words[1]) is None  # made in a future that nobody waits for
    clock.advance(WAIT.total_seconds() + 10)
    assert tickets.take(words[2]) is None
    for word in [tickets.add() for _ in range(MOST + 5)][:5]:
        assert tickets.take(word) is None
    nowhere = Tickets(clock)
    assert nowhere.take(nowhere.add())


async def test_a_home_that_cannot_be_written_still_lets_browsers_in(home: Path) -> None:
    blocked = home / "file"
    blocked.write_text("in the place of a folder")
    clock = SystemClock()
    keys = Keys("k" * 40, clock, 1, logins=Logins(clock, blocked), tickets=Tickets(clock, blocked))
    word = keys.ticket()
    assert keys.takes_ticket(word)
    assert keys.takes_ticket(word) is None
    cookie = keys.cookie()
    assert keys.takes_cookie(cookie)
    keys.logins.remove(keys.logins.list()[0].id)
    assert keys.takes_cookie(cookie) is None


def test_only_a_server_that_answers_is_found_and_the_later_one_is_told(home: Path) -> None:
    assert find_server(home) is None
    one, two = PublishedAddress("http://a", "127.0.0.1", 1), PublishedAddress("http://b", "127.0.0.1", 1)
    with published(home, one):
        with published(home, two):
            assert find_server(home) is None  # nobody listens there
        assert not (home / ADDRESS).exists()
        (home / ADDRESS).write_text("[]")
        assert find_server(home) is None
    assert (home / ADDRESS).exists()


@pytest.mark.parametrize(
    ("agent", "label"),
    [
        (FIREFOX, "Firefox on Linux"),
        (PHONE, "Safari on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (Macintosh) Chrome/140.0 Safari/537.36", "Chrome on Mac"),
        ("curl/8.0 \x1b[31m<b>", "A browser"),
        ("", "A browser"),
    ],
)
def test_a_browser_is_named_as_people_name_it(agent: str, label: str) -> None:
    assert describe_browser(agent) == label
