"""Where a URL leads, and through which proxy."""

import pytest

from hone.core.errors import Rejected
from hone.models.http.route import Proxies, Proxy, Route, choose_proxy, is_loopback, locate, read_proxies

NONE = Proxies()


@pytest.mark.parametrize(
    ("url", "route", "lines"),
    [
        ("http://example.com", Route(False, "example.com", 80), "/ HTTP/1.1\r\nHost: example.com\r\n"),
        (
            "https://Example.COM/v1/models?a=1&b=%20#part",
            Route(True, "example.com", 443),
            "/v1/models?a=1&b=%20 HTTP/1.1\r\nHost: example.com\r\n",
        ),
        (
            "http://localhost:11434/v1",
            Route(False, "localhost", 11434),
            "/v1 HTTP/1.1\r\nHost: localhost:11434\r\n",
        ),
        ("https://[::1]:8443/", Route(True, "::1", 8443), "/ HTTP/1.1\r\nHost: [::1]:8443\r\n"),
        ("http://[::1]/", Route(False, "::1", 80), "/ HTTP/1.1\r\nHost: [::1]\r\n"),
        (
            "http://b\u00fccher.example/\u00e9 x",
            Route(False, "xn--bcher-kva.example", 80),
            "/%C3%A9%20x HTTP/1.1\r\nHost: xn--bcher-kva.example\r\n",
        ),
        (
            "http://a.example/x\r\nEvil: 1",
            Route(False, "a.example", 80),
            "/xEvil:%201 HTTP/1.1\r\nHost: a.example\r\n",
        ),
    ],
)
def test_a_url_leads_to_a_server_and_a_request_line(url: str, route: Route, lines: str) -> None:
    place = locate(url, NONE)
    assert place.route == route
    assert place.lines == lines


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com/v1",
        "ftp://example.com",
        "http://",
        "http://user:secret@example.com",
        "http://secret@example.com",
        "http://example.com:port",
        "http://example.com:99999",
        "http://[::1",
        "http://[::g]/",
        "http://a..b/",
        "http://" + "a" * 64 + ".example/",
        "http://a b/",
        "http://" + "a." * 200,
        "http://\u2100.example/",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_a_password(url: str) -> None:
    with pytest.raises(Rejected, match=r"^The address .*\.$") as refusal:
        locate(url, NONE)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("environ", "url", "proxy"),
    [
        ({}, "https://a.example", None),
        ({"HTTPS_PROXY": "http://p:3128"}, "https://a.example", Proxy(False, "p", 3128)),
        ({"HTTPS_PROXY": "http://p:3128"}, "http://a.example", None),
        ({"http_proxy": "p:3128"}, "http://a.example", Proxy(False, "p", 3128)),
        ({"ALL_PROXY": "https://p"}, "http://a.example", Proxy(True, "p", 443)),
        ({"ALL_PROXY": "http://q", "https_proxy": "http://p"}, "https://a.example", Proxy(False, "p", 80)),
        ({"https_proxy": "http://p", "HTTPS_PROXY": "http://q"}, "https://a.example", Proxy(False, "p", 80)),
        (
            {"https_proxy": "http://me:p%40ss@[::2]:1/"},
            "https://a.example",
            Proxy(False, "::2", 1, "Basic bWU6cEBzcw=="),
        ),
        ({"all_proxy": "http://p"}, "http://localhost:1", None),
        ({"all_proxy": "http://p"}, "http://127.0.0.9", None),
        ({"all_proxy": "http://p"}, "http://[::1]", None),
        ({"all_proxy": "http://p"}, "http://127.example.com", Proxy(False, "p", 80)),
        ({"all_proxy": "http://p", "no_proxy": "*"}, "http://a.example", None),
        ({"all_proxy": "http://p", "NO_PROXY": "b, a.example"}, "http://a.example", None),
        ({"all_proxy": "http://p", "no_proxy": ".example"}, "http://a.example", None),
        ({"all_proxy": "http://p", "no_proxy": "*.Example"}, "http://a.example", None),
        ({"all_proxy": "http://p", "no_proxy": "a.example:80"}, "http://a.example", None),
        ({"all_proxy": "http://p", "no_proxy": "a.example:81"}, "http://a.example", Proxy(False, "p", 80)),
        ({"all_proxy": "http://p", "no_proxy": "ample,,"}, "http://a.example", Proxy(False, "p", 80)),
        ({"all_proxy": "http://p", "no_proxy": "10.0.0.0/8,x/y"}, "http://10.2.3.4", None),
        ({"all_proxy": "http://p", "no_proxy": "10.0.0.0/8,x/y"}, "http://a.example", Proxy(False, "p", 80)),
        ({"all_proxy": "http://p", "no_proxy": "[fd00::1]:80"}, "http://[fd00::1]", None),
        ({"all_proxy": "http://p", "no_proxy": "fd00::1"}, "http://[fd00::1]", None),
    ],
)
def test_the_environment_says_which_proxy_is_used(
    environ: dict[str, str], url: str, proxy: Proxy | None
) -> None:
    assert locate(url, read_proxies(environ)).route.proxy == proxy


@pytest.mark.parametrize("url", ["socks5://me:secret@p:1080", "http://p:secret", "http://"])
def test_a_proxy_that_cannot_be_used_is_an_error_and_not_a_way_around_it(url: str) -> None:
    with pytest.raises(Rejected) as refusal:
        choose_proxy(Proxies(secure=url), True, "a.example", 443)
    assert "secret" not in str(refusal.value)


def test_a_proxy_with_credentials_gets_them_with_an_absolute_target_and_shows_them_nowhere() -> None:
    place = locate("http://a.example/x", read_proxies({"http_proxy": "http://me:secret@p"}))
    assert place.lines == (
        "http://a.example/x HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"
    )
    assert "bWU6c2VjcmV0" not in repr(place)
    assert "Proxy-Authorization" not in locate("https://a.example", Proxies(secure="http://me:x@p")).lines


@pytest.mark.parametrize(
    "host", ["localhost", "a.localhost", "127.0.0.1", "127.1", "::1", "::ffff:127.0.0.1"]
)
def test_loopback_is_known_by_name_and_number(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["127.example.com", "localhost.example", "128.0.0.1", "::2", "", "fe80::1%lo"]
)
def test_what_only_looks_like_loopback_is_not(host: str) -> None:
    assert not is_loopback(host)
