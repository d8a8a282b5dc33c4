"""Delegate tasks: each task goes to a child of the agent, and several children can work in parallel."""

import asyncio
import inspect
from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from hone.core.agent import Helper
from hone.core.errors import SettingsError
from hone.core.events import CallStarted, Emit, Event, Notice
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import lowest
from hone.core.turn import Origin, Stop, Turn
from hone.core.visible import one_line
from hone.tools.define import FunctionTool, tool

_TITLE = 60
_DESCRIBED = 300
"""The most characters of a helper's description that the model reads."""


Tasks = Annotated[list[str], "complete instructions, one per helper"]


def delegate_tool(at_once: int = 4, helpers: Sequence[Helper] = ()) -> Tool:
    """Return the tool that delegates tasks. `at_once`: how many children work at the same time. `helpers` can
    get tasks by name; they are listed in this order."""
    work = Delegation(at_once)

    @tool(effects={Effect.SPAWN})
    async def delegate(context: ToolContext, tasks: Tasks) -> Outcome:
        """Give independent tasks to helpers. They have your tools but do not see this conversation. They work
        in parallel, and each returns a summary."""
        return await work.give(context, tasks)

    return _with_names(delegate, work, helpers) if helpers else delegate


def _with_names(plain: FunctionTool, work: "Delegation", helpers: Sequence[Helper]) -> Tool:
    """Return the tool with a choice of helpers. Without helpers it is unchanged, to the byte."""
    known = {helper.name: helper for helper in helpers}

    async def delegate(
        context: ToolContext, tasks: Tasks, agent: Annotated[str, "a named helper for all tasks"] = ""
    ) -> Outcome:
        if agent and agent not in known:
            return refused(f"There is no helper named {agent!r}. These exist: {', '.join(known)}.")
        return await work.give(context, tasks, known.get(agent))

    listed = (f"- {helper.name}: {one_line(helper.description, _DESCRIBED)}" for helper in helpers)
    head = f"{inspect.getdoc(plain.function)}\n\nNamed helpers have instructions of the user's:"
    delegate.__doc__ = "\n".join((head, *listed))
    return tool(effects=plain.spec.effects)(delegate)


class Delegation(Struct, frozen=True):
    """Gives tasks to children and collects their reports."""

    at_once: int

    async def give(self, context: ToolContext, tasks: Sequence[str], helper: Helper | None = None) -> Outcome:
        if not tasks or not all(task.strip() for task in tasks):
            return refused("Every task needs instructions.")
        places = asyncio.Semaphore(self.at_once)

        async def one(number: int, task: str) -> Turn:
            show = _progress(number, len(tasks), context.emit)
            async with places:
                try:
                    return await context.spawn(task, show, helper)
                except SettingsError as error:  # the model of a helper
                    return Turn(Origin.DELEGATE).ended(Stop.FAILED, str(error))

        turns = await asyncio.gather(*(one(number, task) for number, task in enumerate(tasks, 1)))
        trust = lowest(node.trust for turn in turns for node in turn.nodes)
        return Outcome("\n\n".join(map(_report, tasks, turns)), all(turn.error for turn in turns), trust)


def _progress(number: int, total: int, emit: Emit) -> Emit:
    """Report a child's calls in the parent's conversation."""

    def show(event: Event) -> None:
        if isinstance(event, CallStarted):
            emit(Notice(f"helper {number} of {total}: {event.call.name}"))
        elif isinstance(event, Notice):
            emit(Notice(f"helper {number} of {total}: {event.text}"))

    return show


def _report(task: str, turn: Turn) -> str:
    title = " ".join(task.split())
    title = title if len(title) <= _TITLE else f"{title[:_TITLE]}…"
    return "\n".join(part for part in (f"## {title}", turn.text, turn.error and f"({turn.error})") if part)
