"""Resolve a URL to a server, a route to it, and a request line. The route may use the environment's proxy.

The proxy's address is not parsed until a request needs it.
"""

import ipaddress
import socket
import string
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct

from hone.core.errors import Rejected
from hone.core.regex import regex

_NAME = regex(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
_PORTS = {"http": 80, "https": 443}
_LOOPBACK_6 = (b"\0" * 15 + b"\1", b"\0" * 10 + b"\xff\xff\x7f")


class Proxy(Struct, frozen=True):
    """`credentials` is the value of the Proxy-Authorization header, or nothing."""

    secure: bool
    host: str
    port: int
    credentials: str = ""

    def __repr__(self) -> str:
        return f"Proxy(secure={self.secure!r}, host={self.host!r}, port={self.port!r})"


class Proxies(Struct, frozen=True):
    """Proxy URLs for http:// and https://, and the hosts to reach directly."""

    plain: str = ""
    secure: str = ""
    exempt: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Proxies(exempt={self.exempt!r})"


def read_proxies(environ: Mapping[str, str]) -> Proxies:
    def value(name: str) -> str:
        return (environ.get(name) or environ.get(name.upper()) or "").strip()

    return Proxies(
        plain=value("http_proxy") or value("all_proxy"),
        secure=value("https_proxy") or value("all_proxy"),
        exempt=tuple(filter(None, (entry.strip().lower() for entry in value("no_proxy").split(",")))),
    )


def choose_proxy(proxies: Proxies, secure: bool, host: str, port: int) -> Proxy | None:
    url = proxies.secure if secure else proxies.plain
    if not url or is_loopback(host) or any(_exempts(entry, host, port) for entry in proxies.exempt):
        return None
    return parse_proxy(url)


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, by name or by number; `127.example.com` is not."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        if ":" in host:
            return socket.inet_pton(socket.AF_INET6, host).startswith(_LOOPBACK_6)
        return socket.inet_aton(host).startswith(b"\x7f")
    except OSError:
        return False


def spell(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_proxy(url: str) -> Proxy:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError:
        raise Rejected("The address of the proxy in the environment cannot be read.") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise Rejected(
            f"The environment asks for a {parts.scheme}:// proxy; Hone can use http:// and https://."
        )
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = "Basic " + b64encode(pair.encode()).decode()
    return Proxy(parts.scheme == "https", parts.hostname, port or _PORTS[parts.scheme], credentials)


def _exempts(entry: str, host: str, port: int) -> bool:
    """Tell whether an entry of NO_PROXY matches: `*`, a network, or a domain and below, perhaps with a
    port."""
    if "/" in entry:
        return _in_network(host, entry)
    if entry.startswith("["):
        entry, _, number = entry[1:].partition("]")
        number = number.removeprefix(":")
    elif entry.count(":") == 1:
        entry, _, number = entry.partition(":")
    else:
        number = ""
    if number and number != str(port):
        return False
    domain = entry.removeprefix("*").removeprefix(".")
    return entry == "*" or host == domain or (bool(domain) and host.endswith(f".{domain}"))


def _in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


class Route(Struct, frozen=True):
    """The properties that two requests must share to use one connection."""

    secure: bool
    host: str
    port: int
    proxy: Proxy | None = None

    @property
    def authority(self) -> str:
        """Return the server's name for the Host header and for error messages."""
        place = spell(self.host, self.port)
        return place.removesuffix(":443" if self.secure else ":80")


class ServerAddress(Struct, frozen=True):
    """A route and the first two lines of a request over it, without the method."""

    route: Route
    lines: str

    def __repr__(self) -> str:
        return f"ServerAddress(route={self.route!r})"


def locate(url: str, proxies: Proxies, subject: str = "The address of the model server") -> ServerAddress:
    """Parse a URL. `subject` is how an error names it."""
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
