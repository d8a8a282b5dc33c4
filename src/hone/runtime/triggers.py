"""Decide when a review is due. Counters belong to a conversation tree and reset only when one is queued."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

from msgspec.structs import replace

from hone.core.jobs import CUT_OFF, Look, Topic, TopicCount, Topics, TurnSummary
from hone.core.messages import Message, Role, ToolCall
from hone.core.tool import changes
from hone.core.topics import TOPICS
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.knowledge.reasons import count_turns, find_cue
from hone.settings.sections import Learning

FIXED = "a failure that was fixed"


def configure_topics(learning: Learning) -> tuple[Topic, ...]:
    """Return all topics with the user's intervals; none if reviews are off."""
    if learning.review == "off":
        return ()
    return tuple(
        replace(topic, interval=getattr(learning, topic.setting)) if topic.setting else topic
        for topic in TOPICS
    )


def last_turn(transcript: Transcript) -> list[Message]:
    """Return what followed the message that began the last turn. A message sent while the agent worked
    follows the result of a call, so it did not begin a turn."""
    messages = list(transcript)
    for at in range(len(messages) - 1, -1, -1):
        begins = at == 0 or messages[at - 1].role is Role.ASSISTANT
        if messages[at].role is Role.USER and begins:
            return messages[at + 1 :]
    return messages


def find_before(transcript: Transcript, silence: float) -> datetime | None:
    """Return the time of the last message before the user's last words, if they came within `silence`
    seconds."""
    nodes = transcript.nodes
    at = next((at for at in range(len(nodes) - 1, 0, -1) if nodes[at].message.role is Role.USER), 0)
    is_soon = at and (nodes[at].at - nodes[at - 1].at).total_seconds() < silence
    return nodes[at - 1].at if is_soon else None


def summarize(
    messages: Iterable[Message], *, answered: bool = True, readers: Collection[str] = ()
) -> TurnSummary:
    """Return what the messages of a turn add. A turn that was cut off is not `answered`. `readers` are tools
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


def count_turn(turn: TurnSummary, topics: Sequence[Topic]) -> tuple[TopicCount, ...]:
    """Return what a turn adds to the counters of its tree, and when each topic is due."""
    return tuple(
        TopicCount(topic.name, topic.counts(turn), topic.interval, topic.resets(turn), explain(topic))
        for topic in topics
    )


def explain(topic: Topic) -> str:
    """Return why a review of this topic is due."""
    return f"{topic.interval} {topic.unit}{'' if topic.interval == 1 else 's'}"


def is_over(transcript: Transcript) -> bool:
    """Tell whether the last turn has ended, answered or cut off."""
    last = transcript.nodes[-1].message
    return last.role is Role.ASSISTANT and not last.calls


def is_midway(before: Transcript, longer: Transcript) -> bool:
    """Tell whether the new messages lie between the owner's words and the end of the turn."""
    said = before.nodes[-1].message.role is Role.USER or longer.nodes[-1].message.role is Role.USER
    return not said and not is_over(longer)


def plan_look(
    before: Transcript,
    longer: Transcript,
    turn: TurnSummary | None,
    topics: Topics,
    silence: float,
    now: datetime,
) -> Look | None:
    """Decide when to look back over a conversation if nothing follows for `silence` seconds, and why."""
    said = next((node for node in reversed(longer.nodes) if node.message.role is Role.USER), None)
    if said is None or not said.is_owners:
        return None
    at, tainted = now + timedelta(seconds=silence), longer.trust is Trust.FOREIGN
    if said is longer.nodes[-1]:  # searched later: compiling the patterns would delay the model
        return Look(at, CUT_OFF, 1, tainted, topics)
    fixed = FIXED if turn and turn.fixed else ""
    unread = takewhile(lambda node: node.message.role is Role.USER, reversed(before.nodes))
    if texts := [node.message.text for node in unread if node.is_owners]:
        cue = next(filter(None, map(find_cue, texts)), fixed)
        turns, since = count_turns(texts[0]) - 1, find_before(longer, silence)
        return Look(at, cue, turns, tainted, topics, is_examined=True, since=since)
    return Look(at, fixed, 0, tainted, topics)
