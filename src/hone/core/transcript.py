"""A conversation as a hash chain: the hash of the head identifies every byte before it.

A node hashes its parent's hash and the digest of its content. The root is the digest of the prefix. Time and
trust are stored beside the content and are not hashed.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import Self

from msgspec import Struct
from msgspec.structs import force_setattr

from hone.core.ids import SessionId
from hone.core.messages import (
    Attachment,
    Message,
    Reminder,
    Role,
    ToolCall,
    answer,
    assistant,
    digest,
    encode,
)
from hone.core.trust import Trust, lowest
from hone.core.value import replace

_LABELED = (Reminder, Attachment)


class Node(Struct, frozen=True, eq=False, weakref=True):
    message: Message
    trust: Trust
    at: datetime
    parent: str
    encoded: bytes
    digest: str
    hash: str
    trust_floor: Trust = Trust.FOREIGN
    """The lowest label of its content: of the words, and of the reminders and attachments beside them."""

    def __post_init__(self) -> None:
        beside = [part.trust for part in self.message.parts if isinstance(part, _LABELED)]
        force_setattr(self, "trust_floor", min(self.trust, *beside) if beside else self.trust)

    @property
    def is_owners(self) -> bool:
        """Whether the owner said it."""
        return self.message.role is Role.USER and self.trust is Trust.OWNER

    @classmethod
    def make(cls, parent: str, message: Message, trust: Trust, at: datetime) -> Self:
        encoded = encode(message)
        content = digest(encoded)
        return cls(message, trust, at, parent, encoded, content, chained(parent, content))


def chained(parent: str, content: str) -> str:
    return digest(f"{parent}\n{content}".encode())


class Transcript(Struct, frozen=True, dict=True):
    """`shared` counts the nodes that a fork has in common with its parent; 0 for an independent
    conversation."""

    root: str
    nodes: tuple[Node, ...] = ()
    shared: int = 0

    @property
    def head(self) -> str:
        return self.nodes[-1].hash if self.nodes else self.root

    @cached_property
    def trust(self) -> Trust:
        """Return the lowest label in the conversation. Nothing said later can be better."""
        return lowest(node.trust_floor for node in self.nodes)

    @property
    def examples(self) -> int:
        """Count the messages at the beginning that come from a template."""
        return sum(1 for _ in takewhile(lambda node: node.message.template, self.nodes))

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Message]:
        return (node.message for node in self.nodes)

    def then(self, message: Message, trust: Trust, at: datetime) -> Self:
        return self.extended((Node.make(self.head, message, trust, at),))

    def extended(self, nodes: tuple[Node, ...]) -> Self:
        longer = replace(self, nodes=self.nodes + nodes)
        # Long conversations grow by one message at a time, so only the new ones are checked.
        vars(longer)["trust"] = min(self.trust, lowest(node.trust_floor for node in nodes))
        return longer

    def forked(self) -> Self:
        return replace(self, shared=len(self.nodes))

    def upto(self, count: int) -> Self:
        return replace(self, nodes=self.nodes[:count], shared=min(self.shared, count))

    def rooted(self, root: str) -> "Transcript":
        """Return the same contents under another prefix: a new segment."""
        nodes: list[Node] = []
        parent = root
        for node in self.nodes:
            head = chained(parent, node.digest)
            nodes.append(replace(node, parent=parent, hash=head))
            parent = head
        return Transcript(root, tuple(nodes))

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls of the last reply that have no result yet."""
        answered: set[str] = set()
        for node in reversed(self.nodes):
            if node.message.role is Role.ASSISTANT:
                return tuple(call for call in node.message.calls if call.id not in answered)
            if node.message.result:
                answered.add(node.message.result.call)
        return ()

    def closing(self, reason: str) -> tuple[Message, ...]:
        """Return what must follow so that every call has a result and the last word is the assistant's."""
        results = tuple(answer(call, f"did not finish: {reason}", failed=True) for call in self.open_calls())
        if not self.nodes or (not results and self.nodes[-1].message.role is Role.ASSISTANT):
            return results
        return (*results, assistant(f"(no answer: {reason})"))


class Source(Struct, frozen=True):
    """A conversation that a review reads, as it was when the review became due."""

    session: SessionId
    transcript: Transcript
    origins: tuple[tuple[SessionId, int], ...] = ()
    """The session and number of each message; empty if all are from this session."""

    def origin(self, number: int) -> tuple[SessionId, int]:
        return self.origins[number - 1] if self.origins else (self.session, number)
