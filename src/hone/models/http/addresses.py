"""Decide which addresses Hone may connect to for an untrusted URL.

Only public unicast addresses are allowed, at ports that a web server may use. Other modules handle names and
sockets.
"""

from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_BANNED = (
    ("0.0.0.0/8", "is no destination"),
    ("10.0.0.0/8", "is in a private network"),
    ("100.64.0.0/10", "is in a provider's internal network"),
    ("127.0.0.0/8", "is this machine itself"),
    ("168.63.129.16/32", "serves the inside of a cloud"),
    ("169.254.0.0/16", "is link-local, where clouds keep their metadata"),
    ("172.16.0.0/12", "is in a private network"),
    ("192.0.0.0/24", "is reserved for protocols"),
    ("192.0.2.0/24", "is for documentation"),
    ("192.88.99.0/24", "is reserved for relays"),
    ("192.168.0.0/16", "is in a private network"),
    ("198.18.0.0/15", "is for benchmarks"),
    ("198.51.100.0/24", "is for documentation"),
    ("203.0.113.0/24", "is for documentation"),
    ("224.0.0.0/4", "is a multicast address"),
    ("240.0.0.0/4", "is reserved"),
    # Everything outside 2000::/3 is refused anyway; these names only make the error clearer.
    ("::/128", "is no destination"),
    ("::1/128", "is this machine itself"),
    ("fc00::/7", "is in a private network"),
    ("fe80::/10", "is link-local"),
    ("fec0::/10", "is in a private network"),
    ("ff00::/8", "is a multicast address"),
    ("2001::/32", "is a tunnel to another address"),
    ("2002::/16", "is a tunnel to another address"),
    ("2001:db8::/32", "is for documentation"),
    ("3fff::/20", "is for documentation"),
    ("2001::/23", "is reserved for protocols"),
)
_PUBLIC_6 = IPv6Network("2000::/3")
_MAPPED, _TRANSLATED = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96")

_WEB_PORTS = frozenset({80, 443})
_FIRST_FREE_PORT = 1024
# Databases, queues, remote control, mail and chat: an HTTP request does not belong there.
_SERVICE_PORTS = frozenset(
    {1080, 1433, 1434, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3128, 3306, 3389}
    | {3659, 4045, 4190, 4369, 5060, 5061, 5432, 5433, 5671, 5672, 5984, 5985, 5986, 6379, 6380, 6443}
    | {6566, 6679, 6697, 7000, 7001, 8883, 9042, 9092, 9100, 9200, 9300, 10080, 10250, 11211, 26379}
    | {27017, 27018, 27019, 33060, *range(5900, 5910), *range(6000, 6064), *range(6660, 6670)}
)


def public_only(address: str, port: int) -> str | None:
    """Return why nothing may be sent to an address, as a clause; None if it may. An unusual spelling is
    refused, too: another parser could read it as another address."""
    try:
        found = ip_address(address)
    except ValueError:
        return f"{address!r} is not an address in its usual form"
    fault = _fault(found)
    if fault is not None:
        return f"{address} {fault}"
    if port not in _WEB_PORTS and (port < _FIRST_FREE_PORT or port in _SERVICE_PORTS):
        return f"port {port} is not for web pages"
    return None


def _fault(address: IPv4Address | IPv6Address) -> str | None:
    named = next((fault for network, fault in _banned() if address in network), None)
    if isinstance(address, IPv4Address):
        return named
    if address.scope_id is not None:
        return "is an address on one link of this machine"
    if address in _MAPPED or address in _TRANSLATED:
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
        fault = _fault(inner)
        return None if fault is None else f"stands for {inner}, which {fault}"
    return named or (None if address in _PUBLIC_6 else "is not a public address")


@cache
def _banned() -> tuple[tuple[IPv4Network | IPv6Network, str], ...]:
    return tuple((ip_network(network), fault) for network, fault in _BANNED)
