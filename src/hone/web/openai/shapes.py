"""The fields of OpenAI requests and responses that Hone reads and writes."""

from collections.abc import Iterator
from typing import Any

import msgspec

from hone.core.errors import Refused
from hone.core.json_schema import check_schema
from hone.core.messages import Image, Message, Part, Role, Text
from hone.core.model import Usage
from hone.runtime.returning import AnswerForm, make_form
from hone.web.pictures import read_address

HONE = "hone"
"""The model's name, where the client leaves the choice to Hone."""


class ImageUrl(msgspec.Struct, frozen=True):
    url: str


class Piece(msgspec.Struct, frozen=True):
    type: str
    text: str = ""
    image_url: ImageUrl | None = None


class Said(msgspec.Struct, frozen=True):
    role: str
    content: str | list[Piece] | None = None
    tool_calls: list[Any] | None = None


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class Completion(msgspec.Struct, frozen=True):
    """What is not named here (temperature, max_tokens and the like) is the settings' business and ignored."""

    messages: list[Said]
    model: str = HONE
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = False
    modalities: list[str] | None = None


class BadRequest(Exception):
    """A request that cannot be done here; `param` is the part of it that is in the way."""

    def __init__(self, message: str, param: str, code: str = "unsupported_value") -> None:
        super().__init__(message)
        self.param = param
        self.code = code


def check(request: Completion) -> None:
    """Raises Unfit for what would be ignored to the client's harm."""
    if request.tools or request.functions:
        raise BadRequest(
            "Hone works with its own tools and cannot call yours. Send the request without tools.",
            "tools" if request.tools else "functions",
            "tools_not_supported",
        )
    if request.n not in (None, 1):
        raise BadRequest("Hone gives one answer: n must be 1.", "n")
    if request.logprobs:
        raise BadRequest("Hone has no logprobs.", "logprobs")
    if request.modalities and request.modalities != ["text"]:
        raise BadRequest("Hone answers in text: modalities must be text.", "modalities")
    if request.model != HONE and "/" not in request.model:
        raise BadRequest(
            f"There is no model of that name. Say {HONE}, or provider/name.", "model", "model_not_found"
        )
    if not request.messages or request.messages[-1].role != "user":
        raise BadRequest("The last message must be the user's.", "messages")


def read_form(request: Completion) -> AnswerForm | None:
    """Return what the answer must look like, if the client says so. Raises BadRequest."""
    asked = request.response_format or {"type": "text"}
    match asked.get("type"):
        case "text":
            return None
        case "json_object":
            return make_form({"type": "object"})
        case "json_schema":
            inner = asked.get("json_schema")
            schema = inner.get("schema") if isinstance(inner, dict) else None
        case _:
            raise BadRequest(
                "The type of response_format must be text, json_object or json_schema.", "response_format"
            )
    try:
        check_schema(schema)
        return make_form(schema)
    except Refused as refusal:
        raise BadRequest(str(refusal), "response_format", "invalid_schema") from refusal


def read(said: Said) -> Message:
    """Raises Unfit."""
    if said.role not in ("user", "assistant") or said.tool_calls:
        raise BadRequest(
            "Hone calls its own tools; messages are of the system, the user or the assistant.", "messages"
        )
    role = Role(said.role)
    parts = tuple(_parts(said.content, role))
    if not parts:
        raise BadRequest("A message has no content.", "messages")
    return Message(role, parts)


def _parts(content: str | list[Piece] | None, role: Role) -> Iterator[Part]:
    if isinstance(content, str) or content is None:
        yield from [Text(content)] if content else []
        return
    for piece in content:
        if piece.type == "text":
            yield from [Text(piece.text)] if piece.text else []
        elif piece.type == "image_url" and piece.image_url and role is Role.USER:
            yield _image(piece.image_url.url)
        else:
            raise BadRequest(f"Content of the type {piece.type!r} cannot be read here.", "messages")


def _image(url: str) -> Image:
    try:
        return read_address(url)
    except Refused as refusal:
        raise BadRequest(str(refusal), "messages") from refusal


def system(messages: list[Said]) -> str:
    """What the client's program says of itself."""
    texts = []
    for said in messages:
        if said.role in ("system", "developer"):
            content = said.content
            pieces = content if isinstance(content, list) else [Piece("text", content or "")]
            texts.append("".join(piece.text for piece in pieces))
    return "\n".join(text for text in texts if text.strip())


def usage(spent: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": spent.input,
        "completion_tokens": spent.output,
        "total_tokens": spent.input + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cached},
    }


def completion(id: str, created: int, model: str, text: str, finish: str, spent: Usage) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    head = {"id": id, "object": "chat.completion", "created": created, "model": model}
    return {**head, "choices": [choice], "usage": usage(spent)}


def chunk(
    id: str, created: int, model: str, delta: dict[str, Any], finish: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
    return {**head, "choices": [choice]}
