"""What tools ask before they act, and how the owner answers.

A tool describes what it is about to do as a Request. One object per conversation decides: by the mode, by the
owner's rules, or by asking.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Protocol

from msgspec import Struct

from hone.core.errors import Refused
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


MEANINGS = {
    Mode.PLAN: "only looks, and ends with a plan for you to approve",
    Mode.ASK: "asks before each write and each command",
    Mode.AUTO: "works freely in the folder and the sandbox, and asks beyond them",
    Mode.FULL: "never asks; your deny rules still hold",
}
"""How each mode is described to the owner."""
GO_AHEAD = "Go ahead with this plan."
"""What the owner's approval of a plan says."""


def stricter(one: Mode, other: Mode) -> Mode:
    """Return the mode that allows less."""
    return min(one, other, key=list(Mode).index)


class Action(StrEnum):
    READ = "read"
    WRITE = "write"
    RUN = "run"
    FETCH = "fetch"
    USE = "use"
    """Anything else by which a tool changes something."""


class Request(Struct, frozen=True):
    """What a call is about to do.

    subject:  the real path, the command, the URL, or the arguments of the call
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


CHOICES = ("no", "once", "session", "any-host", "always")
"""no, yes, yes for this session, any host for this session, always."""


class Question(Struct, frozen=True):
    """What the owner is asked.

    detail:  to the byte, what will be done
    pattern: what an answer for longer would cover: the rules, one per line; empty: there can be only a yes
             for this once
    network: it is about the network, so that "any host" is an answer
    wanted:  what a yes has to come with, in the answer's `reason`: the name of something to type
    """

    text: str
    detail: str
    pattern: str
    network: bool = False
    wanted: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the answers that are offered, in the order in which they are shown."""
        longer = self.pattern != ""
        offered = {"once": True, "session": longer, "any-host": self.network, "always": longer, "no": True}
        return tuple(name for name, is_offered in offered.items() if is_offered)


class Answer(Struct, frozen=True):
    """`choice` is one of CHOICES; anything else is a no. `reason` goes to the model with a no; with a yes it
    is what the question wanted."""

    choice: str
    reason: str = ""

    NO: ClassVar["Answer"]
    ONCE: ClassVar["Answer"]
    SESSION: ClassVar["Answer"]
    ANY_HOST: ClassVar["Answer"]
    ALWAYS: ClassVar["Answer"]
    NOBODY: ClassVar["Answer"]
    """Nobody could be asked."""

    @property
    def is_yes(self) -> bool:
        return self.choice in CHOICES and self.choice != "no"

    def __str__(self) -> str:
        return f"{self.choice}: {self.reason}" if self.reason else self.choice


Answer.NO, Answer.ONCE, Answer.SESSION, Answer.ANY_HOST, Answer.ALWAYS = map(Answer, CHOICES)
Answer.NOBODY = Answer("nobody")

Ask = Callable[[Question], Awaitable[Answer]]


async def nobody(_: Question) -> Answer:
    """Answer that nobody can be asked."""
    return Answer.NOBODY


class Permissions(Protocol):
    """Decides what the tools of one conversation may do."""

    @property
    def mode(self) -> Mode: ...

    @property
    def asked(self) -> int:
        """Return how many questions the owner was asked."""
        ...

    def switch(self, mode: Mode) -> None: ...

    def hear(self, transcript: Transcript) -> None:
        """Learn from what the owner said: a URL in it is consent to its host."""
        ...

    async def refusal(self, request: Request, transcript: Transcript, *, attended: bool) -> str:
        """Return why a request is refused, in a sentence; empty if it is allowed."""
        ...

    async def ask(self, question: Question, tool: str) -> Answer:
        """Ask the owner, for a tool, about something that no rule covers yet."""
        ...

    def reader(self) -> Callable[[Path], bool]:
        """Return a function that tells whether a real path may be read without a question."""
        ...


class NoPermissions:
    """Refuses everything, since nobody has decided anything. The mode makes no difference."""

    mode = Mode.AUTO
    asked = 0

    def switch(self, mode: Mode) -> None:
        raise Refused("Nothing is permitted here, in any mode.")

    def hear(self, transcript: Transcript) -> None:
        pass

    async def refusal(self, request: Request, transcript: Transcript, *, attended: bool) -> str:
        return "Nothing is permitted here."

    async def ask(self, question: Question, tool: str) -> Answer:
        return Answer.NO

    def reader(self) -> Callable[[Path], bool]:
        return lambda _: False
