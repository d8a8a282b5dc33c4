"""The port through which several servers on one store act as one: any of them may get any request."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from hone.core.permissions import Answer


def name_server(server: str) -> str:
    """Name the claim that a server holds for as long as it runs."""
    return f"server-{server}"


def name_end(session: str) -> str:
    """Name the channel of clients that wait for the end of a turn."""
    return f"end of {session}"


class TurnStart(Struct, frozen=True):
    """What a server is told when a turn begins: the mode that was chosen for it elsewhere, if any, and the
    servers whose clients listen to it."""

    mode: str = ""
    listeners: frozenset[str] = frozenset()


class Post(Struct, frozen=True):
    """One event for the clients of another server. `data` is JSON."""

    server: str
    channel: str
    kind: str
    data: str


class Inbox(Struct, frozen=True):
    """What other servers left for this one: turns to interrupt, modes chosen for them, answers to its
    questions, events for its clients, and who listens to which of its channels."""

    interrupted: Sequence[str] = ()
    modes: Mapping[str, str] = {}
    answers: Sequence[tuple[str, str, Answer]] = ()
    posts: Sequence[Post] = ()
    listeners: Mapping[str, frozenset[str]] = {}


class Switchboard(Protocol):
    """One server's view. What is written stays until it is read; a missed signal only delays it. Claims, not
    this port, decide who may write to a conversation. Raises StoreError."""

    server: str

    async def begin(self, session: str) -> TurnStart:
        """Announce that a turn begins on this server."""
        ...

    async def end(self, session: str) -> None: ...

    async def busy(self) -> Sequence[str]:
        """Return the conversations with a running turn, on any live server."""
        ...

    async def interrupt(self, session: str) -> bool:
        """Ask the server that runs a turn to end it. Return False if none does."""
        ...

    async def choose_mode(self, session: str, mode: str) -> None:
        """Choose the mode of a stored conversation, even during a turn."""
        ...

    async def note_told(self, session: str, mode: str) -> None:
        """Forget this mode: the model was told of it, and the messages record that."""
        ...

    async def chosen_mode(self, session: str) -> str:
        """Return the chosen mode that the model does not know about yet, if there is one."""
        ...

    async def ask(self, session: str, question: str) -> None:
        """Announce that a question waits here for an answer. Repeating it does no harm."""
        ...

    async def answer(self, session: str, question: str, answer: Answer) -> bool:
        """Answer a question from any server. Return False if nobody waits for it, or another answer was
        faster."""
        ...

    async def withdraw(self, session: str, question: str) -> None: ...

    async def listen(self, channels: Collection[str]) -> None:
        """Set the channels that this server's clients listen to, replacing the previous ones."""
        ...

    async def send(self, posts: Sequence[Post]) -> None: ...

    async def receive(self, turns: Collection[str], channels: Collection[str]) -> Inbox:
        """Receive what other servers left. `turns` run here; `channels` are those whose listeners matter,
        except for conversations in which another server runs a turn."""
        ...

    async def tidy(self) -> None:
        """Remove what servers left that no longer run."""
        ...

    async def stir(self, seconds: float) -> None:
        """Wait until something may have arrived, at most this long."""
        ...

    def wake(self) -> None:
        """Let `stir` return at once."""
        ...

    async def close(self) -> None: ...
