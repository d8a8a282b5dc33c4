"""The params of an editor's requests, as far as Hone reads them. Unknown fields are ignored."""

from typing import Any

from msgspec import Struct

PROTOCOL = 1
AUTH_REQUIRED = -32000
NOT_FOUND = -32002

Servers = tuple[dict[str, Any], ...]
"""MCP servers as an editor passes them."""


class FileAccess(Struct, frozen=True, rename="camel"):
    read_text_file: bool | None = False
    write_text_file: bool | None = False


class EditorCapabilities(Struct, frozen=True, rename="camel"):
    fs: FileAccess | None = None
    terminal: bool | None = False

    def serves(self, method: str) -> bool:
        """Tell whether the editor announced that it answers a request of ours."""
        if method.startswith("terminal/"):
            return bool(self.terminal)
        files = self.fs or FileAccess()
        return bool(files.read_text_file if method == "fs/read_text_file" else files.write_text_file)


class Initialize(Struct, frozen=True, rename="camel"):
    """Some editors send a date as the version."""

    protocol_version: int | str
    client_capabilities: EditorCapabilities | None = None


class NewSession(Struct, frozen=True, rename="camel"):
    cwd: str
    mcp_servers: Servers | None = ()
    additional_directories: tuple[str, ...] | None = ()


class OpenStored(NewSession, frozen=True, rename="camel"):
    """For load, resume and fork."""

    session_id: str = ""


class ListSessions(Struct, frozen=True, rename="camel"):
    cwd: str | None = None
    cursor: str | None = None


class SessionOnly(Struct, frozen=True, rename="camel"):
    session_id: str


class SetMode(Struct, frozen=True, rename="camel"):
    session_id: str
    mode_id: str


class SetOption(Struct, frozen=True, rename="camel"):
    session_id: str
    config_id: str
    value: str | bool


class CancelRequest(Struct, frozen=True, rename="camel"):
    request_id: int | str


class Annotations(Struct, frozen=True):
    audience: tuple[str, ...] | None = None


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    text: str
    annotations: Annotations | None = None


class ImageBlock(Struct, frozen=True, rename="camel", tag_field="type", tag="image"):
    data: str
    mime_type: str


class AudioBlock(Struct, frozen=True, tag_field="type", tag="audio"):
    pass


class LinkBlock(Struct, frozen=True, tag_field="type", tag="resource_link"):
    uri: str
    name: str = ""


class Resource(Struct, frozen=True, rename="camel"):
    """Either `text` or `blob`, which is base64."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ResourceBlock(Struct, frozen=True, tag_field="type", tag="resource"):
    resource: Resource


Block = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock


class Prompt(Struct, frozen=True, rename="camel"):
    session_id: str
    prompt: tuple[Block, ...]


class ChosenOption(Struct, frozen=True, rename="camel"):
    outcome: str
    option_id: str = ""


class PermissionReply(Struct, frozen=True):
    outcome: ChosenOption
