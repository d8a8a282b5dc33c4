"""What may be connected to for a stranger's URL, and that the gate stands before every socket."""

import asyncio
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import SystemClock
from hone.core.errors import Rejected, Unreachable
from hone.models.http import Http
from hone.models.http.addresses import public_only
from hone.models.http.connection import HttpConnection
from tests.models import loopback
from tests.models.loopback import OK, answering, fetch, once, serving

quiet = loopback.quiet


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1"),
        *("126.255.255.255", "128.0.0.1", "169.253.1.1", "192.0.1.1", "192.167.1.1", "223.255.255.255"),
        *("2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "64:ff9b::808:808", "::ffff:8.8.8.8"),
    ],
)
def test_a_public_address_is_admitted_in_every_form_it_is_reached_by(address: str) -> None:
    assert public_only(address, 443) is None


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "is this machine itself"),
        ("127.255.255.254", "is this machine itself"),
        ("::1", "is this machine itself"),
        ("0.0.0.0", "is no destination"),
        ("::", "is no destination"),
        ("10.1.2.3", "is in a private network"),
        ("172.16.0.1", "is in a private network"),
        ("172.31.255.255", "is in a private network"),
        ("192.168.1.1", "is in a private network"),
        ("fd00:ec2::254", "is in a private network"),
        ("fec0::1", "is in a private network"),
        ("100.64.0.1", "internal network"),
        ("100.100.100.200", "internal network"),
        ("100.127.255.255", "internal network"),
        ("168.63.129.16", "inside of a cloud"),
        ("169.254.169.254", "metadata"),
        ("fe80::1", "is link-local"),
        ("192.0.0.192", "is reserved for protocols"),
        ("192.0.2.1", "is for documentation"),
        ("198.51.100.1", "is for documentation"),
        ("203.0.113.1", "is for documentation"),
        ("2001:db8::1", "is for documentation"),
        ("3fff::1", "is for documentation"),
        ("198.18.0.1", "is for benchmarks"),
        ("198.19.255.255", "is for benchmarks"),
        ("2001:2::1", "is reserved for protocols"),
        ("224.0.0.1", "is a multicast address"),
        ("ff02::1", "is a multicast address"),
        ("240.0.0.1", "is reserved"),
        ("255.255.255.255", "is reserved"),
        ("::ffff:127.0.0.1", "stands for 127.0.0.1, which is this machine itself"),
        ("::ffff:a9fe:a9fe", "stands for 169.254.169.254, which is link-local"),
        ("64:ff9b::a00:1", "stands for 10.0.0.1, which is in a private network"),
        ("64:ff9b:1::808:808", "is not a public address"),
        ("::127.0.0.1", "is not a public address"),
        ("::8.8.8.8", "is not a public address"),
        ("100::1", "is not a public address"),
        ("5f00::1", "is not a public address"),
        ("2002:7f00:1::", "is a tunnel to another address"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "is a tunnel to another address"),
        ("fe80::1%eth0", "on one link of this machine"),
        ("2606:4700:4700::1111%1", "on one link of this machine"),
        ("0177.0.0.1", "is not an address in its usual form"),
        ("2130706433", "is not an address in its usual form"),
        ("127.1", "is not an address in its usual form"),
        ("0x7f000001", "is not an address in its usual form"),
        ("8.8.8.8.", "is not an address in its usual form"),
        ("localhost", "is not an address in its usual form"),
        ("", "is not an address in its usual form"),
    ],
)
def test_every_other_address_is_refused_and_the_reason_named(address: str, reason: str) -> None:
    assert reason in (public_only(address, 443) or "")


def embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    value = int(address)
    inside = value >> 32 in (0xFFFF, 0x64FF9B << 64)
    return IPv4Address(value & 0xFFFFFFFF) if address.version == 6 and inside else address


@given(
    st.one_of(
        st.ip_addresses(),
        st.integers(0, 2**32 - 1).map(lambda value: IPv6Address(0xFFFF << 32 | value)),
        st.integers(0, 2**32 - 1).map(lambda value: IPv6Address(0x64FF9B << 96 | value)),
    )
)
def test_nothing_is_admitted_that_the_registry_of_special_addresses_does_not_call_global(
    address: IPv4Address | IPv6Address,
) -> None:
    if public_only(str(address), 80) is None:
        inner = embedded(address)
        assert inner.is_global
        assert not any((inner.is_multicast, inner.is_reserved, inner.is_loopback, inner.is_link_local))


@pytest.mark.parametrize("port", [80, 443, 1024, 3000, 5000, 8000, 8080, 8443, 9000, 65535])
def test_a_port_where_web_servers_listen_is_admitted(port: int) -> None:
    assert public_only("8.8.8.8", port) is None


@pytest.mark.parametrize(
    "port",
    [0, 1, 21, 22, 23, 25, 53, 110, 143, 389, 445, 465, 587, 993, 1023, 2375, 3306, 5432, 5900, 6379, 11211],
)
def test_a_port_of_another_service_is_refused(port: int) -> None:
    assert public_only("8.8.8.8", port) == f"port {port} is not for web pages"


class Switchboard:
    """Gives what a test says for a name and connects to nothing but the test's own server."""

    def __init__(self, *answers: list[str], port: int = 0, dead: Sequence[str] = ()) -> None:
        self.answers, self.port, self.dead = list(answers), port, dead
        self.dialled: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return self.answers.pop(0)

    async def dial(self, connection: HttpConnection, address: str, port: int) -> None:
        self.dialled.append(address)
        if address in self.dead:
            raise ConnectionRefusedError
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: connection, "127.0.0.1", self.port)

    def http(self) -> Http:
        return Http(SystemClock(), admit=public_only, resolve=self.resolve, dial=self.dial)


async def test_the_gate_is_asked_again_for_every_lookup_and_every_address() -> None:
    async with serving(once(OK)) as site:
        board = Switchboard(["8.8.8.8"], ["1.1.1.1", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], port=site.port)
        board.dead = ["1.1.1.1"]
        http = board.http()
        assert await fetch(http, "http://a.test/") == b"hello"
        for _ in range(2):
            sentence = r"^No connection is made to a\.test:80: 10\.0\.0\.1 is in a private network\.$"
            with pytest.raises(Rejected, match=sentence):
                await fetch(http, "http://a.test/")
        assert board.dialled == ["8.8.8.8", "1.1.1.1"]
        await http.close()


async def test_a_name_without_addresses_is_not_known() -> None:
    with pytest.raises(Unreachable, match=r"^No address is known for a\.test\.$"):
        await fetch(Switchboard([]).http(), "http://a.test/")


async def test_a_gate_that_raises_lets_nothing_through() -> None:
    def broken(address: str, port: int) -> str | None:
        raise LookupError(address)

    board = Switchboard(["8.8.8.8"])
    http = Http(SystemClock(), admit=broken, resolve=board.resolve, dial=board.dial)
    with pytest.raises(LookupError):
        await fetch(http, "http://a.test/")
    assert board.dialled == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f.1", "[::ffff:7f00:1]"])
async def test_with_the_system_s_own_resolver_and_sockets_this_machine_is_out_of_reach(host: str) -> None:
    async with serving(answering(OK)) as site:
        http = Http(SystemClock(), admit=public_only)
        with pytest.raises(Rejected, match="No connection is made to"):
            await fetch(http, f"http://{host}:{site.port}/")
        await loopback.turn()
        assert site.accepted == 0


async def test_with_a_gate_the_environment_s_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(answering(OK)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert await fetch(Http(SystemClock()), "http://10.0.0.1/") == b"hello"
        with pytest.raises(Rejected, match=r"10\.0\.0\.1 is in a private network"):
            await fetch(Http(SystemClock(), admit=public_only), "http://10.0.0.1/")
        assert proxy.accepted == 1
