"""URLs that try to reach what only this machine or its network may reach, each with the internet it needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from random import Random

from tests.tools.internet import DEAD, PUBLIC


@dataclass(frozen=True)
class Attack:
    """`names` is what lookups give, `redirects` where the public server sends whoever asks for a path;
    `public` tells that a socket to the public server belongs to it."""

    url: str
    names: dict[str, list[list[str]]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    public: bool = False


FORBIDDEN = (
    *("127.0.0.1", "127.0.0.53", "127.255.255.254", "0.0.0.0", "10.0.0.1", "10.255.255.255", "172.16.0.1"),
    *("172.31.9.9", "192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.170.2", "169.254.0.23"),
    *("100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.251"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255", "192.0.2.7", "198.51.100.7", "203.0.113.7"),
)
FORBIDDEN_6 = (
    *("::1", "::", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "fd00:ec2::254", "fd12::1"),
    *("fc00::1", "fe80::1", "febf::1", "fec0::1", "ff02::1", "ff05::1:3", "2001:db8::1", "3fff::1"),
    *("2001:2::1", "2001:10::1", "100::1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    *("2001:0:7f00:1::1", "2001:0:53aa:64c:0:5efe:80ff:fffe", "::ffff:0:127.0.0.1"),
)
PORTS = (0, 1, 7, 21, 22, 23, 25, 53, 69, 110, 111, 135, 139, 143, 389, 445, 465, 514, 587, 631, 873, 993)
MORE_PORTS = (
    1433,
    1521,
    2049,
    2375,
    2379,
    3306,
    3389,
    5432,
    5900,
    5984,
    6000,
    6379,
    6667,
    9200,
    11211,
    27017,
)


def _parts(address: str) -> list[int]:
    return [int(part) for part in address.split(".")]


def _number(address: str) -> int:
    return int.from_bytes(bytes(_parts(address)), "big")


def spellings(address: str) -> list[str]:
    """The ways in which some reader or other takes a text for this IPv4 address."""
    a, b, c, d = _parts(address)
    number = _number(address)
    wide = str.maketrans("0123456789.", "0123456789．")
    circled = str.maketrans("123456789", "①②③④⑤⑥⑦⑧⑨")
    return [
        address,
        f"{address}.",
        str(number),
        hex(number),
        hex(number).upper(),
        f"0{number:o}",
        f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}",
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a:04o}.{b}.{c:#x}.{d}",
        f"{a:#x}.{number & 0xFFFFFF}",
        f"{a:03d}.{b:03d}.{c:03d}.{d:03d}",
        address.translate(wide),
        address.translate(circled),
        address.replace(".", "\u3002"),
        address.replace(".", "%2e"),
        "".join(f"%{ord(letter):02x}" for letter in address),
        f"[::ffff:{address}]",
        f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]",
        f"[0:0:0:0:0:ffff:{address}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]",
        f"[::ffff:0:{address}]",
    ]


def _decorated(random: Random, host: str) -> str:
    scheme = random.choice(("http", "http", "HTTP", "https"))
    port = random.choice(("", "", ":80", ":8080", ":443", ":"))
    path = random.choice(("/", "", "/latest/meta-data/iam", "/?q=1", "/a/../b", "/#f", "?x", "/%2e%2e/"))
    return f"{scheme}://{host}{port}{path}"


def literal(random: Random) -> Attack:
    return Attack(_decorated(random, random.choice(spellings(random.choice(FORBIDDEN)))))


def literal_6(random: Random) -> Attack:
    address = random.choice(FORBIDDEN_6)
    zone = random.choice(("", "", "", "%25eth0", "%lo", "%251"))
    shown = random.choice((address, address.upper()))
    return Attack(_decorated(random, f"[{shown}{zone}]"))


def own_name(random: Random) -> Attack:
    names = ("localhost", "LOCALHOST", "localhost.", "LocalHost.", "a.localhost", "x.y.localhost.")
    return Attack(_decorated(random, random.choice((*names, "ｌｏｃａｌｈｏｓｔ", "loc\u24d0lhost"))))


def by_name(random: Random) -> Attack:
    address = random.choice((*FORBIDDEN, *FORBIDDEN_6, "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "fe80::1%2"))
    name = random.choice(
        ("metadata.google.internal", "intranet.test", "127.0.0.1.nip.test", "b\u00fccher.test")
    )
    name = f"{random.randrange(10**6)}.{name}"
    url = _decorated(random, random.choice((name, f"{name}.")))
    return Attack(url, {name.encode("idna").decode(): [[address]]})


def rebinding(random: Random) -> Attack:
    """Public when first looked up, and not later."""
    name, inner = f"rebind{random.randrange(10**6)}.test", random.choice((*FORBIDDEN, *FORBIDDEN_6))
    if random.random() < 0.3:
        return Attack(f"http://{name}/", {name: [[DEAD, inner]]})
    path = f"/{random.randrange(10**6)}"
    again = random.choice((path, f"http://{name}{path}", f"//{name}{path}", f"http://{name}:8080{path}"))
    return Attack(f"http://{name}/", {name: [[PUBLIC], [inner]]}, {"/": again}, public=True)


def redirected(random: Random) -> Attack:
    target = random.choice((literal, literal_6, own_name, by_name, scheme, userinfo, port, misread))(random)
    hops = [f"/{number}" for number in range(random.randrange(5))]
    redirects = dict(zip(["/", *hops], [*hops, target.url], strict=True))
    if random.random() < 0.2 and target.url.startswith("http://"):
        redirects[["/", *hops][-1]] = target.url.removeprefix("http:")
    names = {"hop.test": [[PUBLIC]], **target.names}
    return Attack("http://hop.test/", names, redirects, public=True)


def endless(random: Random) -> Attack:
    loop = {"/": "/a", "/a": "http://hop.test/b", "/b": "//hop.test/"}
    return Attack(f"http://hop.test/#{random.randrange(10**6)}", {"hop.test": [[PUBLIC]]}, loop, public=True)


def userinfo(random: Random) -> Attack:
    inner = random.choice(FORBIDDEN)
    forms = (
        "public.test@{0}",
        "{0}@public.test",
        "public.test:80@{0}",
        "a:b@{0}",
        "@{0}",
        "public.test%20@{0}",
    )
    odd = ("public.test#@{0}:99999", "public.test%40{0}", "a@b@{0}", "public.test;@{0}", "{0}&@public.test")
    host = random.choice((*forms, *odd)).format(inner)
    return Attack(f"http://{host}/" if "#" not in host else f"http://{host.replace('#', '')}/")


def scheme(random: Random) -> Attack:
    inner = random.choice(FORBIDDEN)
    forms = (
        *(
            "file:///etc/passwd",
            "file://{0}/etc/passwd",
            "gopher://{0}:6379/_INFO",
            "ftp://{0}/",
            "dict://{0}/",
        ),
        *(
            "ldap://{0}/",
            "jar:http://{0}!/",
            "data:text/html,hi",
            "javascript:fetch('http://{0}')",
            "ws://{0}/",
        ),
        *(
            "unix:/run/docker.sock",
            "http+unix://%2Frun%2Fdocker.sock/",
            "view-source:http://{0}/",
            "tftp://{0}/",
        ),
        *(
            "netdoc:///etc/passwd",
            "about:blank",
            "blob:http://{0}/",
            "httpx://{0}/",
            "ssh://{0}",
        ),
    )
    return Attack(random.choice(forms).format(inner))


def hostless(random: Random) -> Attack:
    inner = random.choice(FORBIDDEN)
    forms = (
        "http:/{0}/",
        "http:{0}",
        "http:///{0}/",
        "http://",
        "https://?{0}",
        "//{0}/",
        "{0}",
        "{0}:80/",
        "",
    )
    return Attack(
        random.choice((*forms, " ", "http://:80/", "http://#{0}", "///{0}", "http//{0}/:")).format(inner)
    )


def port(random: Random) -> Attack:
    number = random.choice((*PORTS, *MORE_PORTS, 65536, 99999, -1, "http", "8O", "0x50", "80:80", "٨٠٠٠٠٠"))
    return Attack(f"http://public.test:{number}/", {"public.test": [[PUBLIC]]})


def misread(random: Random) -> Attack:
    """Where two readers of a URL see different hosts."""
    inner = random.choice(FORBIDDEN)
    forms = (
        *(
            "http://public.test\\@{0}/",
            "http:\\\\{0}\\",
            "http://{0}\\.public.test/",
            "http://public.test\\{0}",
        ),
        *("http://public.test\r\nHost: {0}/", "http://public.test/\r\nX: 1\r\n\r\nGET http://{0}/ HTTP/1.1"),
        *(
            "http://{0}\t/",
            "http://pub\tlic.test/",
            "http://\n{0}/",
            "http://{0}\x00.public.test/",
            "\x00http://{0}",
        ),
        *(
            "http://public.test/\x7f",
            "http://{0}\u2028/",
            "http://[{0}]/",
            "http://[::1]@{0}/",
            "http://[::1",
        ),
        *(
            "http://::1/",
            "http://[::1]public.test/",
            "http://[::1%]/",
            "http://{0} .public.test/",
            "http://{0}%00/",
        ),
        *(
            "http://{0}%23.public.test/",
            "http://a..{0}/",
            "http://.{0}/",
            "http://{0}../",
            "http://[fe80::1%25",
        ),
        *("http://public.test\u2100{0}/", "http://public.test,{0}/", "http://*.{0}/"),
        *(
            "http://public.test{0}" + "a" * 4_000,
            "http://" + "a" * 64 + ".{0}/",
            "http://" + "1." * 200 + "{0}/",
        ),
    )
    return Attack(random.choice(forms).format(inner), {"public.test": [[PUBLIC]]})


FAMILIES: tuple[Callable[[Random], Attack], ...] = (
    *(literal, literal, literal, literal_6, literal_6, own_name, by_name, by_name, rebinding, redirected),
    *(redirected, redirected, userinfo, scheme, hostless, port, misread, misread, endless),
)


def attacks(random: Random, count: int) -> Iterator[Attack]:
    """So many different ones, from all families in turn."""
    seen: set[str] = set()
    for family in cycle(FAMILIES):
        attack = family(random)
        if str(attack) not in seen:
            seen.add(str(attack))
            yield attack
        if len(seen) == count:
            return


@dataclass(frozen=True)
class Visit:
    """A harmless URL, where it leads in the end and what is dialled for it."""

    url: str
    names: dict[str, list[list[str]]]
    redirects: dict[str, str]
    path: str
    dialled: list[tuple[str, int]]


def visit(random: Random) -> Visit:
    """On an ordinary page; some of the hosts look like what they are not."""
    octets = (
        random.choice((8, 23, 93, 128, 172, 192, 198, 203)),
        200,
        random.randrange(256),
        random.randrange(256),
    )
    four = ".".join(map(str, octets))
    address = random.choice((four, four, f"2a00:1450::{random.randrange(1, 9999):x}", f"64:ff9b::{four}"))
    number = random.randrange(10**6)
    names = (
        "example.test",
        "localhost.example.test",
        "127.0.0.1.example.test",
        "10.example.test",
        "m\u00fcnchen.test",
    )
    name = f"{random.choice(('www', 'x-1', 'a_b'))}{number}.{random.choice(names)}"
    port = random.choice((80, 80, 80, 3000, 8000, 8080, 8443))
    bare = f"[{address}]" if ":" in address else address
    host = random.choice((name, name, name, f"{name.upper()}", f"{name}.", bare))
    place = host if port == 80 and random.random() < 0.7 else f"{host}:{port}"
    path = f"/{number}/{random.choice(('', 'a%20b', 'index.html', '@home', '127.0.0.1', 'x;y=1'))}"
    url = f"{random.choice(('http', 'HTTP'))}://{place}"
    known = {name.lower().encode("idna").decode(): [[address]]}
    if random.random() < 0.3:
        relative = random.choice((path, f"{url}{path}", f".{path}", f"//{place}{path}"))
        return Visit(f"{url}/", known, {"/": relative}, path, [(address, port)])
    return Visit(url + path + random.choice(("", "#part", "#@127.0.0.1")), known, {}, path, [(address, port)])
