"""Hone: an agent that learns from its own conversations, shows what it learned and lets you undo it.

This module exports everything a program or a plugin needs. Each name is loaded when it is first used,
so that `hone --version` does not import the agent.
"""

TYPE_CHECKING = False  # checkers treat it as typing's, which would take a third of `hone --version`
if TYPE_CHECKING:
    from hone.app import Hone as Hone
    from hone.core.agent import Limits as Limits
    from hone.core.clock import ManualClock as ManualClock
    from hone.core.errors import AnswerError as AnswerError
    from hone.core.errors import HoneError as HoneError
    from hone.core.errors import ModelError as ModelError
    from hone.core.events import CallEnded as CallEnded
    from hone.core.events import CallStarted as CallStarted
    from hone.core.events import Event as Event
    from hone.core.events import Learned as Learned
    from hone.core.events import Notice as Notice
    from hone.core.events import ReviewFailed as ReviewFailed
    from hone.core.events import TurnEnded as TurnEnded
    from hone.core.messages import Message as Message
    from hone.core.messages import assistant as assistant
    from hone.core.messages import user as user
    from hone.core.model import Connection as Connection
    from hone.core.model import Model as Model
    from hone.core.model import Piece as Piece
    from hone.core.model import Reply as Reply
    from hone.core.model import TextPiece as TextPiece
    from hone.core.model import Usage as Usage
    from hone.core.part import Part as Part
    from hone.core.permissions import Action as Action
    from hone.core.permissions import Answer as Answer
    from hone.core.permissions import Mode as Mode
    from hone.core.permissions import Question as Question
    from hone.core.permissions import Request as Request
    from hone.core.permit import Effect as Effect
    from hone.core.permit import Permit as Permit
    from hone.core.prefix import Prefix as Prefix
    from hone.core.tool import Outcome as Outcome
    from hone.core.tool import Tool as Tool
    from hone.core.tool import ToolKind as ToolKind
    from hone.core.tool_context import ToolContext as ToolContext
    from hone.core.transcript import Transcript as Transcript
    from hone.core.turn import Origin as Origin
    from hone.core.turn import Stop as Stop
    from hone.core.turn import Turn as Turn
    from hone.knowledge.wording import find_lessons as find_lessons
    from hone.models.scripted import Scripted as Scripted
    from hone.models.scripted import call as call
    from hone.models.scripted import lines as lines
    from hone.runtime.session import Session as Session
    from hone.settings import Settings as Settings
    from hone.tools.define import tool as tool

__version__ = "0.1.0"

_HOMES = {
    "hone.app": "Hone",
    "hone.core.agent": "Limits",
    "hone.core.clock": "ManualClock",
    "hone.core.errors": "AnswerError HoneError ModelError",
    "hone.core.events": "CallEnded CallStarted Event Learned Notice ReviewFailed TurnEnded",
    "hone.core.messages": "Message assistant user",
    "hone.core.model": "Connection Model Piece Reply TextPiece Usage",
    "hone.core.part": "Part",
    "hone.core.permit": "Effect Permit",
    "hone.core.prefix": "Prefix",
    "hone.core.tool": "Outcome Tool ToolKind",
    "hone.core.permissions": "Action Answer Mode Question Request",
    "hone.core.tool_context": "ToolContext",
    "hone.core.transcript": "Transcript",
    "hone.core.turn": "Origin Stop Turn",
    "hone.knowledge.wording": "find_lessons",
    "hone.models.scripted": "Scripted call lines",
    "hone.runtime.session": "Session",
    "hone.settings": "Settings",
    "hone.tools.define": "tool",
}
_WHERE = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_WHERE)]  # noqa: PLE0604  names loaded on first use


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _WHERE:
        raise AttributeError(f"module 'hone' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
