"""Hone: an agent that learns from its own conversations, shows what it learned and lets you undo it.

This module exports everything a program or a plugin needs. Each name is loaded when it is first used,
so that `hone --version` does not import the agent.
"""

TYPE_CHECKING = False  # checkers treat it as typing's, which would take a third of `hone --version`
if TYPE_CHECKING:
    from hone.app import Hone as Hone
    from hone.core.agent import Limits as Limits
    from hone.core.clock import Clock as Clock
    from hone.core.clock import ManualClock as ManualClock
    from hone.core.clock import SystemClock as SystemClock
    from hone.core.curation import CuratorRun as CuratorRun
    from hone.core.errors import AnswerError as AnswerError
    from hone.core.errors import HoneError as HoneError
    from hone.core.errors import ModelError as ModelError
    from hone.core.errors import Refused as Refused
    from hone.core.errors import SettingsError as SettingsError
    from hone.core.errors import StoreError as StoreError
    from hone.core.events import CallEnded as CallEnded
    from hone.core.events import CallStarted as CallStarted
    from hone.core.events import Curated as Curated
    from hone.core.events import Emit as Emit
    from hone.core.events import Event as Event
    from hone.core.events import Heard as Heard
    from hone.core.events import Learned as Learned
    from hone.core.events import Notice as Notice
    from hone.core.events import ReviewFailed as ReviewFailed
    from hone.core.events import Spent as Spent
    from hone.core.events import TurnEnded as TurnEnded
    from hone.core.jobs import Job as Job
    from hone.core.ledger import Entry as Entry
    from hone.core.ledger import LessonText as LessonText
    from hone.core.messages import Message as Message
    from hone.core.messages import Role as Role
    from hone.core.messages import ToolCall as ToolCall
    from hone.core.messages import assistant as assistant
    from hone.core.messages import user as user
    from hone.core.model import Connection as Connection
    from hone.core.model import Finish as Finish
    from hone.core.model import Model as Model
    from hone.core.model import Piece as Piece
    from hone.core.model import Remark as Remark
    from hone.core.model import Reply as Reply
    from hone.core.model import Restart as Restart
    from hone.core.model import TextPiece as TextPiece
    from hone.core.model import ThinkingPiece as ThinkingPiece
    from hone.core.model import Usage as Usage
    from hone.core.part import Part as Part
    from hone.core.permissions import Action as Action
    from hone.core.permissions import Answer as Answer
    from hone.core.permissions import Ask as Ask
    from hone.core.permissions import Mode as Mode
    from hone.core.permissions import Question as Question
    from hone.core.permissions import Request as Request
    from hone.core.permit import Effect as Effect
    from hone.core.permit import Permit as Permit
    from hone.core.ports import Header as Header
    from hone.core.prefix import Prefix as Prefix
    from hone.core.tool import Outcome as Outcome
    from hone.core.tool import Tool as Tool
    from hone.core.tool import ToolKind as ToolKind
    from hone.core.tool_context import ToolContext as ToolContext
    from hone.core.transcript import Node as Node
    from hone.core.transcript import Transcript as Transcript
    from hone.core.trust import Trust as Trust
    from hone.core.turn import Origin as Origin
    from hone.core.turn import Stop as Stop
    from hone.core.turn import Turn as Turn
    from hone.core.work import Work as Work
    from hone.knowledge.wording import find_lessons as find_lessons
    from hone.models.fake_provider import FakeProvider as FakeProvider
    from hone.models.scripted import Script as Script
    from hone.models.scripted import Scripted as Scripted
    from hone.models.scripted import call as call
    from hone.models.scripted import lines as lines
    from hone.models.scripted import rounds as rounds
    from hone.runtime.session import Session as Session
    from hone.runtime.task_runner import EventStream as EventStream
    from hone.runtime.toolbox_factory import Enclosure as Enclosure
    from hone.sandbox.choice import Sandbox as Sandbox
    from hone.settings import Settings as Settings
    from hone.settings.sections import PermissionSettings as PermissionSettings
    from hone.tools.define import FunctionTool as FunctionTool
    from hone.tools.define import tool as tool

__version__ = "0.1.0"

_HOMES = {
    "hone.app": "Hone",
    "hone.core.agent": "Limits",
    "hone.core.clock": "Clock ManualClock SystemClock",
    "hone.core.curation": "CuratorRun",
    "hone.core.errors": "AnswerError HoneError ModelError Refused SettingsError StoreError",
    "hone.core.events": (
        "CallEnded CallStarted Curated Emit Event Heard Learned Notice ReviewFailed Spent TurnEnded"
    ),
    "hone.core.jobs": "Job",
    "hone.core.ledger": "Entry LessonText",
    "hone.core.messages": "Message Role ToolCall assistant user",
    "hone.core.model": "Connection Finish Model Piece Remark Reply Restart TextPiece ThinkingPiece Usage",
    "hone.core.part": "Part",
    "hone.core.permissions": "Action Answer Ask Mode Question Request",
    "hone.core.permit": "Effect Permit",
    "hone.core.ports": "Header",
    "hone.core.prefix": "Prefix",
    "hone.core.tool": "Outcome Tool ToolKind",
    "hone.core.tool_context": "ToolContext",
    "hone.core.transcript": "Node Transcript",
    "hone.core.trust": "Trust",
    "hone.core.turn": "Origin Stop Turn",
    "hone.core.work": "Work",
    "hone.knowledge.wording": "find_lessons",
    "hone.models.fake_provider": "FakeProvider",
    "hone.models.scripted": "Script Scripted call lines rounds",
    "hone.runtime.session": "Session",
    "hone.runtime.task_runner": "EventStream",
    "hone.runtime.toolbox_factory": "Enclosure",
    "hone.sandbox.choice": "Sandbox",
    "hone.settings": "Settings",
    "hone.settings.sections": "PermissionSettings",
    "hone.tools.define": "FunctionTool tool",
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
