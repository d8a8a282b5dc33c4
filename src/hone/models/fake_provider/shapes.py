"""The JSON shapes of requests to both providers. Messages stay raw here and are decoded one by one."""

from typing import Any, Literal

import msgspec

Format = Literal["openai", "anthropic"]


class TextPart(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class ImageUrl(msgspec.Struct):
    url: str


class ImagePart(msgspec.Struct, tag_field="type", tag="image_url"):
    image_url: ImageUrl


class Function(msgspec.Struct):
    name: str
    arguments: str


class Call(msgspec.Struct):
    id: str
    type: Literal["function"]
    function: Function


class SystemSaid(msgspec.Struct, tag_field="role", tag="system"):
    content: str | list[TextPart]


class DeveloperSaid(SystemSaid, tag="developer"):
    """The newer name of the same."""


class UserSaid(msgspec.Struct, tag_field="role", tag="user"):
    content: str | list[TextPart | ImagePart]


class AssistantSaid(msgspec.Struct, tag_field="role", tag="assistant"):
    content: str | list[TextPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Call] | None = None


class ToolSaid(msgspec.Struct, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str | list[TextPart]


Said = SystemSaid | DeveloperSaid | UserSaid | AssistantSaid | ToolSaid


class Declared(msgspec.Struct):
    name: str
    parameters: dict[str, Any] = {}


class ToolOffer(msgspec.Struct):
    type: Literal["function"]
    function: Declared


class StreamOptions(msgspec.Struct):
    include_usage: bool = False


class Chat(msgspec.Struct):
    """A request for OpenAI chat completions."""

    model: str
    messages: list[msgspec.Raw]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[ToolOffer] | None = None


class Marker(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] = "5m"


class TextBlock(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str
    cache_control: Marker | None = None
    citations: Any = None


class Source(msgspec.Struct):
    type: Literal["base64", "url"]
    media_type: str = ""
    data: str = ""
    url: str = ""


class ImageBlock(msgspec.Struct, tag_field="type", tag="image", forbid_unknown_fields=True):
    source: Source
    cache_control: Marker | None = None


class ThinkingBlock(msgspec.Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True):
    thinking: str
    signature: str


class SealedBlock(msgspec.Struct, tag_field="type", tag="redacted_thinking", forbid_unknown_fields=True):
    data: str


class UseBlock(msgspec.Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True):
    id: str
    name: str
    input: msgspec.Raw
    cache_control: Marker | None = None


class ResultBlock(msgspec.Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True):
    tool_use_id: str
    content: str | list[TextBlock | ImageBlock] = ""
    is_error: bool = False
    cache_control: Marker | None = None


Spoken = TextBlock | ImageBlock | ThinkingBlock | SealedBlock | UseBlock
Block = Spoken | ResultBlock


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: str | list[Block]

    @property
    def blocks(self) -> list[Block]:
        return [TextBlock(self.content)] if isinstance(self.content, str) else self.content


class Offer(msgspec.Struct):
    name: str
    input_schema: dict[str, Any]
    cache_control: Marker | None = None


class Messages(msgspec.Struct):
    """A request for Anthropic Messages."""

    model: str
    max_tokens: int
    messages: list[msgspec.Raw]
    stream: bool = False
    system: str | list[TextBlock] = ""
    tools: list[Offer] = []
