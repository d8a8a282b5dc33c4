"""Server-sent events: what a channel of the bus says, with signs of life, and resumed where it broke off."""

from collections.abc import AsyncGenerator

import msgspec
from starlette.responses import StreamingResponse

from hone.web.bus import BEAT, Bus, Signal
from hone.web.open_sessions import EVERYWHERE
from hone.web.operation import STREAM, Nothing, Operation, OperationCall

SHORTEST = b"retry: 1000\n: Hone\n\n"
"""How soon to come back, and a first byte, so that whoever listens knows that it does."""


class Since(msgspec.Struct, frozen=True):
    """`since`: the id of the last event that was heard, where the header Last-Event-ID cannot be sent."""

    since: str = ""


def sent(bus: Bus, signal: Signal) -> bytes:
    if signal.kind == BEAT:
        return b": still here\n\n"
    data = msgspec.json.encode(signal.data)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (bus.mark(signal.number).encode(), signal.kind.encode(), data)


async def _events(bus: Bus, channel: str, since: str) -> AsyncGenerator[bytes, None]:
    yield SHORTEST
    async for signal in bus.listen(channel, since):
        yield sent(bus, signal)


def streamed(bus: Bus, channel: str, since: str) -> StreamingResponse:
    return StreamingResponse(_events(bus, channel, since), media_type=STREAM)


async def everything(call: OperationCall[Since, Nothing]) -> StreamingResponse:
    """News of the whole server, from now on or from where it broke off."""
    bus = call.state.bus
    since = call.headers.get("last-event-id") or call.query.since or bus.now
    return streamed(bus, EVERYWHERE, since)


async def conversation(call: OperationCall[Since, Nothing]) -> StreamingResponse:
    """What happens in one conversation: the turn that is under way from its beginning, then what follows."""
    sessions = call.state.hone.sessions
    wanted = call.path["session"]
    id = wanted if call.state.open_sessions.find(wanted) else await sessions.find(wanted)
    since = call.headers.get("last-event-id") or call.query.since
    return streamed(call.state.bus, id, since)


OPERATIONS = (
    Operation("GET", "/api/events", everything, query=Since, streams=True),
    Operation("GET", "/api/sessions/{session}/events", conversation, query=Since, streams=True),
)
