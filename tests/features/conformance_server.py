"""`hone`, with the tools and resources that MCP's conformance suite wants to find in a server.

The suite calls tools that it names itself (`test_simple_text` and the like). They are put into Hone's own
table of tools, and its resources are served by the code that serves skills. Start it like `hone`:
`python -m tests.features.conformance_server serve`.
"""

import base64
from collections.abc import Mapping
from typing import Annotated, Any, cast

from msgspec import Meta, Struct

from hone.__main__ import main
from hone.app import Hone
from hone.core.errors import Refused
from hone.features.mcp.server import skills, tools
from hone.features.mcp.server.clients import Client
from hone.features.mcp.server.reading import Content
from hone.features.mcp.server.skills import ServedSkill
from hone.features.mcp.server.tools import ServedTool

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0"
SAID = "This is a simple text response for testing."
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class NoArguments(Struct, frozen=True):
    pass


class address(Struct, frozen=True):  # noqa: N801  the suite wants a definition of this name
    street: str = ""
    city: str = ""


class Addressed(Struct, frozen=True, forbid_unknown_fields=True):
    address: address
    name: str = ""


async def say(_hone: Hone, _client: Client, _: Any) -> str:
    return SAID


async def fail(_hone: Hone, _client: Client, _: Any) -> str:
    raise Refused("This tool intentionally returns an error for testing")


def picture() -> Mapping[str, Any]:
    return {"type": "image", "data": base64.b64encode(PIXEL).decode(), "mimeType": "image/png"}


def embedded() -> Mapping[str, Any]:
    resource = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "An embedded resource."}
    return {"type": "resource", "resource": resource}


def returns(*content: Mapping[str, Any]) -> ServedTool:
    async def act(_hone: Hone, _client: Client, _: Any) -> Content:
        return content

    return ServedTool(act, "Return content of other kinds than text.", NoArguments)


SOUND = {"type": "audio", "data": base64.b64encode(SILENCE).decode(), "mimeType": "audio/wav"}
SCHEMA = cast(type[Struct], Annotated[Addressed, Meta(extra_json_schema={"$schema": DIALECT})])
TOOLS = {
    "test_simple_text": ServedTool(say, "Return text.", NoArguments),
    "test_error_handling": ServedTool(fail, "Fail.", NoArguments),
    "test_image_content": returns(picture()),
    "test_audio_content": returns(SOUND),
    "test_embedded_resource": returns(embedded()),
    "test_multiple_content_types": returns({"type": "text", "text": SAID}, picture(), embedded()),
    "json_schema_2020_12_tool": ServedTool(say, "Take an address.", SCHEMA),
}
RESOURCES = {
    "static-text": {"": b"This is the content of the static text resource."},
    "static-binary": {"": PIXEL},
    "template": {"123/data": b'{"id": "123", "templateTest": true, "data": "Data for ID: 123"}'},
}


async def load(hone: Hone, name: str) -> ServedSkill | None:
    return ServedSkill(name, RESOURCES[name], {}) if name in RESOURCES else None


if __name__ == "__main__":
    cast(dict[str, ServedTool], tools.TOOLS).update(TOOLS)
    skills.SCHEME = "test://"  # type: ignore[attr-defined]
    skills._load = load
    main()
