"""The JSON shapes of requests in every format. Messages stay raw here and are decoded one by one."""

from typing import Any, Literal

import msgspec

Format = Literal["openai", "anthropic", "responses"]


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
    extra_content: msgspec.Raw = msgspec.Raw()


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
    reasoning_details: msgspec.Raw = msgspec.Raw()
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


class SchemaForm(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    schema: dict[str, Any]
    strict: bool | None = None
    description: str | None = None


class ResponseFormat(msgspec.Struct, forbid_unknown_fields=True):
    """What chat completions are told about the form of an answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaForm | None = None


class TextFormat(msgspec.Struct, forbid_unknown_fields=True):
    """The same in Responses."""

    type: Literal["text", "json_object", "json_schema"]
    name: str = ""
    schema: dict[str, Any] = {}
    strict: bool | None = None
    description: str | None = None


class TextOptions(msgspec.Struct, forbid_unknown_fields=True):
    format: TextFormat | None = None
    verbosity: str | None = None


class OutputFormat(msgspec.Struct, forbid_unknown_fields=True):
    """The same in Anthropic Messages."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(msgspec.Struct, forbid_unknown_fields=True):
    effort: str | None = None
    format: OutputFormat | None = None


class Chat(msgspec.Struct):
    """A request for OpenAI chat completions."""

    model: str
    messages: list[msgspec.Raw]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[ToolOffer] | None = None
    response_format: ResponseFormat | None = None

    @property
    def form(self) -> tuple[dict[str, Any], bool] | None:
        """The schema of the answer, and whether it is enforced."""
        form = self.response_format.json_schema if self.response_format else None
        return (form.schema, bool(form.strict)) if form else None


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
    output_config: OutputConfig | None = None

    @property
    def form(self) -> tuple[dict[str, Any], bool] | None:
        """The schema of the answer. It is always enforced, and a property may be missing."""
        form = self.output_config.format if self.output_config else None
        return (form.schema, False) if form else None


class InputText(msgspec.Struct, tag_field="type", tag="input_text", forbid_unknown_fields=True):
    text: str
    prompt_cache_breakpoint: Any = None


class InputImage(msgspec.Struct, tag_field="type", tag="input_image", forbid_unknown_fields=True):
    image_url: str
    detail: Literal["low", "high", "auto", "original"] = "auto"
    prompt_cache_breakpoint: Any = None


class OutputText(msgspec.Struct, tag_field="type", tag="output_text", forbid_unknown_fields=True):
    text: str
    annotations: list[Any] = []


class MessageItem(msgspec.Struct, tag_field="type", tag="message", forbid_unknown_fields=True):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputText | InputImage | OutputText]
    phase: Literal["commentary", "final_answer"] | None = None


class CallItem(msgspec.Struct, tag_field="type", tag="function_call", forbid_unknown_fields=True):
    call_id: str
    name: str
    arguments: str


class ResultItem(msgspec.Struct, tag_field="type", tag="function_call_output", forbid_unknown_fields=True):
    call_id: str
    output: str | list[InputText | InputImage]


class SummaryText(msgspec.Struct, tag_field="type", tag="summary_text", forbid_unknown_fields=True):
    text: str


class ReasoningItem(msgspec.Struct, tag_field="type", tag="reasoning", forbid_unknown_fields=True):
    id: str
    summary: list[SummaryText]
    encrypted_content: str | None = None


Given = MessageItem | CallItem | ResultItem | ReasoningItem


class FunctionOffer(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["function"]
    name: str
    parameters: dict[str, Any]
    strict: bool | None
    description: str | None = None


class Respond(msgspec.Struct, forbid_unknown_fields=True):
    """A request for OpenAI Responses. Like the real service, it refuses what it does not know."""

    model: str
    input: list[msgspec.Raw]
    stream: bool | None = False
    store: bool | None = True
    include: list[str] | None = None
    instructions: str | None = None
    tools: list[FunctionOffer] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    reasoning: dict[str, Any] | None = None
    text: TextOptions | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Any = None
    prompt_cache_retention: Any = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    metadata: dict[str, str] | None = None
    truncation: str | None = None

    @property
    def messages(self) -> list[msgspec.Raw]:
        return self.input

    @property
    def form(self) -> tuple[dict[str, Any], bool] | None:
        """The schema of the answer, and whether it is enforced."""
        form = self.text.format if self.text else None
        return (form.schema, bool(form.strict)) if form and form.type == "json_schema" else None
