"""Find the session that a client's message history belongs to, by what the client has seen of it.

A client sends the whole conversation each time. Of each turn it has seen the user's words and the text of the
answer. The digest of all turns so far identifies the message to continue from.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from hone.core.errors import StoreError
from hone.core.histories import Histories, HistoryNote
from hone.core.ids import SessionId
from hone.core.messages import Message, Role, Text, canonical, digest, sound
from hone.core.overview import Overview
from hone.core.ports import Sessions
from hone.core.transcript import Transcript
from hone.core.visible import visible

SEARCHED = 500
"""How many sessions to search for a history that is not cached here."""
GLANCE = 4
"""How many messages suffice to recognize a different conversation before reading it completely."""
AT_A_TIME = 4
"""How many sessions to add to the index at once, beside everything else."""
REMEMBERED = 20_000
"""How many histories' places to cache."""
ALIKE = 100
"""How many places of conversations in the same words to cache, latest first."""
BETWEEN = "\n\n"
"""Separates two texts of one answer."""

Pairs = tuple[tuple[str, str], ...]
Place = tuple[str, int]
"""A session, and the number of its messages at that place."""
MayContinue = Callable[[str], Awaitable[bool]]
"""Tells whether a client may continue the session with this id."""


def seen(messages: Iterable[Message]) -> Pairs:
    """Return what a client knows of messages: who spoke, and the words. White space at the ends does not
    count."""
    pairs: list[tuple[str, str]] = []
    for message in messages:
        pairs[-1:] = joined(tuple(pairs[-1:]), message)
    return tuple(pairs)


def joined(last: Pairs, message: Message) -> Pairs:
    """Return the last pair, if there is one, and what a message adds to it or after it."""
    text = visible(sound(message.text)).strip()
    if message.role is Role.TOOL or not (text or message.role is Role.USER):
        return last
    if last and last[0][0] == message.role:
        return ((message.role, f"{last[0][1]}{BETWEEN}{text}"),)
    return (*last, (message.role, text))


def key(pairs: Pairs) -> str:
    """Return a digest that grows with the history, so that all its prefixes get their keys in one pass."""
    found = ""
    for pair in pairs:
        found = _longer(found, pair)
    return found


def _longer(before: str, pair: tuple[str, str]) -> str:
    return digest(canonical((before, *pair)).encode())


def places(transcript: Transcript) -> Iterator[tuple[str, int]]:
    """Yield the key after each turn, and the number of messages."""
    messages = tuple(transcript)
    before, pairs = "", Pairs()
    for number, message in enumerate(messages, 1):
        pairs = joined(pairs, message)
        if len(pairs) > 1:
            before, pairs = _longer(before, pairs[0]), pairs[1:]
        last = number == len(messages)
        if message.role is Role.ASSISTANT and (last or messages[number].role is Role.USER):
            yield _longer(before, pairs[0]) if pairs else before, number


def merged(messages: Sequence[Message]) -> list[Message]:
    """Return a history that a provider accepts: the user begins, and the two alternate."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role is message.role:
            found[-1] = Message(message.role, (*found[-1].parts, Text(BETWEEN), *message.parts))
        else:
            found.append(message)
    if found and found[0].role is Role.ASSISTANT:
        found.insert(0, Message(Role.USER, (Text("(The beginning is not known.)"),)))
    if found and found[-1].role is Role.USER:
        found.append(Message(Role.ASSISTANT, (Text("(no answer)"),)))
    return found


class Places:
    """The places of conversations that clients may continue."""

    def __init__(self) -> None:
        self._known: dict[str, list[Place]] = {}

    def remember(self, pairs: Pairs, place: Place) -> None:
        name = key(pairs)
        self._known[name] = [*self._known.pop(name, ())[1 - ALIKE :], place]
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]

    async def find(self, pairs: Pairs, stored: "StoredPlaces", may: MayContinue) -> Place | None:
        """Return the place that was left last. Two conversations in the same words are two places, each
        continued once; a client that returns to a continued one starts a branch."""
        name = key(pairs)
        if left := self._known.get(name):
            place = left.pop() if len(left) > 1 else left[0]
            return place if await may(place[0]) else None
        found = await stored.find(pairs, name, may)
        if found:
            self.remember(pairs, found)
        return found


class StoredPlaces:
    """Places that earlier processes left, by an index that is filled on demand, and bit by bit in the
    background."""

    def __init__(self, sessions: Sessions, histories: Histories, overview: Overview) -> None:
        self._sessions = sessions
        self._histories = histories
        self._overview = overview
        self._notes: list[HistoryNote] = []
        self._left: list[SessionId] = []
        self._damaged: set[SessionId] = set()
        self._complete = False

    async def find(self, pairs: Pairs, name: str, may: MayContinue) -> Place | None:
        """Find a place. If the index does not know the history, first add the unindexed conversations that
        begin with the same messages."""
        if place := await self._indexed(name, may):
            return place
        first = " ".join(pairs[0][1].split())
        alike = [
            id
            for id, opening in await self._histories.unfilled(SEARCHED)
            if opening and first.startswith(visible(opening)[:40]) and await self._begins(id, pairs)
        ]
        for id in alike:
            await self._fill(id)
        return await self._indexed(name, may) if alike else None

    async def _begins(self, id: SessionId, pairs: Pairs) -> bool:
        """Tell whether the first messages of a session match this history, or are too few to tell."""
        try:
            window = await self._overview.window(id, 1, GLANCE)
        except StoreError:
            return False
        begun = seen(node.message for node in window.nodes)
        sure = begun if window.total <= GLANCE else begun[:-1]  # more may have been said in the last one
        return all(one == other for one, other in zip(sure, pairs, strict=False))

    async def _indexed(self, name: str, may: MayContinue) -> Place | None:
        found = await self._histories.find(name)
        if stale := [each.session for each in found if not each.current]:
            for id in dict.fromkeys(stale):
                await self._fill(id)
            found = await self._histories.find(name)
        for each in found:
            if each.current and await may(each.session):
                return each.session, each.messages
        return None

    def note(self, note: HistoryNote) -> None:
        """Note that a turn has ended. `tend` stores it together with others."""
        self._notes.append(note)

    async def tend(self) -> None:
        """Store what was noted, and add a few conversations of an older home to the index."""
        notes, self._notes = self._notes, []
        if notes:
            self._left += await self._histories.add(notes)
        if not self._left and not self._complete:
            self._left = [id for id, _ in await self._histories.unfilled(AT_A_TIME + len(self._damaged))]
            self._left = [id for id in self._left if id not in self._damaged]
            self._complete = not self._left
        some, self._left = self._left[:AT_A_TIME], self._left[AT_A_TIME:]
        for id in some:
            await self._fill(id)

    async def _fill(self, id: SessionId) -> None:
        """Add a session to the index. Skip one that is deleted or damaged: nobody can continue it."""
        if id in self._damaged:
            return
        try:
            transcript = (await self._sessions.load(id)).transcript
        except StoreError:
            self._damaged.add(id)
            return
        with suppress(StoreError):  # a read-only home is searched each time
            await self._histories.fill(id, transcript.head, list(places(transcript)))
