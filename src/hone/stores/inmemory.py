"""Sessions in the memory of this process: the reference for every other store."""

from collections.abc import Sequence
from dataclasses import replace

from hone.core.messages import sound
from hone.core.ports import Header, SessionId, Spending, Stored, Summary
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.turn import Origin
from hone.stores import rules


class InMemorySessions:
    """The dict is in the order of activity: whoever is active is taken out and put at the end."""

    def __init__(self) -> None:
        self._stored: dict[SessionId, Stored] = {}
        self._spent: list[tuple[SessionId, Spending]] = []

    async def start(self, header: Header, prefix: Prefix, nodes: Sequence[Node]) -> None:
        if header.id in self._stored:
            raise rules.taken(header.id)
        rules.begin(header, nodes)
        base: tuple[Node, ...] = ()
        if header.parent is not None:
            parent = self._get(header.parent)
            rules.reach(header, parent.prefix.digest, prefix.digest, len(parent.transcript))
            base = parent.transcript.nodes[: header.shared]
        rules.follow(header.id, base[-1].hash if base else prefix.digest, nodes)
        transcript = Transcript(prefix.digest, (*base, *nodes), header.shared)
        self._put(Stored(rules.storable(header), prefix, transcript))

    async def append(
        self, session: SessionId, nodes: Sequence[Node], spending: Spending | None = None
    ) -> None:
        stored = self._get(session)
        rules.follow(session, stored.transcript.head, nodes)
        transcript = replace(stored.transcript, nodes=(*stored.transcript.nodes, *nodes))
        self._put(replace(stored, transcript=transcript))
        if spending is not None:
            self._spent.append((session, spending))

    async def move(self, session: SessionId, prefix: Prefix, transcript: Transcript) -> None:
        stored = self._get(session)
        rules.follow(session, prefix.digest, transcript.nodes)
        if [node.digest for node in stored.transcript.nodes] != [node.digest for node in transcript.nodes]:
            raise rules.changed(session)
        moved = Transcript(prefix.digest, transcript.nodes, stored.header.shared)
        self._put(Stored(stored.header, prefix, moved))

    async def shorten(self, session: SessionId, after: str, transcript: Transcript) -> None:
        stored = self._get(session)
        rules.replaces(session, stored.transcript.head, after, transcript.nodes)
        rules.follow(session, stored.prefix.digest, transcript.nodes)
        header = replace(stored.header, shared=0)
        self._put(Stored(header, stored.prefix, Transcript(stored.prefix.digest, transcript.nodes)))

    async def load(self, session: SessionId) -> Stored:
        return self._get(session)

    async def find(self, beginning: str) -> SessionId:
        return rules.select(beginning, [id for id in self._stored if id.startswith(beginning)])

    async def list(self, limit: int | None = None, origin: Origin | None = Origin.USER) -> Sequence[Summary]:
        chosen = [each for each in self._stored.values() if origin is None or each.header.origin is origin]
        return tuple(_summary(each) for each in chosen[::-1][:limit])

    async def rename(self, session: SessionId, title: str) -> None:
        stored = self._get(session)
        self._stored[session] = replace(stored, header=replace(stored.header, title=sound(title)))

    async def delete(self, session: SessionId) -> None:
        self._get(session)
        del self._stored[session]

    async def spending(self, session: SessionId | None = None) -> Sequence[Spending]:
        return tuple(spent for id, spent in self._spent if session is None or id == session)

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _get(self, session: SessionId) -> Stored:
        if session not in self._stored:
            raise rules.missing(session)
        return self._stored[session]

    def _put(self, stored: Stored) -> None:
        self._stored.pop(stored.header.id, None)
        self._stored[stored.header.id] = stored


def _summary(stored: Stored) -> Summary:
    return Summary(
        header=stored.header,
        model=stored.prefix.model,
        messages=len(stored.transcript),
        updated=stored.transcript.nodes[-1].at,
        opening=rules.opening(stored.transcript)[1],
    )
