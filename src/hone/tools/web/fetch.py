"""Read the web: web_fetch gets one page, and web_search searches if a search engine is configured."""

import asyncio
import codecs
import re
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from hone.core.clock import Clock, SystemClock
from hone.core.errors import HoneError
from hone.core.loading import import_object
from hone.core.permissions import Action, Request
from hone.core.permit import Effect
from hone.core.regex import regex
from hone.core.secrets import mask_password, redact
from hone.core.tool import Outcome, Tool, ToolKind, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.tools.define import tool
from hone.tools.web.hops import FetchedPage, Getter, PageExchange, Unfetched, check, follow
from hone.tools.web.layout import Readable

READER = "hone.tools.web.readable:readable"
"""Loaded with the first page: it contains the HTML entities, and most turns fetch no page."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_SNIPPET = 400
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEADER = regex(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)
_DECLARED = regex(
    rb"""<meta\b[^>]{0,400}?\bcharset\s*=\s*["']?([\w.:-]{1,40})|<\?xml\b[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_HEAD = 2_048
# Python knows more codecs than the web; some of them unpack, run in quadratic time or produce broken text.
_ON_THE_WEB = regex(
    r"utf-8|utf-16(-[lb]e)?|ascii|iso8859-\d+|cp\d+|koi8[-_].|mac[-_]\w+|tis-620"
    r"|gb2312|gbk|gb18030|big5\w*|euc_\w+|shift_jis\w*|iso2022_\w+|hz"
)
_HINTS = {
    403: "Its settings must list json under search.formats.",
    429: "It limits requests; its limiter may need an exception for Hone.",
}


class PageLimits(Struct, frozen=True):
    seconds: float = 30.0
    """For a page, including its redirects."""
    size: int = 2 * 1024 * 1024
    """The most bytes of an answer to read."""
    room: int = 15_000
    """The most characters of one result, including its list of URLs."""


LIMITS = PageLimits()


def web_tools(
    fetch: Getter,
    search: Getter | None = None,
    endpoint: str = "",
    *,
    clock: Clock | None = None,
    limits: PageLimits = LIMITS,
) -> list[Tool]:
    """Return the web tools. `fetch` must open no socket to an address that is not public. `search` only
    contacts the endpoint that the owner chose, which may be anywhere."""
    clock = clock or SystemClock()
    tools: list[Tool] = [_fetching(fetch, clock, limits)]
    if search is not None and endpoint:
        tools.append(_searching(search, endpoint, clock, limits))
    return tools


def _fetching(getter: Getter, clock: Clock, limits: PageLimits) -> Tool:
    @tool(effects={Effect.NETWORK}, readonly=True, kind=ToolKind.RESEARCH)
    async def web_fetch(
        context: ToolContext,
        url: Annotated[str, "a public http:// or https:// URL"],
        offset: Annotated[int, "first character to show", msgspec.Meta(ge=0)] = 0,
    ) -> Outcome:
        """Read a web page as text. A long page comes in pieces; the result gives the next offset."""

        async def admit(hop: str) -> str:
            return await context.refusal(Request("web_fetch", Action.FETCH, hop, hop, follows=True))

        try:
            no = await context.refusal(Request("web_fetch", Action.FETCH, check(url), url))
            if no:
                return refused(f"Not fetched. {no}")
            async with clock.timeout(limits.seconds):
                answer = await follow(getter, url, limits.size, admit)
        except Unfetched as reason:
            trust = Trust.FOREIGN if reason.quotes else Trust.AGENT
            return Outcome(f"Not fetched. {reason}", failed=True, trust=trust)
        except TimeoutError:
            return refused(f"Not fetched. It took longer than {limits.seconds:g} seconds.")
        return await asyncio.to_thread(_shown, answer, offset, limits)

    return web_fetch


def _shown(answer: FetchedPage, offset: int, limits: PageLimits) -> Outcome:
    failed = answer.status >= 400
    first = f"{answer.url} (status {answer.status}, {answer.kind or 'no declared type'})"
    page = _page(answer)
    if page is None:
        size = "of unknown size" if answer.length is None else f"of {answer.length:,} bytes"
        return Outcome(f"{first}\nThis is not text but data {size}; it is not shown.", failed=failed)
    whole = len(page.text)
    if offset and offset >= whole:
        return Outcome(
            f"{first}\nThe text ends at {whole:,}; there is nothing at offset {offset:,}.", failed=True
        )
    text, urls, end = page.page(offset, limits.room)
    parts = [f"{first}\nTitle: {page.title}" if page.title else first, text or "(no text)"]
    parts += [f"Links:{urls}"] if urls else []
    parts.append(_position(offset, end, whole))
    if answer.cut:
        parts.append(f"Only the first {limits.size:,} bytes of the page were read.")
    return Outcome("\n\n".join(parts), failed=failed)


def _page(answer: FetchedPage) -> Readable | None:
    if answer.body is None:
        return None
    text = redact(_decode(answer.body, answer.content_type))  # the page is shown in pieces
    if answer.kind in _HTML or (not answer.kind and text.lstrip()[:1] == "<"):
        found: Readable = import_object(READER)(text, answer.url)
        return found
    return None if "\0" in text else Readable(text.replace("\r\n", "\n"))


def _decode(data: bytes, content_type: str) -> str:
    """Decode a body by its byte order mark, else by the header, else by the document's own declaration, else
    as UTF-8."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    header = _HEADER.search(content_type)
    declared = None if header else _DECLARED.search(data[:_HEAD])
    if header:
        name = _codec(header[1])
    else:
        # A declaration that could be read is not in UTF-16.
        name = _codec((declared[1] or declared[2]).decode()) if declared else ""
        name = "" if name.startswith("utf-16") else name
    return data.decode(name or "utf-8", "replace")


def _codec(label: str) -> str:
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return ""
    # Browsers read both as the Windows set that includes them.
    if name in {"ascii", "iso8859-1"}:
        return "cp1252"
    return name if _ON_THE_WEB.fullmatch(name) else ""


def _position(start: int, end: int, whole: int) -> str:
    if end < whole:
        return f"Characters {start:,} to {end:,} of {whole:,}. Continue with offset={end}."
    return f"Characters {start:,} to {end:,}: the end." if start else f"That is all: {whole:,} characters."


class _Hit(Struct):
    url: str | None = None
    title: str | None = None
    content: str | None = None


class _Hits(Struct):
    results: list[_Hit]


def _searching(getter: Getter, endpoint: str, clock: Clock, limits: PageLimits) -> Tool:
    @tool(effects={Effect.NETWORK}, readonly=True, kind=ToolKind.RESEARCH)
    async def web_search(
        context: ToolContext,
        query: Annotated[str, "what to look for"],
        limit: Annotated[int, "how many results", msgspec.Meta(ge=1, le=30)] = 8,
    ) -> Outcome:
        """Search the web. Returns titles, URLs and snippets. Read a result with web_fetch."""
        asked = urlencode({"q": query.strip(), "format": "json"}, errors="replace")
        # The owner chose this server, so only a denial stops it.
        no = await context.refusal(Request("web_search", Action.FETCH, endpoint, follows=True))
        if no:
            return refused(f"Not searched. {no}")
        try:
            async with clock.timeout(limits.seconds):
                url = check(f"{endpoint.rstrip('/')}/search?{asked}")
                async with getter.get(url, {"Accept": "application/json"}) as exchange:
                    return await _found(exchange, query, limit, limits.size)
        except (Unfetched, HoneError) as error:
            reason, quotes = str(error), not isinstance(error, Unfetched) or error.quotes
        except TimeoutError:
            reason, quotes = f"It took longer than {limits.seconds:g} seconds.", False
        text = f"Not searched. The search engine is {mask_password(endpoint)}. {reason}"
        return Outcome(text, failed=True, trust=Trust.FOREIGN if quotes else Trust.AGENT)

    return web_search


async def _found(exchange: PageExchange, query: str, limit: int, size: int) -> Outcome:
    status = exchange.response.status
    if status != 200:
        hint = _HINTS.get(status, "")
        return refused(f"Not searched. The search engine answered {status}. {hint}".rstrip())
    try:
        hits = msgspec.json.decode(await exchange.read(size), type=_Hits).results
    except (ValueError, RecursionError):
        return refused("Not searched. The search engine did not answer with JSON the way SearXNG does.")
    entries = [_entry(number, hit) for number, hit in enumerate(hits[:limit], 1)]
    nothing = Outcome(f"Nothing was found for {query!r}.", trust=Trust.AGENT)
    return Outcome("\n".join(entries)) if entries else nothing


def _entry(number: int, hit: _Hit) -> str:
    title, url, snippet = (_line(each or "") for each in (hit.title, hit.url, hit.content))
    return "\n   ".join(filter(None, (f"{number}. {title or '(no title)'}", url, snippet)))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SNIPPET else f"{line[:_SNIPPET].rstrip()}…"
