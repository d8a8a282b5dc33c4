"""Export conversations as JSON lines for analysis or training: every leaf, and each content once.

A leaf is a line of messages that no other one extends. Equal hashes are one node, whichever session they come
from, so a review extends the conversation it reviewed. docs/traces.md describes the format.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from hone.core.errors import Corrupt, Missing
from hone.core.ids import SessionId
from hone.core.messages import (
    Attachment,
    Message,
    Part,
    Reminder,
    Role,
    SystemNote,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from hone.core.ports import Header, Sessions, SessionSummary, Spending, StoredSession
from hone.core.prefix import Prefix
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.runtime.export import Clean, cleaned, lineage

VERSION = 1

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class Top(Struct, tag_field="kind", tag="traces"):
    version: int
    redacted: bool


class Root(Struct, tag_field="kind", tag="prefix"):
    digest: str
    model: str
    system: str
    tools: list[str]
    sampling: str


class Content(Struct, tag_field="kind", tag="content", omit_defaults=True):
    digest: str
    role: Role
    parts: list[dict[str, Any]]
    redacted: bool = False
    template: str = ""


class TraceMessage(Struct):
    """A message in its place: `content` is a digest, `hash` that of the node."""

    hash: str
    content: str
    trust: str
    at: Moment


class Label(Struct):
    """Where one session gives a message that several share another time or trust."""

    hash: str
    trust: str
    at: Moment


class Left(Struct, omit_defaults=True):
    """A line that a session has left, by the hash of its end."""

    hash: str
    labels: list[Label] = []


class TraceSession(Struct, omit_defaults=True):
    """A session that ends on a leaf, after `messages` of it."""

    session: str
    origin: Origin
    created: Moment
    messages: int
    title: str = ""
    folder: str = ""
    parent: str | None = None
    shared: int = 0
    former: list[Left] = []
    labels: list[Label] = []
    usage: list[dict[str, Any]] = []


class Leaf(Struct, tag_field="kind", tag="leaf"):
    """`messages` follow the first `shared` ones of an earlier leaf, up to the node `after`; or the prefix."""

    hash: str
    model: str
    prefix: str
    after: str | None
    shared: int
    messages: list[TraceMessage]
    sessions: list[TraceSession]


Labels = Mapping[str, tuple[Trust, datetime]]
"""Trust and time by hash, if they differ from those of the tree."""


class Trace(Struct, frozen=True):
    """A session in the tree. `lines` are the hashes of their ends, oldest first, the current one last."""

    header: Header
    lines: tuple[tuple[str, Labels], ...]
    spending: Sequence[Spending] = ()

    @property
    def head(self) -> str:
        return self.lines[-1][0]


@dataclass(slots=True)
class Tree:
    """Nodes by their hash, prefixes by their digest. `redacted` are digests of contents that were changed."""

    prefixes: dict[str, Prefix] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    traces: dict[SessionId, Trace] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    damaged: list[str] = field(default_factory=list)

    def add(self, lines: Sequence[StoredSession], spending: Sequence[Spending] = ()) -> None:
        """Add one session: its former states, and last its current one."""
        ends = tuple((line.transcript.head, self._merge(line)) for line in lines)
        self.traces[lines[-1].header.id] = Trace(lines[-1].header, ends, spending)

    def _merge(self, line: StoredSession) -> Labels:
        labels: dict[str, tuple[Trust, datetime]] = {}
        self.prefixes.setdefault(line.prefix.digest, line.prefix)
        for node in line.transcript.nodes:
            known = self.nodes.setdefault(node.hash, node)
            if (known.trust, known.at) != (node.trust, node.at):
                labels[node.hash] = (node.trust, node.at)
        return labels

    def leaves(self) -> list[str]:
        inner = {node.parent for node in self.nodes.values()}
        heads = (head for trace in self.traces.values() for head, _ in trace.lines)
        return [head for head in dict.fromkeys(heads) if head not in inner]

    def path(self, head: str, known: Collection[str] = ()) -> list[Node]:
        """Return the path from the root to this head, or only what follows the known nodes."""
        found: list[Node] = []
        while head in self.nodes and head not in known:
            found.append(self.nodes[head])
            head = found[-1].parent
        return found[::-1]


def choose(
    found: Sequence[SessionSummary],
    *,
    since: datetime | None = None,
    sessions: Collection[SessionId] = (),
    reviews: bool = True,
) -> list[SessionSummary]:
    """Return the sessions that were active `since`, and descend from one of these `sessions` if any are
    named. Without reviews, their descendants are left out, too. Oldest first."""
    headers = {each.header.id: each.header for each in found}

    def wanted(each: SessionSummary) -> bool:
        line = lineage(headers, each.header)
        named = not sessions or any(header.id in sessions for header in line)
        plain = reviews or all(header.origin is not Origin.REVIEW for header in line)
        return named and plain and (since is None or each.updated >= since)

    return sorted(filter(wanted, found), key=lambda each: (each.header.created, each.header.id))


async def gather(store: Sessions, chosen: Sequence[SessionSummary], clean: Clean | None) -> Tree:
    """Return the tree of these sessions. Sessions deleted in the meantime are skipped; damaged ones are
    reported."""
    tree = Tree()
    wash = Wash(clean, tree.redacted) if clean else None
    for each in chosen:
        session = each.header.id
        try:
            lines = [*await store.earlier(session), await store.load(session)]
        except Missing:
            continue
        except Corrupt as error:
            tree.damaged.append(str(error))
            continue
        if wash:
            lines = [wash.line(line) for line in lines]
        tree.add(lines, await store.spending(session))
    return tree


@dataclass(slots=True)
class Wash:
    """Removes secrets, once for each content. From the first change on, every hash of a line changes: the
    hash of a short secret would reveal it to anybody who tries all of them."""

    clean: Clean
    redacted: set[str]
    known: dict[str, Message] = field(default_factory=dict)

    def line(self, stored: StoredSession) -> StoredSession:
        header, clean = stored.header, self.clean
        header = replace(header, title=clean(header.title), folder=clean(header.folder))
        prefix = self._prefix(stored.prefix)
        nodes: list[Node] = []
        parent = prefix.digest
        for node in stored.transcript.nodes:
            nodes.append(Node.make(parent, self._message(node), node.trust, node.at))
            parent = nodes[-1].hash
            if nodes[-1].digest != node.digest:
                self.redacted.add(nodes[-1].digest)
        transcript = replace(stored.transcript, root=prefix.digest, nodes=tuple(nodes))
        return StoredSession(header, prefix, transcript)

    def _prefix(self, prefix: Prefix) -> Prefix:
        tools = tuple(cleaned(tool, self.clean) for tool in prefix.tools)
        sampling = cleaned(prefix.sampling, self.clean)
        return replace(prefix, system=self.clean(prefix.system), tools=tools, sampling=sampling)

    def _message(self, node: Node) -> Message:
        if node.digest not in self.known:
            parts = tuple(_washed(part, self.clean) for part in node.message.parts)
            self.known[node.digest] = replace(node.message, parts=parts)
        return self.known[node.digest]


def _washed(part: Part, clean: Clean) -> Part:
    if isinstance(part, Text | Thinking | ToolCall) and cleaned(part.opaque, clean) != part.opaque:
        part = replace(part, opaque="", origin="")  # what only its provider understands is not rewritten
    match part:
        case Text(text) | ToolResult(text=text) | SystemNote(text) | Reminder(text):
            return replace(part, text=clean(text))
        case Attachment(text, name):
            return replace(part, text=clean(text), name=clean(name))
        case Thinking(text) if clean(text) != text:
            return Thinking(clean(text))  # its seal is for other words
        case ToolCall(arguments=arguments):
            return replace(part, arguments=cleaned(arguments, clean))
    return part


def export(tree: Tree, *, redacted: bool) -> Iterator[str]:
    """Yield lines. Whatever a line refers to precedes it."""
    yield _line(Top(VERSION, redacted))
    places: dict[str, tuple[int, str]] = {}  # how deep a node is, and under which prefix
    contents: set[str] = set()
    roots: set[str] = set()
    endings: dict[str, list[Trace]] = defaultdict(list)
    for trace in tree.traces.values():
        endings[trace.head].append(trace)
    for head in tree.leaves():
        own = tree.path(head, places)
        after = own[0].parent
        shared, root = places.get(after, (0, after))
        prefix = tree.prefixes[root]
        if root not in roots:
            roots.add(root)
            yield _line(Root(root, prefix.model, prefix.system, list(prefix.tools), prefix.sampling))
        for depth, node in enumerate(own, shared + 1):
            places[node.hash] = (depth, root)
            if node.digest not in contents:
                contents.add(node.digest)
                yield _line(_content(node, redacted=node.digest in tree.redacted))
        said = [TraceMessage(node.hash, node.digest, label(node.trust), node.at) for node in own]
        entries = [_entry(trace, places) for node in own for trace in endings[node.hash]]
        yield _line(Leaf(head, prefix.model, root, after if shared else None, shared, said, entries))


def label(trust: Trust) -> str:
    return trust.name.lower()


def _content(node: Node, *, redacted: bool) -> Content:
    raw = json.loads(node.encoded)
    return Content(node.digest, node.message.role, raw["parts"], redacted, node.message.template)


def _entry(trace: Trace, places: Mapping[str, tuple[int, str]]) -> TraceSession:
    header, (*left, (head, labels)) = trace.header, trace.lines
    return TraceSession(
        session=header.id,
        origin=header.origin,
        created=header.created,
        messages=places[head][0],
        title=header.title,
        folder=header.folder,
        parent=header.parent,
        shared=header.shared,
        former=[Left(hash, _labels(known)) for hash, known in left],
        labels=_labels(labels),
        usage=[_cost(each) for each in trace.spending],
    )


def _labels(labels: Labels) -> list[Label]:
    return [Label(hash, label(trust), at) for hash, (trust, at) in labels.items()]


def _cost(spent: Spending) -> dict[str, Any]:
    return {"at": spent.at, "model": spent.model, "origin": spent.origin, **asdict(spent.usage)}


def _line(value: Struct) -> str:
    """Return a line in ASCII, so that no reader takes a letter for the end of a line."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))
