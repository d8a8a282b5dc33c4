"""Return what a provider wants back, and check that it comes back byte for byte.

Responses seal reasoning in items. Chat completions follow the provider that they imitate: `reasoning_content`
is DeepSeek's rule, `reasoning_details` OpenRouter's, `thought_signature` Gemini's.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args

from hone.core.messages import Message, Part, Role, Thinking, ToolCall, canonical, digest
from hone.core.model import Reply
from hone.core.value import replace
from hone.models.fake_provider import shapes
from hone.models.fake_provider.intake import ParsedRequest
from hone.models.fake_provider.shapes import Format

Rule = Literal["", "reasoning_content", "reasoning_details", "thought_signature"]
RULES: tuple[Rule, ...] = get_args(Rule)
SEAL = "gAAAA-scripted-"


class Returns:
    """Remembers what each reply contained, for as long as this object exists."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._issued: defaultdict[str, list[Message]] = defaultdict(list)

    def _kind(self, format: Format) -> str:
        return "items" if format == "responses" else self._rule if format == "openai" else ""

    def seal(self, format: Format, reply: Reply, after: int) -> Reply:
        """Add to a reply what must come back with it. `after` counts the messages before it."""
        kind = self._kind(format)
        if not kind:
            return reply
        parts = enumerate(reply.message.parts)
        sealed = Message(
            Role.ASSISTANT, tuple(_sealed(kind, part, f"{after}.{index}") for index, part in parts)
        )
        self._issued[_name(sealed)].append(sealed)
        return replace(reply, message=sealed)

    def check(self, asked: ParsedRequest) -> Iterator[str]:
        """Say what is wrong with what came back."""
        kind, messages = self._kind(asked.format), asked.messages if self._kind(asked.format) else ()
        yield from _CHECKS[kind](asked) if kind in _CHECKS else ()
        for index, message in enumerate(messages):
            known = self._issued.get(_name(message)) if message.role is Role.ASSISTANT else None
            if known and _values(kind, message) not in [_values(kind, each) for each in known]:
                yield f"messages[{index}]: what was handed out with this reply did not come back unchanged"


def _sealed(kind: str, part: Part, salt: str) -> Part:
    seal = digest(f"{salt} {part}".encode("utf-8", "surrogatepass"))[:24]
    match part:
        case Thinking(text, opaque="") if kind == "items":
            summary = [{"type": "summary_text", "text": text}] if text else []
            item = {"id": f"rs_{seal}", "summary": summary, "type": "reasoning"}
            # With a space after each colon, so that writing it again would change it.
            return replace(part, opaque=json.dumps({**item, "encrypted_content": f"{SEAL}{seal}=="}))
        case Thinking(text, opaque="") if kind == "reasoning_details":
            shown = {"type": "reasoning.text", "text": text, "signature": seal, "index": 0}
            hidden = {"type": "reasoning.encrypted", "data": f"{SEAL}{seal}", "id": seal, "index": 1}
            return replace(part, opaque=canonical([shown, hidden] if text else [hidden]))
        case ToolCall(opaque="") if kind == "thought_signature":
            return replace(part, opaque=canonical({"google": {"thought_signature": seal}}))
    return part


def _name(message: Message) -> str:
    """Return what identifies a reply when it comes back: its calls, or its words."""
    return canonical([call.id for call in message.calls] or message.text)


def _values(kind: str, message: Message) -> list[Any]:
    """Return what must stay the same, in order. Pieces of reasoning may be spelled differently; items and
    signatures may not."""
    values: list[Any] = []
    for part in message.parts:
        match part:
            case Thinking(opaque=opaque) if opaque.startswith("["):
                values.append(json.loads(opaque))
            case Thinking(text, opaque="") if text and kind == "reasoning_content":
                values.append(text)
            case Thinking(opaque=opaque) | ToolCall(opaque=opaque) if opaque:
                values.append(opaque)
    return values


def _about_missing(asked: ParsedRequest) -> Iterator[str]:
    for index, item in enumerate(asked.items):
        sent = item.sent
        if isinstance(sent, shapes.AssistantSaid) and sent.tool_calls and sent.reasoning_content is None:
            yield f"Missing `reasoning_content` field in the assistant message at message index {index}"


def _about_unsigned(asked: ParsedRequest) -> Iterator[str]:
    """The first call of each reply since the user's last words must be signed."""
    for message in reversed(asked.messages):
        if message.role is Role.USER:
            return
        if message.calls and not message.calls[0].opaque:
            yield "Function call is missing a thought_signature in functionCall parts."


def _about_seals(asked: ParsedRequest) -> Iterator[str]:
    for item in asked.items:
        sent = item.sent
        if isinstance(sent, shapes.ReasoningItem) and not (sent.encrypted_content or SEAL).startswith(SEAL):
            yield f"The encrypted content for item {sent.id} could not be verified."


_CHECKS: Mapping[str, Callable[[ParsedRequest], Iterator[str]]] = {
    "items": _about_seals,
    "reasoning_content": _about_missing,
    "thought_signature": _about_unsigned,
}
