"""What tools ask before they act, and how the owner answers.

A tool describes what it is about to do as a Request. One object per conversation decides: by the mode, by the
owner's rules, or by asking.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Protocol

from msgspec import Struct

from hone.core.transcript import Transcript


class Mode(StrEnum):
    """How much an agent may do without a question."""

    PLAN = "plan"
    """It only looks, and ends with a plan."""
    ASK = "ask"
    """It asks before each write and each command."""
    AUTO = "auto"
    """It works freely in its folder and its sandbox, and asks beyond them."""
    FULL = "full"
    """It never asks."""


class Action(StrEnum):
    READ = "read"
    WRITE = "write"
    RUN = "run"
    FETCH = "fetch"


class Request(Struct, frozen=True):
    """What a call is about to do.

    subject:  the real path, the command, or the URL
    detail:   what the owner is shown: a diff, the command, the URL
    question: what the owner is asked; empty: a plain question about the action
    doubts:   whole sentences on why even a free agent should ask
    network:  the call wants the network
    follows:  it follows from a request that was allowed, as a redirect does; only a denial stops it
    """

    tool: str
    action: Action
    subject: str
    detail: str = ""
    question: str = ""
    doubts: tuple[str, ...] = ()
    network: bool = False
    follows: bool = False


class Question(Struct, frozen=True):
    """`detail` is, to the byte, what will be done. `pattern` is what an answer for longer would cover: the
    rules, one per line; empty if there can be only a yes for this once."""

    text: str
    detail: str
    pattern: str


class Answer(Struct, frozen=True):
    """`reason` goes to the model with a no."""

    choice: str
    reason: str = ""

    NO: ClassVar["Answer"]
    ONCE: ClassVar["Answer"]
    SESSION: ClassVar["Answer"]
    ANY_HOST: ClassVar["Answer"]
    ALWAYS: ClassVar["Answer"]

    @property
    def is_yes(self) -> bool:
        return self.choice in CHOICES and self.choice != "no"

    def __str__(self) -> str:
        return f"{self.choice}: {self.reason}" if self.reason else self.choice


CHOICES = ("no", "once", "session", "any-host", "always")
"""no, yes, yes for this session, any host for this session, always."""
Answer.NO, Answer.ONCE, Answer.SESSION, Answer.ANY_HOST, Answer.ALWAYS = map(Answer, CHOICES)

Ask = Callable[[Question], Awaitable[Answer]]


async def nobody(_: Question) -> Answer:
    """Answer no, because nobody can be asked."""
    return Answer.NO


class Permissions(Protocol):
    """Decides what the tools of one conversation may do."""

    @property
    def mode(self) -> Mode: ...

    async def refusal(self, request: Request, transcript: Transcript, *, attended: bool) -> str:
        """Return why a request is refused, in a sentence; empty if it is allowed."""
        ...

    async def ask(self, question: Question) -> Answer: ...

    def reader(self) -> Callable[[Path], bool]:
        """Return a function that tells whether a real path may be read without a question."""
        ...


class NoPermissions:
    """Refuses everything: nobody has decided anything here."""

    mode = Mode.PLAN

    async def refusal(self, request: Request, transcript: Transcript, *, attended: bool) -> str:
        return "Nothing is permitted here."

    async def ask(self, question: Question) -> Answer:
        return Answer.NO

    def reader(self) -> Callable[[Path], bool]:
        return lambda _: False
