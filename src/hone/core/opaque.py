"""Keep what a provider wants back unchanged, and send it to that provider only.

Reasoning models return signatures, encrypted reasoning and the like. Hone stores them with their part, as
`opaque` JSON, and marks them with their `origin`: the provider and the wire format. Nobody else can read
them, so requests to anyone else leave them out, and they are never shown as text.
"""

from collections.abc import Iterable

import msgspec

from hone.core.messages import Message, Part, Text, Thinking, ToolCall
from hone.core.prefix import find_source


def find_returned(part: Text | Thinking | ToolCall, origin: str) -> msgspec.Raw | None:
    """Return the JSON of a part to send back to this origin; None if there is none, or if it is not exactly
    one JSON value: unchecked bytes could forge a part of the request."""
    if not part.opaque or part.origin != origin:
        return None
    try:
        msgspec.json.decode(part.opaque)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return msgspec.Raw(part.opaque.encode())


def count_left_out(messages: Iterable[Message], model: str) -> int:
    """Count the replies with parts that this model will not get, because they came from another source."""
    source = find_source(model)
    return sum(any(_is_strange(part, source) for part in message.parts) for message in messages)


def _is_strange(part: Part, source: str) -> bool:
    if not isinstance(part, Text | Thinking | ToolCall) or not part.origin:
        return False
    return part.origin.rpartition(":")[0] != source


def describe_left_out(messages: Iterable[Message], before: str, after: str) -> str:
    """Return what a change of models leaves out of later requests; nothing if it leaves out nothing."""
    if find_source(before) == find_source(after):
        return ""
    count = count_left_out(messages, after)
    if not count:
        return ""
    replies = "1 earlier reply" if count == 1 else f"{count:,} earlier replies"
    return (
        f"The reasoning in {replies} can only go back to the provider it came from; {after} does not get it."
    )
