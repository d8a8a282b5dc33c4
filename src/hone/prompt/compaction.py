"""Shorten a conversation: decide what stays and what is summarized, and build the new messages.

This module uses neither a model nor a store.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from hone.core.messages import Message, Role, ToolCall, assistant, user
from hone.core.recall import NOTES
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust, lowest

MARK = NOTES
GO_ON = "Continue from there."
_WORDS = 160
_LEAST = 4
"""Fewer messages than this get no summary."""


State = tuple[ToolCall, Node]
"""A call that set the state of a task, and the message with its result."""


class Cut(Struct, frozen=True):
    """The first message stays, messages up to `end` are summarized, later ones stay. `asked` is the last user
    message if it would be removed: it stays, too. Examples of a template are removed without a summary."""

    end: int
    asked: Node | None


def plan(transcript: Transcript, tail: float) -> Cut | None:
    """Keep about this share of the bytes at the end, and never separate a call from its result. Return None
    if there is too little to summarize."""
    nodes, first = transcript.nodes, transcript.examples
    most = tail * sum(len(node.encoded) for node in nodes[first:])
    end, size = 0, 0
    for index in reversed(range(first + 1, len(nodes))):
        size += len(nodes[index].encoded)
        if end and size > most:
            break
        if nodes[index].message.role is not Role.TOOL:
            end = index
    if end - first - 1 < _LEAST:
        return None
    last = max(index for index, node in enumerate(nodes) if node.message.role is Role.USER)
    return Cut(end, nodes[last] if first < last < end else None)


def state(nodes: Sequence[Node], tool: str) -> State | None:
    """Return the last successful call of `tool`, with its result."""
    calls = {call.id: call for node in nodes for call in node.message.calls if call.name == tool}
    for node in reversed(nodes):
        result = node.message.result
        if result and result.call in calls and not result.failed:
            return calls[result.call], node
    return None


def shorten(transcript: Transcript, cut: Cut, notes: str, kept: State | None, now: datetime) -> Transcript:
    """Return the first message, notes, the task state as the call that set it, the last question, and the
    tail."""
    first, tail = transcript.nodes[transcript.examples], transcript.nodes[cut.end :]
    trust = min(Trust.AGENT, lowest(node.trust_floor for node in transcript.nodes[: cut.end]))
    short = Transcript(transcript.root).then(first.message, first.trust, first.at)
    short = short.then(assistant(f"{MARK}\n\n{notes}", *(kept[:1] if kept else ())), trust, now)
    if kept:
        short = short.then(kept[1].message, kept[1].trust, kept[1].at)
    if cut.asked:
        short = short.then(cut.asked.message, cut.asked.trust, cut.asked.at)
    elif tail[0].message.role is Role.ASSISTANT:
        short = short.then(user(GO_ON), Trust.AGENT, now)
    for node in tail:
        short = short.then(node.message, node.trust, node.at)
    return short


def drop_examples(transcript: Transcript) -> Transcript:
    """Remove a conversation's initial examples: when room is short, they go first."""
    short = Transcript(transcript.root)
    for node in transcript.nodes[transcript.examples :]:
        short = short.then(node.message, node.trust, node.at)
    return short


def question(focus: str = "", examples: int = 0) -> Message:
    text = (Path(__file__).with_name("texts") / "compact.md").read_text(encoding="utf-8")
    if examples:
        text += f"\nThe first {examples} messages are examples from a template. Leave them out.\n"
    return user(f"{text}\nPay special attention to: {focus}" if focus else text)


def digest(nodes: tuple[Node, ...]) -> str:
    """Write notes without a model, for when it cannot be asked: what the user said, and what was called."""
    return "\n".join(_digest(nodes))


def _digest(nodes: tuple[Node, ...]) -> Iterator[str]:
    yield "The user said, in order:"
    for node in nodes:
        if node.message.role is Role.USER:
            yield f"- {_short(node.message.text)}"
        elif node.message.text.startswith(MARK):
            yield node.message.text.removeprefix(MARK).strip()
    calls = Counter(call.name for node in nodes for call in node.message.calls)
    if calls:
        yield "Tools used: " + ", ".join(f"{name} ({count})" for name, count in sorted(calls.items()))
    said = [node.message.text for node in nodes if node.message.role is Role.ASSISTANT and node.message.text]
    if said:
        yield f"The last answer: {_short(said[-1])}"


def _short(text: str) -> str:
    words = text.split()
    return " ".join(words[:_WORDS]) + (" …" if len(words) > _WORDS else "")
