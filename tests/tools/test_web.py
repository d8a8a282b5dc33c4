"""web_fetch and web_search against a real server on loopback, behind made-up names and addresses."""

import asyncio
import json
from functools import partial

import pytest

from hone.core.clock import ManualClock, SystemClock
from hone.core.permit import Effect
from hone.core.tool import Tool, ToolKind
from hone.models.http import Http
from hone.models.http.addresses import public_only
from hone.tools.web.fetch import PageLimits, web_tools
from tests.core.secret_shapes import TOKEN_SHAPES
from tests.models import loopback
from tests.models.loopback import Certificate, Reader, Writer, client, free_port, request, serving, turn
from tests.tools.internet import PUBLIC, Internet, ask, internet, moved, page

quiet = loopback.quiet
certificate = loopback.certificate
certified = loopback.certified

SITE = {"site.test": [[PUBLIC]], "other.test": [[PUBLIC]]}
SMALL = PageLimits(room=1_200)


async def fetched(answer: bytes, url: str = "http://site.test/a", **arguments: object) -> tuple[str, bool]:
    async with internet(lambda host, path: answer, SITE) as (_, fetch):
        outcome = await ask(fetch, url=url, **arguments)
        return outcome.text, outcome.failed


async def test_a_page_comes_with_its_address_status_title_links_and_length() -> None:
    text, failed = await fetched(page("<title>T &amp; U</title><h1>Hi</h1><a href='/b'>B</a>"))
    assert not failed
    assert text == (
        "http://site.test/a (status 200, text/html)\nTitle: T & U\n\n# Hi\n\nB [1]\n\n"
        "Links:\n[1] http://site.test/b\n\nThat is all: 11 characters."
    )


@pytest.mark.parametrize(
    ("body", "kind", "shown"),
    [
        ('{"a": "<b>"}', "application/json", '{"a": "<b>"}'),
        ("<a>&amp;</a>", "application/rss+xml", "<a>&amp;</a>"),
        ("one\r\n two", "text/plain", "one\n two"),
        ("key: value", "application/x-yaml; charset=utf-8", "key: value"),
        ("<p>sniffed", "", "sniffed"),
        ("plain", "", "plain"),
        ("", "text/html", "(no text)"),
        ("<p>b\u00fc\u00dfe".encode("cp1252"), "text/html; charset=ISO-8859-1", "b\u00fc\u00dfe"),
        ("<meta charset=shift_jis><p>\u65e5\u672c".encode("shift_jis"), "text/html", "\u65e5\u672c"),
        ("<meta charset=utf-16><p>\u65e5".encode(), "text/html", "\u65e5"),
        ("\ufeff<p>\u65e5".encode("utf-16-le"), "text/html; charset=utf-8", "\u65e5"),
        ("<?xml version='1.0' encoding='koi8-r'?>\u0434\u0430".encode("koi8-r"), "text/xml", "\u0434\u0430"),
        (b"caf\xe9", "text/plain", "caf\ufffd"),
        (b"caf\xc3\xa9", 'text/plain; charset="no-such"', "caf\u00e9"),
        (b"a-b", "text/plain; charset=punycode", "a-b"),
        (b"\\ud800", "text/plain; charset=unicode_escape", "\\ud800"),
    ],
)
async def test_text_of_any_kind_and_encoding_is_shown(body: str | bytes, kind: str, shown: str) -> None:
    text, failed = await fetched(page(body, kind))
    assert not failed
    assert shown in text.partition("\n\n")[2]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (page(b"%PDF-1.7 secret", "application/pdf"), "not text but data of 15 bytes"),
        (page(b"\x89PNG", "image/png"), "image/png"),
        (page(b"secret\x00\x01", "text/plain"), "not text but data"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nConnection: close\r\n\r\n", "data of unknown size"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\nContent-Length: "
            + b"9" * 5_000
            + b"\r\n\r\n0\r\n\r\n",
            "data of unknown size",
        ),
    ],
)
async def test_what_is_not_text_is_named_and_not_shown(answer: bytes, words: str) -> None:
    text, failed = await fetched(answer)
    assert not failed
    assert words in text
    assert "secret" not in text


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
async def test_a_secret_on_a_page_that_comes_in_pieces_is_in_none_of_them(kind: str) -> None:
    token = TOKEN_SHAPES["GitHub token"]
    for before in range(SMALL.room - len(token) - 300, SMALL.room, 20):
        whole = page(f"{'x ' * (before // 2)}{token} {'y ' * 900}", kind)
        async with internet(partial(lambda answer, *_: answer, whole), SITE, limits=SMALL) as (_, fetch):
            for offset in (0, before + 10):
                text = (await ask(fetch, url="http://site.test/", offset=offset)).text
                assert token[12:24] not in text


@pytest.mark.parametrize("status", [404, 500])
async def test_a_refusing_server_s_page_is_shown_as_a_failure(status: int) -> None:
    text, failed = await fetched(page("<p>Nothing here.", status=status))
    assert failed
    assert f"(status {status}, text/html)" in text
    assert "Nothing here." in text


async def test_an_offset_reads_on_to_the_end() -> None:
    words = " ".join(f"word{number}" for number in range(1_000))
    async with internet(lambda host, path: page(words), SITE, limits=SMALL) as (_, fetch):
        offset, seen = 0, list[str]()
        while True:
            text = (await ask(fetch, url="http://site.test/", offset=offset)).text
            seen += text.split("\n\n")[1].split()
            if "Continue with offset=" not in text:
                break
            offset = int(text.rpartition("offset=")[2].removesuffix("."))
        assert " ".join(seen) == words
        assert text.endswith(f"to {len(words):,}: the end.")
        beyond = await ask(fetch, url="http://site.test/", offset=len(words))
        assert beyond.failed
        assert f"The text ends at {len(words):,}" in beyond.text
        assert (await ask(fetch, url="http://site.test/", offset=-1)).failed


async def test_of_an_endless_page_the_beginning_is_read() -> None:
    sent = 0

    async def script(reader: Reader, writer: Writer) -> None:
        nonlocal sent
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"endless " * 8_192)
            await writer.drain()
            sent += 65_536

    async with serving(script) as site:
        net = Internet(site.port, dict(SITE))
        http = Http(SystemClock(), admit=public_only, resolve=net.resolve, dial=net.dial)
        outcome = await ask(web_tools(http)[0], url="http://site.test/")
    assert not outcome.failed
    assert outcome.text.endswith("Only the first 2,097,152 bytes of the page were read.")
    assert "of 2,097,152. Continue" in outcome.text
    assert sent < 16 * 1024 * 1024


async def test_a_server_that_trickles_is_left_at_the_deadline() -> None:
    clock = ManualClock()

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b".")
            await turn()
            clock.advance(1)

    async with serving(script) as site:
        net = Internet(site.port, dict(SITE))
        http = Http(clock, admit=public_only, resolve=net.resolve, dial=net.dial)
        outcome = await ask(web_tools(http, clock=clock)[0], url="http://site.test/")
    assert outcome.failed
    assert outcome.text == "Not fetched. It took longer than 30 seconds."


async def test_redirects_are_followed_to_the_page_and_its_address_is_told() -> None:
    hops = {
        "/": "/b/c?x=1#f",
        "/b/c?x=1": "../d",
        "/d": "//other.test/e",
        "/e": "http://site.test:8080/\u00e9",
    }

    def pages(host: str, path: str) -> bytes:
        return moved(hops[path], 307) if path in hops else page(f"{host} {path}", "text/plain")

    async with internet(pages, SITE) as (net, fetch):
        outcome = await ask(fetch, url=" http://site.test/#top ")
        assert not outcome.failed
        assert outcome.text.startswith("http://site.test:8080/\u00e9 (status 200, text/plain)\n\n")
        assert "site.test:8080 /%C3%A9" in outcome.text
        assert net.dialled == [(PUBLIC, 80), (PUBLIC, 80), (PUBLIC, 8080)]


async def test_the_fifth_redirect_is_followed_and_the_sixth_is_not() -> None:
    def pages(host: str, path: str) -> bytes:
        left = int(path[1:])
        return moved(f"/{left - 1}") if left else page("arrived")

    async with internet(pages, SITE) as (_, fetch):
        assert "arrived" in (await ask(fetch, url="http://site.test/5")).text
        outcome = await ask(fetch, url="http://site.test/6")
        assert outcome.failed
        assert outcome.text == (
            "Not fetched. There are more than 5 redirects, the last one to http://site.test/0."
        )


async def test_a_redirect_without_a_place_is_shown_as_it_is() -> None:
    text, failed = await fetched(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")
    assert not failed
    assert "(status 302, no declared type)" in text


async def test_a_redirect_away_from_encryption_is_refused(certified: Certificate) -> None:
    def pages(host: str, path: str) -> bytes:
        return moved("http://site.test/") if path == "/" else page("safe")

    names = {"secure.test": [[PUBLIC]], **SITE}
    async with internet(pages, names, tls=certified.server) as (net, fetch):
        assert "safe" in (await ask(fetch, url="https://secure.test/x")).text
        outcome = await ask(fetch, url="https://secure.test/")
        assert outcome.failed
        assert outcome.text.endswith("redirects from https to http://site.test/, which is not encrypted.")
        assert {port for _, port in net.dialled} == {443}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://absent.test/", "No address is known for absent.test."),
        ("http://127.0.0.1/", "No connection is made to 127.0.0.1:80: 127.0.0.1 is this machine itself."),
        ("http://site.test:22/", "No connection is made to site.test:22: port 22 is not for web pages."),
        ("http://a..b/", "The address names no possible host: 'a..b'."),
        ("http://me:pw@site.test/", "The address contains a user name or a password."),
        ("site.test", "The address must begin with http:// or https://."),
        ("file:///etc/passwd", "The address must begin with http:// or https://."),
        ("http://site.test/\n", "The address contains a backslash, a line break or a control character."),
        ("http://site.test:0/", "There is no port 0."),
        ("http://site.test/" + "a" * 4_000, "The address is longer than 4,000 characters."),
    ],
)
async def test_a_url_that_leads_nowhere_gets_a_sentence(url: str, reason: str) -> None:
    assert await fetched(page("never"), url) == (f"Not fetched. {reason}", True)


async def test_a_refusal_behind_a_redirect_names_it() -> None:
    text, failed = await fetched(moved("http://10.0.0.1/x"))
    assert failed
    assert text == (
        "Not fetched. It redirects to http://10.0.0.1/x. "
        "No connection is made to 10.0.0.1:80: 10.0.0.1 is in a private network."
    )
    text, _ = await fetched(moved("gopher://10.0.0.1/"))
    assert text == (
        "Not fetched. It redirects to 'gopher://10.0.0.1/'. The address must begin with http:// or https://."
    )


async def test_a_stopped_call_leaves_nothing_open() -> None:
    asked = asyncio.Event()

    async def script(reader: Reader, writer: Writer) -> None:
        await request(reader)
        asked.set()
        assert await reader.read() == b""
        asked.clear()

    async with serving(script) as site:
        net = Internet(site.port, dict(SITE))
        http = Http(SystemClock(), admit=public_only, resolve=net.resolve, dial=net.dial)
        task = asyncio.create_task(ask(web_tools(http)[0], url="http://site.test/"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await loopback.until(lambda: not asked.is_set())


HITS = {
    "results": [
        {"title": "First\nhit", "url": "https://a.test/", "content": "About  <b>a</b>. " * 100, "score": 1.5},
        {"title": None, "url": "https://b.test/", "content": None},
        {"title": "Third", "url": "https://c.test/"},
    ],
    "answers": [{"answer": 1}],
}


async def searched(answer: bytes, **arguments: object) -> tuple[str, bool, list[str]]:
    asked = list[str]()

    async def script(reader: Reader, writer: Writer) -> None:
        asked.append((await request(reader)).decode().split(" ")[1])
        writer.write(answer)
        await writer.drain()

    async with serving(script) as site, client() as http:
        search = web_tools(http, http, f"http://127.0.0.1:{site.port}/engine/")[1]
        outcome = await ask(search, **arguments)
        return outcome.text, outcome.failed, asked


async def test_a_search_asks_the_endpoint_wherever_it_is_and_lists_what_it_found() -> None:
    text, failed, asked = await searched(
        page(json.dumps(HITS), "application/json"), query="b\u00fccher & more?", limit=2
    )
    assert not failed
    assert asked == ["/engine/search?q=b%C3%BCcher+%26+more%3F&format=json"]
    first, second = text.split("\n2. ")
    assert first.startswith("1. First hit\n   https://a.test/\n   About <b>a</b>. About")
    assert first.endswith("…")
    assert len(first) < 500
    assert second == "(no title)\n   https://b.test/"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (page("no", status=403), "answered 403. Its settings must list json under search.formats."),
        (page("no", status=429), "answered 429."),
        (moved("https://elsewhere.test/"), "answered 302."),
        (page("<html>", "text/html"), "did not answer with JSON"),
        (page("[]", "application/json"), "did not answer with JSON"),
        (page("[" * 100_000, "application/json"), "did not answer with JSON"),
        (page('{"results": [7]}', "application/json"), "did not answer with JSON"),
        (b"", "closed the connection without an answer"),
    ],
)
async def test_a_search_that_fails_says_why(answer: bytes, words: str) -> None:
    text, failed, _ = await searched(answer, query="x")
    assert failed
    assert text.startswith("Not searched")
    assert words in text


async def test_a_search_that_finds_nothing_says_so() -> None:
    text, failed, _ = await searched(page('{"results": []}', "application/json"), query="x")
    assert (text, failed) == ("Nothing was found for 'x'.", False)


async def test_an_endpoint_where_nobody_is_or_that_is_none_is_named() -> None:
    async with client() as http:
        nobody = f"http://127.0.0.1:{free_port()}"
        for endpoint, reason in (
            (nobody, "Nothing answers at"),
            ("localhost", "The address must begin with"),
        ):
            outcome = await ask(web_tools(http, http, endpoint)[1], query="x")
            assert outcome.failed
            assert outcome.text.startswith(f"Not searched. The search engine is {endpoint}. {reason}")
        hidden = await ask(web_tools(http, http, "https://me:hunter2@engine.test")[1], query="x")
        assert "engine is https://me:…@engine.test. The address contains a user name" in hidden.text


def names(tools: list[Tool]) -> list[str]:
    return [tool.spec.name for tool in tools]


def test_search_is_offered_only_where_an_endpoint_is_set_and_both_only_read_from_the_network() -> None:
    http = Http(ManualClock())
    assert names(web_tools(http, http, "")) == ["web_fetch"]
    assert names(web_tools(http, None, "http://localhost:8888")) == ["web_fetch"]
    both = web_tools(http, http, "http://localhost:8888")
    assert names(both) == ["web_fetch", "web_search"]
    for tool in both:
        assert tool.spec.effects == {Effect.NETWORK}
        assert tool.spec.readonly
        assert tool.spec.kind is ToolKind.RESEARCH
