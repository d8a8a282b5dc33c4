"""The port by which several servers on one store act as one: any of them may get any request."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from hone.core.permissions import Answer


def name_server(server: str) -> str:
    """Return the claim that a server holds for as long as it runs."""
    return f"server-{server}"


def name_end(session: str) -> str:
    """Return the channel of those who wait for the end of a turn."""
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
    """What others left for a server: which of its turns to interrupt, the modes chosen for them, the answers
    to its questions, events for its clients, and who listens to which of its channels."""

    interrupted: Sequence[str] = ()
    modes: Mapping[str, str] = {}
    answers: Sequence[tuple[str, str, Answer]] = ()
    posts: Sequence[Post] = ()
    listeners: Mapping[str, frozenset[str]] = {}


class Switchboard(Protocol):
    """One server's view. What is written lasts until it is taken; a missed signal only makes it later.
    Whether somebody may write to a conversation is decided by claims, never here. Raises StoreError."""

    server: str

    async def begin(self, session: str) -> TurnStart:
        """Say that a turn begins here."""
        ...

    async def end(self, session: str) -> None: ...

    async def busy(self) -> Sequence[str]:
        """Return the conversations with a turn under way, on any server that lives."""
        ...

    async def interrupt(self, session: str) -> bool:
        """Ask the server that runs a turn to end it. False if none does."""
        ...

    async def choose_mode(self, session: str, mode: str) -> None:
        """Choose the mode of a stored conversation, also for a turn under way."""
        ...

    async def note_told(self, session: str, mode: str) -> None:
        """Forget this mode: the model was told of it, and the messages say so."""
        ...

    async def chosen_mode(self, session: str) -> str:
        """Return the mode that the model was not told of yet, if there is one."""
        ...

    async def ask(self, session: str, question: str) -> None:
        """Say that a question waits here for an answer; once more does no harm."""
        ...

    async def answer(self, session: str, question: str, answer: Answer) -> bool:
        """Answer it, from any server. False if nobody waits for it, or somebody was faster."""
        ...

    async def withdraw(self, session: str, question: str) -> None: ...

    async def listen(self, channels: Collection[str]) -> None:
        """Say which channels the clients of this server listen to, instead of those before."""
        ...

    async def send(self, posts: Sequence[Post]) -> None: ...

    async def receive(self, turns: Collection[str], channels: Collection[str]) -> Inbox:
        """Take what others left. `turns` run here; `channels` are those whose listeners matter, without those
        of conversations in which another server has a turn."""
        ...

    async def tidy(self) -> None:
        """Forget what servers left that are gone."""
        ...

    async def stir(self, seconds: float) -> None:
        """Wait until something may be there, at most so long."""
        ...

    def wake(self) -> None:
        """Let `stir` return at once."""
        ...

    async def close(self) -> None: ...
