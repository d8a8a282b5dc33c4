"""Import traces: read a file, find what is new in it, and store that with the same hashes.

The file may come from anywhere. Every digest is computed again, and lines with a wrong one are left out.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from re import fullmatch

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from hone.core.errors import Conflict, HoneError, Missing, StoreError
from hone.core.ids import SessionId
from hone.core.messages import Message, canonical, decode, digest, encode
from hone.core.ports import Header, Sessions
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.traces.export import (
    VERSION,
    Content,
    Label,
    Labels,
    Leaf,
    Root,
    Top,
    Trace,
    TraceSession,
    Tree,
)
from hone.runtime.export import lineage

SYMPTOMS = (KeyError, TypeError, ValueError, RecursionError, msgspec.MsgspecError)
"""Errors of a line that export cannot have written."""

Line = Top | Root | Content | Leaf


class RestoreState(StrEnum):
    """How a session of the file relates to the one of that name in the store."""

    NEW = "new"
    LONGER = "longer"
    """The file has more messages."""
    SAME = "same"
    """There is nothing to add."""
    OTHER = "other"
    """They have diverged."""


@dataclass(slots=True)
class FoundTrace:
    """`faults` are sentences about lines that were left out."""

    tree: Tree = field(default_factory=Tree)
    redacted: bool = False
    faults: list[str] = field(default_factory=list)


def read(lines: Iterable[str | bytes]) -> FoundTrace:
    """Read a file. Raises HoneError if it is not a file of traces, or a newer kind of one."""
    found = FoundTrace()
    messages: dict[str, Message] = {}
    begun = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = msgspec.convert(json.loads(line), Line)
            if not begun and not isinstance(value, Top):
                break
            begun = True
            _take(value, found, messages)
        except SYMPTOMS as error:
            if not begun:
                break
            found.faults.append(f"line {number}: {_why(error)}")
    if not begun:
        raise HoneError("This is no file of traces. Write one with: hone traces export -o FILE")
    _resolve(found)
    return found


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it refers to {str(error.args[0])[:80]!r}, which is not there"
    return str(error).split("\n")[0][:200] or type(error).__name__


def _take(value: Line, found: FoundTrace, messages: dict[str, Message]) -> None:
    match value:
        case Top(version=version, redacted=redacted):
            if version != VERSION:
                raise HoneError(f"These traces are of version {version}; this Hone reads {VERSION}.")
            found.redacted = found.redacted or redacted
        case Root():
            prefix = _prefix(value)
            found.tree.prefixes[prefix.digest] = prefix
        case Content():
            messages[value.digest] = _message(value)
            if value.redacted:
                found.tree.redacted.add(value.digest)
        case Leaf():
            _grow(value, found.tree, messages)


def _prefix(root: Root) -> Prefix:
    prefix = Prefix(root.model, root.system, tuple(root.tools), root.sampling)
    if prefix.digest != root.digest:
        raise ValueError("the prefix is not the one its digest names")
    if not all(isinstance(json.loads(text), dict) for text in (*root.tools, root.sampling)):
        raise ValueError("a tool or the sampling is no JSON object")
    return prefix


def _message(content: Content) -> Message:
    message = decode(canonical({"role": content.role, "parts": content.parts}).encode())
    message = replace(message, template=content.template)
    for part in message.parts:
        for each in fields(part):
            if type(getattr(part, each.name)) is not each.type:
                raise ValueError(f"{each.name!r} of a part is of the wrong type")
    if digest(encode(message)) != content.digest:
        raise ValueError("the content is not the one its digest names")
    return message


def _grow(leaf: Leaf, tree: Tree, messages: Mapping[str, Message]) -> None:
    """Add all of the leaf or nothing of it."""
    if leaf.prefix not in tree.prefixes:
        raise KeyError(leaf.prefix)
    if leaf.after is not None and leaf.after not in tree.nodes:
        raise KeyError(leaf.after)
    before = tree.path(leaf.after) if leaf.after is not None else []
    parent = before[-1].hash if before else leaf.prefix
    if (before[0].parent if before else leaf.prefix) != leaf.prefix or len(before) != leaf.shared:
        raise ValueError("the leaf does not follow the messages it says it shares")
    nodes: list[Node] = []
    for said in leaf.messages:
        nodes.append(Node.make(parent, messages[said.content], Trust[said.trust.upper()], said.at))
        parent = nodes[-1].hash
        if parent != said.hash:
            raise ValueError(f"message {leaf.shared + len(nodes)} is not the one its hash names")
    traces = [_trace(entry, [*before, *nodes]) for entry in leaf.sessions]
    if taken := [trace.header.id for trace in traces if trace.header.id in tree.traces]:
        raise ValueError(f"session {taken[0]} is there twice")
    for node in nodes:
        tree.nodes.setdefault(node.hash, node)
    tree.traces.update((trace.header.id, trace) for trace in traces)


def _trace(entry: TraceSession, path: Sequence[Node]) -> Trace:
    if not fullmatch(r"[A-Za-z0-9_-]{1,64}", entry.session):
        raise ValueError("a session's id is made of letters and digits")
    if not 1 <= entry.messages <= len(path) or not 0 <= entry.shared <= entry.messages:
        raise ValueError(f"session {entry.session} does not end where it says")
    parent = SessionId(entry.parent) if entry.parent else None
    header = Header(
        SessionId(entry.session),
        entry.created,
        entry.title,
        entry.origin,
        entry.folder,
        parent,
        entry.shared,
    )
    left = [(each.hash, _labels(each.labels)) for each in entry.former]
    return Trace(header, (*left, (path[entry.messages - 1].hash, _labels(entry.labels))))


def _labels(labels: Iterable[Label]) -> Labels:
    return {each.hash: (Trust[each.trust.upper()], each.at) for each in labels}


def _resolve(found: FoundTrace) -> None:
    """Find a line that a session has left. It may come after the session, or be on an invalid line."""
    for id, trace in found.tree.traces.items():
        lines = tuple(line for line in trace.lines if line[0] in found.tree.nodes)
        if lines != trace.lines:
            found.faults.append(f"session {id}: a line it has left is not there; it is restored without")
            found.tree.traces[id] = replace(trace, lines=lines)


class RestoreStep(Struct, frozen=True):
    trace: Trace
    lines: tuple[Transcript, ...]
    state: RestoreState


async def compare(store: Sessions, tree: Tree, *, own: bool = False) -> list[RestoreStep]:
    """Return what to do for each session, parents first. Unless the file is the owner's `own`, nothing in it
    is better than foreign: a file can claim anything about itself."""
    steps = []
    for trace in _ordered(tree):
        lines = _replayable([_transcript(tree, *line, own=own) for line in trace.lines])
        steps.append(RestoreStep(trace, lines, await _state(store, trace.header.id, lines)))
    return steps


def _ordered(tree: Tree) -> list[Trace]:
    headers = {id: trace.header for id, trace in tree.traces.items()}
    lines = (reversed(lineage(headers, header)) for header in headers.values())
    return [tree.traces[id] for id in dict.fromkeys(header.id for line in lines for header in line)]


def _transcript(tree: Tree, head: str, labels: Labels, *, own: bool) -> Transcript:
    path = tree.path(head)
    nodes: list[Node] = []
    for node in path:
        trust, at = labels.get(node.hash, (node.trust, node.at))
        nodes.append(replace(node, trust=trust if own else Trust.FOREIGN, at=at))
    return Transcript(path[0].parent, tuple(nodes))


def _replayable(lines: Sequence[Transcript]) -> tuple[Transcript, ...]:
    """Return the last lines, as far back as a session can have moved from one to the next."""
    kept = [lines[-1]]
    for line in reversed(lines[:-1]):
        if line.root != kept[0].root and _digests(kept[0])[: len(line)] != _digests(line):
            break
        kept.insert(0, line)
    return tuple(kept)


def _digests(transcript: Transcript) -> list[str]:
    return [node.digest for node in transcript.nodes]


async def _state(store: Sessions, session: SessionId, lines: Sequence[Transcript]) -> RestoreState:
    try:
        there = (await store.load(session)).transcript
    except Missing:
        return RestoreState.NEW
    place = _at(lines, there.head)
    if place is None:
        ahead = lines[-1].head in {node.hash for node in there.nodes}
        return RestoreState.SAME if ahead else RestoreState.OTHER
    return RestoreState.SAME if place == (len(lines) - 1, len(lines[-1])) else RestoreState.LONGER


def _at(lines: Sequence[Transcript], head: str) -> tuple[int, int] | None:
    """Return the line that contains a head, and the number of messages up to it."""
    for index in reversed(range(len(lines))):
        for depth, node in enumerate(lines[index].nodes, 1):
            if node.hash == head:
                return index, depth
    return None


async def restore(store: Sessions, tree: Tree, steps: Iterable[RestoreStep]) -> list[RestoreStep]:
    """Store what is new; return the steps in which another process was faster. A session appears at once and
    complete; one that has left lines goes through them, and another try continues where this one ended. An
    error says how many were stored before it."""
    failed, stored = [], 0
    for step in steps:
        if step.state not in (RestoreState.NEW, RestoreState.LONGER):
            continue
        try:
            await _restore(store, tree, step)
            stored += 1
        except Conflict:
            failed.append(step)
        except StoreError as error:
            count = "1 session was" if stored == 1 else f"{stored:,} sessions were"
            raise type(error)(f"{error} {count} stored before; import once more to continue.") from error
    return failed


async def _restore(store: Sessions, tree: Tree, step: RestoreStep) -> None:
    id, lines = step.trace.header.id, step.lines
    if step.state is RestoreState.NEW:
        header = await _attached(store, step.trace.header, lines[0])
        await store.start(header, tree.prefixes[lines[0].root], lines[0].nodes[header.shared :])
        index = 0
    else:
        place = _at(lines, (await store.load(id)).transcript.head)
        if place is None:
            raise Conflict(f"Session {id} has gone on elsewhere in the meantime.")
        index, depth = place
        if depth < len(lines[index]):
            await store.append(id, lines[index].nodes[depth:])
    for before, after in zip(lines[index:], lines[index + 1 :], strict=False):
        if before.root == after.root:
            await store.shorten(id, before.head, after)
            continue
        await store.move(id, tree.prefixes[after.root], after.upto(len(before)))
        if len(after) > len(before):
            await store.append(id, after.nodes[len(before) :])


async def _attached(store: Sessions, header: Header, line: Transcript) -> Header:
    """Attach a session to as much of its parent as is in the store: an unknown name cannot be a parent's."""
    if header.parent is None:
        return replace(header, shared=0)
    try:
        parent = (await store.load(header.parent)).transcript
    except Missing:
        return replace(header, parent=None, shared=0)
    ours, theirs = _facts(line, header.shared), _facts(parent, header.shared)
    return header if ours == theirs and len(ours) == header.shared else replace(header, shared=0)


def _facts(transcript: Transcript, count: int) -> list[tuple[str, Trust, datetime]]:
    """Return messages with their labels: a parent's get no better because a child has the same words."""
    return [(node.hash, node.trust, node.at) for node in transcript.nodes[:count]]
