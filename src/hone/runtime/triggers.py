"""Decide when a review is due. Counters belong to a conversation tree and reset only when one is queued."""

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from hone.core.jobs import Counters, Topic, Topics, TurnSummary
from hone.core.messages import Message, ToolCall
from hone.core.tool import changes
from hone.core.topics import TOPICS
from hone.settings import Learning

FIXED = "a failure that was fixed"


def configure_topics(learning: Learning) -> tuple[Topic, ...]:
    """Return all topics with the intervals that the user wants; none if reviews are off."""
    if learning.review == "off":
        return ()
    return tuple(
        replace(topic, interval=getattr(learning, topic.setting)) if topic.setting else topic
        for topic in TOPICS
    )


def summarize(
    messages: Iterable[Message], *, answered: bool = True, readers: Collection[str] = ()
) -> TurnSummary:
    """Return what the messages of a turn add. One that was cut off is not `answered`. `readers` are tools
    that only look: one that finds nothing at first has not failed."""
    calls: dict[str, ToolCall] = {}
    iterations, fixed, used, failed = 0, False, set(), set()
    for message in messages:
        if made := message.calls:
            iterations += 1
            calls.update((call.id, call) for call in made)
            continue
        result = message.result
        if result is None or result.call not in calls:
            continue
        call = calls[result.call]
        if result.failed:
            failed.add(call.name)
            continue
        fixed = fixed or (call.name in failed and call.name not in readers)
        if changes(call):
            used.add(call.name)
    return TurnSummary(iterations, frozenset(used), fixed, answered)


def count_turn(counters: Counters, turn: TurnSummary, topics: Sequence[Topic]) -> tuple[Counters, Topics]:
    """Return the counters after a turn, and what is due. What is due counts anew."""
    after = {
        topic.name: 0 if topic.resets(turn) else counters.get(topic.name, 0) + topic.counts(turn)
        for topic in topics
    }
    due = frozenset(topic.name for topic in topics if topic.interval and after[topic.name] >= topic.interval)
    return {**counters, **after, **dict.fromkeys(due, 0)}, due


def explain(due: Topics, topics: Sequence[Topic]) -> str:
    """Return what set a review off."""
    return " and ".join(
        f"{topic.interval} {topic.unit}{'' if topic.interval == 1 else 's'}"
        for topic in topics
        if topic.name in due
    )
