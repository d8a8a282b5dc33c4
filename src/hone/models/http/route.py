"""Where a URL leads: the server, the way to it, and what to ask for there."""

import socket
import string
from urllib.parse import SplitResult, quote, urlsplit

from msgspec import Struct

from hone.core.errors import Rejected
from hone.core.regex import regex
from hone.models.http.proxy import Proxies, Proxy, choose_proxy, spell

_NAME = regex(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
_PORTS = {"http": 80, "https": 443}


class Route(Struct, frozen=True):
    """What two requests must have in common to share a connection."""

    secure: bool
    host: str
    port: int
    proxy: Proxy | None = None

    @property
    def authority(self) -> str:
        """The server as the Host header, and a sentence to the user, name it."""
        place = spell(self.host, self.port)
        return place.removesuffix(":443" if self.secure else ":80")


class ServerAddress(Struct, frozen=True):
    """A route and the first two lines of a request that takes it, without the method."""

    route: Route
    lines: str

    def __repr__(self) -> str:
        return f"ServerAddress(route={self.route!r})"


def locate(url: str, proxies: Proxies, subject: str = "The address of the model server") -> ServerAddress:
    """`subject` is what a refusal calls the URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Rejected(f"{subject} cannot be read.") from None
    if parts.scheme not in _PORTS:
        raise Rejected(f"{subject} must begin with http:// or https://.")
    if "@" in parts.netloc:
        raise Rejected(f"{subject} must not contain a user name or password.")
    host, secure = _host(parts, subject), parts.scheme == "https"
    port = _PORTS[parts.scheme] if port is None else port
    route = Route(secure, host, port, choose_proxy(proxies, secure, host, port))
    return ServerAddress(route, _lines(route, parts))


def _host(parts: SplitResult, subject: str) -> str:
    host = parts.hostname or ""
    try:
        if ":" in host:
            socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
            return host
        name = host if host.isascii() else host.encode("idna").decode()
    except (OSError, ValueError):
        name = ""
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise Rejected(f"{subject} names no possible host: {host!r}.")
    return name


def _lines(route: Route, parts: SplitResult) -> str:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = quote(target, safe=string.punctuation)
    credentials = ""
    if route.proxy is not None and not route.secure:
        target = f"http://{route.authority}{target}"
        if route.proxy.credentials:
            credentials = f"Proxy-Authorization: {route.proxy.credentials}\r\n"
    return f"{target} HTTP/1.1\r\nHost: {route.authority}\r\n{credentials}"
