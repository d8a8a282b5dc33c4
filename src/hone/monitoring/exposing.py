"""Serve /metrics at a separate address. Several processes of one server share the address: whichever is asked
collects the numbers of all, each with a label that names its process."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.core.errors import SettingsError
from hone.monitoring.families import CONTENT_TYPE, Family, gauge, label, merge, render
from hone.monitoring.gauges import Collect, CollectShared, measure_database, measure_process
from hone.monitoring.metrics import Metrics
from hone.settings.sections import split_address

PATH = b"/metrics"
PATIENCE = 5.0
"""Seconds for a request to arrive."""
PEER_PATIENCE = 2.0
"""Seconds for another process to report its numbers."""
LARGEST_HEAD = 16 * 1024
LARGEST_PEER = 16 * 1024 * 1024

Answer = Callable[[asyncio.StreamReader], Awaitable[bytes]]


class MetricsPlace(Struct, frozen=True):
    """Where the numbers are read. `listener` is bound. One of `count` processes has its number, `index`, and
    a `folder` with a socket of each."""

    listener: socket.socket
    index: int = 0
    count: int = 1
    folder: Path | None = None


def bind_metrics(address: str) -> socket.socket:
    """Bind the address. Raises SettingsError."""
    try:
        host, port = split_address(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except ValueError as error:
        raise SettingsError(f"Metrics: {error}.") from error
    except OSError as error:
        raise SettingsError(f"Nobody can read metrics at {address}: {error.strerror or error}.") from error


@contextmanager
def shared_metrics(address: str, count: int) -> Iterator[MetricsPlace | None]:
    """Bind the address for several processes, before they start. Raises SettingsError."""
    if not address:
        yield None
        return
    with bind_metrics(address) as listener, TemporaryDirectory(prefix="hone-metrics-") as folder:
        yield MetricsPlace(listener, count=count, folder=Path(folder))


@asynccontextmanager
async def expose(
    hone: Hone,
    place: MetricsPlace | str,
    more: Collect,
    shared: Callable[[Hone], Awaitable[Sequence[Family]]],
) -> AsyncIterator[None]:
    """Collect metrics of a Hone, and publish them at a place or an address; with neither, do nothing. `more`
    adds further numbers of this process. Raises SettingsError."""
    if not place:
        yield
        return
    metrics, started = Metrics(hone.clock), hone.clock.now().timestamp()
    hone.monitors.add(metrics)

    def own() -> list[Family]:
        return [*metrics.collect(), *more(), *measure_database(hone), *measure_process(started)]

    bound = MetricsPlace(bind_metrics(place)) if isinstance(place, str) else place
    async with Exposition(bound, own, partial(shared, hone)).serving():
        yield


class Exposition:
    """`own` are the numbers of this process, `shared` those that are the same for all."""

    def __init__(self, place: MetricsPlace, own: Collect, shared: CollectShared) -> None:
        self._place = place
        self._own = own
        self._shared = shared

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        place, limit = self._place, LARGEST_HEAD
        servers = [await asyncio.start_server(_answering(self._answer), sock=place.listener, limit=limit)]
        if place.folder:
            path = str(self._socket(place.index))
            servers.append(await asyncio.start_unix_server(_answering(self._tell_peer), path))
        try:
            yield
        finally:
            for server in servers:
                server.close()

    async def text(self) -> str:
        """Return the numbers in the text format."""
        families = [*self._own()]
        if self._place.folder:
            families = merge(await self._ask_all())
        return render([*families, *await self._shared()])

    async def _ask_all(self) -> list[Family]:
        indexes = range(self._place.count)
        told = await asyncio.gather(*map(self._ask, indexes))
        up = [
            (float(each is not None), {"process": str(index)})
            for index, each in zip(indexes, told, strict=True)
        ]
        found = [gauge("hone_process_up", "Whether a process of the server answers.", *up)]
        for index, families in zip(indexes, told, strict=True):
            found += label(families or (), "process", str(index))
        return found

    async def _ask(self, index: int) -> Sequence[Family] | None:
        """Return the numbers of one process; None if it does not answer."""
        if index == self._place.index:
            return self._own()
        with suppress(OSError, TimeoutError, msgspec.MsgspecError):
            async with asyncio.timeout(PEER_PATIENCE):
                reader, writer = await asyncio.open_unix_connection(str(self._socket(index)))
                try:
                    data = await reader.read(LARGEST_PEER)
                    while more := await reader.read(LARGEST_PEER):
                        data += more
                finally:
                    writer.close()
            return msgspec.json.decode(data, type=list[Family])
        return None

    def _socket(self, index: int) -> Path:
        assert self._place.folder is not None
        return self._place.folder / f"{index}.sock"

    async def _tell_peer(self, _: asyncio.StreamReader) -> bytes:
        return msgspec.json.encode(self._own())

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        status, body = judge(head), b""
        if status == b"200 OK":
            body = (await self.text()).encode()
        shown = b"" if head.startswith(b"HEAD ") else body
        fields = (
            b"HTTP/1.1 " + status,
            b"Content-Type: " + CONTENT_TYPE.encode(),
            b"Content-Length: %d" % len(body),
            b"Cache-Control: no-store",
            b"X-Content-Type-Options: nosniff",
            b"Connection: close",
        )
        return b"\r\n".join((*fields, b"", shown))


def judge(head: bytes) -> bytes:
    """Return the status of the answer to a request. A page in a browser gets nothing: somebody else may
    control its host name."""
    line, *fields = head.split(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return b"400 Bad Request"
    sites = [
        value.strip().lower()
        for name, _, value in (each.partition(b":") for each in fields)
        if name.strip().lower() == b"sec-fetch-site"
    ]
    if any(site != b"none" for site in sites):
        return b"403 Forbidden"
    if words[1].partition(b"?")[0] != PATH:
        return b"404 Not Found"
    return b"200 OK" if words[0] in (b"GET", b"HEAD") else b"405 Method Not Allowed"


def _answering(answer: Answer) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.write(await answer(reader))
            await writer.drain()
        writer.close()

    return handle
