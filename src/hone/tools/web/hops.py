"""Follow a URL through its redirects to the final answer. Every hop is checked like the first.

The getter decides which addresses may be connected to, for every socket it opens.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from urllib.parse import SplitResult, urldefrag, urljoin, urlsplit

from msgspec import Struct

from hone.core.errors import HoneError
from hone.core.regex import regex


class PageHead(Protocol):
    """Names of headers are in lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


class PageExchange(Protocol):
    @property
    def response(self) -> PageHead: ...

    async def read(self, limit: int | None = None) -> bytes: ...


class Getter(Protocol):
    """Requests one URL. It follows no redirect. If there is no answer, it raises a HoneError whose text is a
    sentence."""

    def get(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[PageExchange]: ...


class Unfetched(Exception):
    """There is no answer. The text says why, in sentences. Some of them quote the server."""

    def __init__(self, text: str, *, quotes: bool = False) -> None:
        super().__init__(text)
        self.quotes = quotes


class FetchedPage(Struct, frozen=True):
    """The answer of the last hop. `body` is None if it is not text and was not read."""

    url: str
    status: int
    content_type: str
    length: int | None
    body: bytes | None
    cut: bool = False

    @property
    def kind(self) -> str:
        return self.content_type.partition(";")[0].strip().lower()


URL_LIMIT = 4_000
_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ACCEPT = {"Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.5"}
# Parsers of URLs disagree about a backslash, and drop line breaks silently.
_AMBIGUOUS = regex(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029\ud800-\udfff]")
_TEXT = regex(
    r"|text/.+|.+[+/](json|xml)|application/(x-)?(javascript|ecmascript|ndjson|yaml|toml|sh|tex|sql|graphql)"
)


Admit = Callable[[str], Awaitable[str]]
"""Tells why a redirect may not be followed; empty if it may."""


async def follow(getter: Getter, url: str, size: int, admit: Admit) -> FetchedPage:
    """Follow a URL. Raises Unfetched. At most `size` bytes of the answer are read."""
    url = check(url)
    for hop in range(_HOPS + 1):
        try:
            async with getter.get(url, _ACCEPT) as exchange:
                location = _location(exchange.response)
                if not location:
                    return await _receive(exchange, url, size)
        except HoneError as error:
            way = f"It redirects to {url}. " if hop else ""
            raise Unfetched(f"{way}{error}", quotes=hop > 0) from error
        url = _next(url, location)
        no = await admit(url)
        if no:
            raise Unfetched(f"It redirects to {url}. {no}", quotes=True)
    raise Unfetched(f"There are more than {_HOPS} redirects, the last one to {url}.", quotes=True)


def check(url: str) -> str:
    """Return the URL without its fragment. Raises Unfetched unless it may be requested."""
    url = url.strip(" ")
    if len(url) > URL_LIMIT:
        raise Unfetched(f"The address is longer than {URL_LIMIT:,} characters.")
    if _AMBIGUOUS.search(url):
        raise Unfetched("The address contains a backslash, a line break or a control character.")
    try:
        parts = urlsplit(url)
        _check_parts(parts)
    except ValueError:
        raise Unfetched("The address cannot be read: its host or port is malformed.") from None
    return urldefrag(url)[0]


def _check_parts(parts: SplitResult) -> None:
    if parts.scheme not in {"http", "https"}:
        raise Unfetched("The address must begin with http:// or https://.")
    if "@" in parts.netloc:
        raise Unfetched("The address contains a user name or a password.")
    if not parts.hostname:
        raise Unfetched("The address names no host.")
    if parts.port == 0:
        raise Unfetched("There is no port 0.")


def _location(head: PageHead) -> str:
    location = head.headers.get("location", "") if head.status in _REDIRECTS else ""
    try:
        # Headers arrive as Latin-1, but non-ASCII text in them is usually UTF-8.
        return location.encode("latin-1").decode()
    except UnicodeError:
        return location


def _next(url: str, location: str) -> str:
    try:
        target = check(urljoin(url, location))
    except ValueError:
        raise Unfetched(f"It redirects to {location[:200]!r}, which cannot be read.", quotes=True) from None
    except Unfetched as refused:
        raise Unfetched(f"It redirects to {location[:200]!r}. {refused}", quotes=True) from None
    if url.startswith("https:") and not target.startswith("https:"):
        raise Unfetched(f"It redirects from https to {target}, which is not encrypted.", quotes=True)
    return target


async def _receive(exchange: PageExchange, url: str, size: int) -> FetchedPage:
    head = exchange.response
    announced = head.headers.get("content-length", "")
    length = int(announced) if re.fullmatch("[0-9]{1,18}", announced) else None
    answer = FetchedPage(url, head.status, head.headers.get("content-type", ""), length, None)
    if not _TEXT.fullmatch(answer.kind):
        return answer
    body = await exchange.read(size + 1)
    return FetchedPage(url, head.status, answer.content_type, length, body[:size], cut=len(body) > size)
