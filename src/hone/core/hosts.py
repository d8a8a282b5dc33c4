"""Parse and match the hosts that the owner lets programs reach."""

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from msgspec import Struct

from hone.core.regex import regex

_FORM = regex(
    r"(?P<host>\[[0-9a-f:.]+\]|[^\[\]:/]+)(?::(?P<port>\d{1,5}))?|(?P<bare>[0-9a-f:.]+(?:/\d{1,3})?)"
)
_NAME = regex(r"\*|(?:\*\.)?(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
LOCAL = "localhost"


class HostRule(Struct, frozen=True):
    """A host name, perhaps with `*.` before it, or addresses; on one port, or on any if `port` is 0."""

    name: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int = 0

    def names(self, host: str, port: int) -> bool:
        """Tell whether the rule covers a request for this host. Names are lowercase and have no final dot."""
        if self.port not in (0, port):
            return False
        if self.network is not None:
            return self.covers(host, port)
        if self.name.startswith("*."):
            return host == self.name[2:] or host.endswith(self.name[1:])
        return self.name in (host, "*")

    def covers(self, address: str, port: int) -> bool:
        """Tell whether the owner wrote down this very address, so that it may be a private one."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        networks = _LOOPBACK if self.name == LOCAL else (self.network,) if self.network else ()
        return self.port in (0, port) and any(found in network for network in networks)


def parse_host(text: str) -> HostRule:
    """Return what an entry of `hosts` means. Raises ValueError."""
    match = _FORM.fullmatch(text.strip().lower())
    found = (match["bare"] or match["host"].strip("[]")) if match else ""
    port = int(match["port"] or 0) if match else 0
    try:
        return HostRule(network=ip_network(found, strict=False), port=port)
    except ValueError:
        name = found.rstrip(".")
        if not _NAME.fullmatch(name) or port > 65_535:
            raise ValueError(
                f"{text!r} in hosts is no host: write api.example.com, *.example.com, localhost:8000, an "
                "address such as 10.1.2.3 or a network such as 10.0.0.0/8"
            ) from None
        return HostRule(name, port=port)
