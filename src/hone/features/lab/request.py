"""Read a request as a model does: what the system says, what was said, and the results of its calls."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from hone.core.messages import Message, Role, Text, ToolCall
from hone.models.fake_provider.intake import parse
from hone.models.fake_provider.shapes import Format


class MadeCall(Struct, frozen=True):
    """A call, and its result."""

    call: ToolCall
    result: str
    failed: bool

    @property
    def arguments(self) -> dict[str, object]:
        try:
            found = msgspec.json.decode(self.call.arguments)
        except msgspec.DecodeError:
            return {}
        return found if isinstance(found, dict) else {}


class Seen(Struct, frozen=True):
    """Everything that a model knows when it answers."""

    system: str
    messages: tuple[Message, ...]

    @property
    def asked(self) -> int:
        """Return the index of the last words in the user's role."""
        return max((at for at, each in enumerate(self.messages) if each.role is Role.USER), default=0)

    @property
    def heard(self) -> list[str]:
        """Return the words of each message in the user's role, without notes."""
        return [_words(each) for each in self.messages if each.role is Role.USER]

    @property
    def last(self) -> str:
        return _words(self.messages[self.asked])

    @property
    def steps(self) -> int:
        """Count the replies since then."""
        return sum(each.role is Role.ASSISTANT for each in self.messages[self.asked + 1 :])

    @property
    def attempts(self) -> list[MadeCall]:
        """Return the calls since then that have a result."""
        return list(_attempts(self.messages[self.asked + 1 :]))

    @property
    def past(self) -> list[MadeCall]:
        """Return all calls that have a result."""
        return list(_attempts(self.messages))


def read(format: Format, body: bytes) -> Seen:
    found = parse(format, body)
    return Seen(found.system, found.messages)


def _words(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def _attempts(messages: Sequence[Message]) -> Iterator[MadeCall]:
    made: dict[str, ToolCall] = {}
    for message in messages:
        if message.role is Role.ASSISTANT:
            made.update((call.id, call) for call in message.calls)
        elif message.result and message.result.call in made:
            result = message.result
            yield MadeCall(made[result.call], result.text, result.failed)
