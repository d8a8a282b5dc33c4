"""Find the session that a client's message history belongs to, by what the client has seen of it.

A client sends the whole conversation each time. Of each turn it has seen the user's words and the text of
the answer. The digest of all turns so far identifies the message to continue from.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from hone.core.errors import StoreError
from hone.core.messages import Message, Role, Text, canonical, digest, sound
from hone.core.ports import Sessions
from hone.core.transcript import Transcript
from hone.core.turn import Origin
from hone.core.visible import visible

SEARCHED = 500
"""Sessions that are looked through for a history that nobody here remembers."""
REMEMBERED = 20_000
"""Histories whose places are remembered."""
ALIKE = 100
"""Places of conversations in the same words that are remembered, the latest ones."""
BETWEEN = "\n\n"
"""Between two texts of one answer."""

Pairs = tuple[tuple[str, str], ...]
Place = tuple[str, int]
"""A session, and how many messages it has there."""
MayContinue = Callable[[str], Awaitable[bool]]
"""Whether a client may continue the session with this id."""


def seen(messages: Iterable[Message]) -> Pairs:
    """What a client knows of them: who spoke, and the words. White space at the ends is anybody's."""
    pairs: list[tuple[str, str]] = []
    for message in messages:
        text = visible(sound(message.text)).strip()
        if message.role is Role.TOOL or not (text or message.role is Role.USER):
            continue
        if pairs and pairs[-1][0] == message.role:
            pairs[-1] = (message.role, f"{pairs[-1][1]}{BETWEEN}{text}")
        else:
            pairs.append((message.role, text))
    return tuple(pairs)


def key(pairs: Pairs) -> str:
    return digest(canonical(pairs).encode())


def places(transcript: Transcript) -> Iterator[tuple[str, int]]:
    """The key after each turn, and how many messages there are."""
    messages = tuple(transcript)
    for number in range(1, len(messages) + 1):
        last = number == len(messages)
        if messages[number - 1].role is Role.ASSISTANT and (last or messages[number].role is Role.USER):
            yield key(seen(messages[:number])), number


def merged(messages: Sequence[Message]) -> list[Message]:
    """A history that a provider takes: the user begins, and the two take turns."""
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
    """Where conversations stand that clients may go on with."""

    def __init__(self) -> None:
        self._known: dict[str, list[Place]] = {}

    def remember(self, pairs: Pairs, place: Place) -> None:
        name = key(pairs)
        self._known[name] = [*self._known.pop(name, ())[1 - ALIKE :], place]
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]

    async def find(self, pairs: Pairs, sessions: Sessions, may: MayContinue) -> Place | None:
        """The place that was left last. Two conversations in the same words are two places, each gone on
        with once; whoever comes back to one that went on branches off."""
        name = key(pairs)
        if left := self._known.get(name):
            place = left.pop() if len(left) > 1 else left[0]
            return place if await may(place[0]) else None
        found = await _stored(pairs, name, sessions, may)
        if found:
            self.remember(pairs, found)
        return found


async def _stored(pairs: Pairs, name: str, sessions: Sessions, may: MayContinue) -> Place | None:
    """What an earlier process left: looked for among the conversations that begin with the same words."""
    first = " ".join(pairs[0][1].split())
    for summary in await sessions.list(SEARCHED, Origin.USER):
        if not summary.opening or not first.startswith(visible(summary.opening)[:40]):
            continue
        try:
            stored = await sessions.load(summary.header.id)
        except StoreError:
            continue  # gone, or damaged: nobody can go on with it
        for found, count in places(stored.transcript):
            if found == name and await may(summary.header.id):
                return summary.header.id, count
    return None
