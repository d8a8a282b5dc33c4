"""Read a request as a model does: what the system says, what was said, and the available calls."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from hone.core.messages import Message, Role, Text
from hone.models.fake_provider.intake import parse
from hone.models.fake_provider.shapes import Messages

ANYWAY = "add_anyway"
"""The memory tool's name for an addition next to a similar entry, if it has that."""


class Seen(Struct, frozen=True):
    """Everything that a model knows when it answers."""

    system: str
    messages: tuple[Message, ...]
    actions: frozenset[str]
    """Of the memory tool."""

    @property
    def asked(self) -> int:
        """Return the index of the user's last words, or of those in their place."""
        return max((at for at, each in enumerate(self.messages) if each.role is Role.USER), default=0)

    @property
    def heard(self) -> list[str]:
        """Return the words of each message in the user's role, without notes."""
        return [spoken(each) for each in self.messages if each.role is Role.USER]

    @property
    def last(self) -> str:
        return spoken(self.messages[self.asked])

    @property
    def since(self) -> Sequence[Message]:
        """Return what followed: calls and their results."""
        return self.messages[self.asked + 1 :]

    @property
    def steps(self) -> int:
        """Count the replies since then."""
        return sum(each.role is Role.ASSISTANT for each in self.since)

    def results(self) -> str:
        """Return all results of tools before the user's last words."""
        return "\n".join(each.result.text for each in self.messages[: self.asked] if each.result)


def spoken(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def told(message: Message) -> str:
    """Return the words with their notes."""
    return "\n".join(str(getattr(part, "text", "")) for part in message.parts)


def read(body: bytes) -> Seen:
    found = parse("anthropic", body)
    assert isinstance(found.head, Messages)
    offered = {offer.name: offer.input_schema for offer in found.head.tools}
    return Seen(found.system, found.messages, frozenset(_words(offered.get("memory", {}))))


def _words(schema: object) -> Iterator[str]:
    """Yield every text in a schema: the names of actions are among them, however it is built."""
    if isinstance(schema, str):
        yield schema
    children = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for child in children:
        yield from _words(child)
