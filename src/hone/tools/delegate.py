"""Delegate tasks: each task goes to a child of the agent, and several children can work in parallel."""

import asyncio
from typing import Annotated

from hone.core.events import CallStarted, Emit, Event, Notice
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import lowest
from hone.core.turn import Turn
from hone.tools.define import tool

_TITLE = 60


def delegate_tool(at_once: int = 4) -> Tool:
    """`at_once`: how many children work at the same time."""

    @tool(effects={Effect.SPAWN})
    async def delegate(
        context: ToolContext, tasks: Annotated[list[str], "complete instructions, one per helper"]
    ) -> Outcome:
        """Give independent tasks to helpers. They have your tools but do not see this conversation. They work
        in parallel, and each returns a summary."""
        if not tasks or not all(task.strip() for task in tasks):
            return refused("Every task needs instructions.")
        places = asyncio.Semaphore(at_once)

        async def one(number: int, task: str) -> Turn:
            async with places:
                return await context.spawn(task, _progress(number, len(tasks), context.emit))

        turns = await asyncio.gather(*(one(number, task) for number, task in enumerate(tasks, 1)))
        trust = lowest(node.trust for turn in turns for node in turn.nodes)
        return Outcome("\n\n".join(map(_report, tasks, turns)), all(turn.error for turn in turns), trust)

    return delegate


def _progress(number: int, total: int, emit: Emit) -> Emit:
    """A child's calls, said in the parent's conversation."""

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
