"""The proxy that the environment asks for. Nothing is parsed before a request needs it."""

import ipaddress
import socket
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from hone.core.errors import Rejected

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
    """URLs for http:// and https://, and the hosts that are reached directly."""

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
    """This machine itself, by name or by number; `127.example.com` is neither."""
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
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Rejected(
            f"The environment asks for a {parts.scheme}:// proxy; Hone can use http:// and https://."
        )
    secure = parts.scheme == "https"
    credentials = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = "Basic " + b64encode(pair.encode()).decode()
    return Proxy(secure, parts.hostname, port or (443 if secure else 80), credentials)


def _exempts(entry: str, host: str, port: int) -> bool:
    """One entry of NO_PROXY: `*`, a network, or a domain and all below it, perhaps with a port."""
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
