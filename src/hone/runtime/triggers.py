"""When a review is due. Counters belong to a conversation tree and are reset only when one is queued."""

import json
from collections.abc import Iterable

from hone.core.jobs import Counters, Topic, Topics
from hone.core.messages import Message, ToolCall
from hone.core.value import dataclass

NOTING, SHELVING = "memory", "skill_manage"
"""The tools whose use in the foreground makes a review of the same thing less urgent."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """A memory review after so many user turns, one of skills after so many replies with calls; 0: never."""

    turns: int = 10
    iterations: int = 10


@dataclass(frozen=True, slots=True)
class Ending:
    """What a turn adds that ended with an answer."""

    iterations: int = 0
    noted: bool = False
    shelved: bool = False


def ending(messages: Iterable[Message]) -> Ending:
    """From the messages of the turn."""
    calls: dict[str, ToolCall] = {}
    iterations, used = 0, set()
    for message in messages:
        iterations += bool(message.calls)
        calls.update((call.id, call) for call in message.calls)
        result = message.result
        if result and not result.failed and result.call in calls:
            used.add(_changing(calls[result.call]))
    return Ending(iterations, NOTING in used, SHELVING in used)


def _changing(call: ToolCall) -> str:
    """The tool's name; nothing if the call only looks."""
    try:
        action = json.loads(call.arguments or "{}").get("action")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return "" if action == "list" else call.name


def counted(counters: Counters, turn: Ending, every: Intervals) -> tuple[Counters, Topics]:
    """The counters after a turn, and what is due. What is due counts anew."""
    turns = 0 if turn.noted else counters.turns + 1
    iterations = 0 if turn.shelved else counters.iterations + turn.iterations
    due = set()
    if every.turns and turns >= every.turns:
        due.add(Topic.MEMORY)
    if every.iterations and iterations >= every.iterations:
        due.add(Topic.SKILLS)
    after = Counters(0 if Topic.MEMORY in due else turns, 0 if Topic.SKILLS in due else iterations)
    return after, frozenset(due)


def why(topics: Topics, every: Intervals) -> str:
    counts = {Topic.MEMORY: (every.turns, "turn"), Topic.SKILLS: (every.iterations, "tool iteration")}
    reasons = {topic: f"{n} {what}{'' if n == 1 else 's'}" for topic, (n, what) in counts.items()}
    return " and ".join(reasons[topic] for topic in Topic if topic in topics)
