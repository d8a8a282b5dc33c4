"""Skills over MCP: list them with the digests of their files, and read the files as resources."""

import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.core.errors import Missing, Refused
from hone.core.messages import digest
from hone.core.skill import ARCHIVED, DOCUMENT
from hone.features.mcp.server.clients import Client, clear
from hone.features.mcp.server.protocol import RESOURCE_NOT_FOUND
from hone.features.mcp.server.reading import SCHEME, count_use, find_type
from hone.knowledge.skills.document import read_front_matter
from hone.rpc.messages import INVALID_PARAMS, RpcError

PAGE = 50
"""Skills per answer."""
FOLDER = "inode/directory"


class ServedSkill(Struct, frozen=True):
    """A skill as it is sent. A file without its secret is another file, with its own digest."""

    name: str
    files: Mapping[str, bytes]
    front_matter: Mapping[str, Any]

    def entry(self) -> dict[str, Any]:
        """Return the skill with the digests of all its files."""
        files = [
            {"uri": self.uri(path), "digest": f"sha256:{digest(data)}", "size": len(data)}
            for path, data in sorted(self.files.items())
        ]
        return {"uri": self.uri(DOCUMENT), "frontmatter": self.front_matter, "resources": files}

    def uri(self, path: str) -> str:
        return f"{SCHEME}{self.name}/{quote(path)}" if path else f"{SCHEME}{self.name}"

    def describe(self, path: str) -> dict[str, Any]:
        """Return one file as a resource. The document stands for the skill."""
        found = {"uri": self.uri(path), "mimeType": find_type(path), "size": len(self.files[path])}
        if path != DOCUMENT:
            return {**found, "name": path.rpartition("/")[2]}
        return {**found, "name": self.name, "description": self.front_matter["description"]}

    def read(self, path: str) -> dict[str, Any]:
        data, head = self.files[path], {"uri": self.uri(path), "mimeType": find_type(path)}
        try:
            return {**head, "text": data.decode()}
        except UnicodeDecodeError:
            return {**head, "blob": base64.b64encode(data).decode()}

    def list_folder(self, path: str) -> list[dict[str, Any]] | None:
        """Return what a folder contains; None if there is no such folder."""
        beginning = f"{path}/" if path else ""
        below = [each.removeprefix(beginning) for each in self.files if each.startswith(beginning)]
        if not below:
            return None
        folders = sorted({each.partition("/")[0] for each in below if "/" in each})
        files = [self.describe(beginning + each) for each in sorted(below) if "/" not in each]
        inner = [{"uri": self.uri(beginning + each), "name": each, "mimeType": FOLDER} for each in folders]
        return [*files, *inner]


class PageParams(Struct, frozen=True):
    cursor: str | None = None


class UriParams(Struct, frozen=True):
    uri: str
    cursor: str | None = None


async def list_skills(hone: Hone, params: PageParams) -> dict[str, Any]:
    found, more = await _load_page(hone, params.cursor)
    return {"skills": [each.entry() for each in found], **more}


async def list_resources(hone: Hone, params: PageParams) -> dict[str, Any]:
    found, more = await _load_page(hone, params.cursor)
    return {"resources": [each.describe(DOCUMENT) for each in found], **more}


async def get_skill(hone: Hone, uri: str) -> dict[str, Any]:
    name, path = _split(uri)
    found = await _load(hone, name) if path == DOCUMENT else None
    if found is None:
        raise RpcError(INVALID_PARAMS, f"No skill is served at {uri[:200]}.")
    return {"skill": found.entry()}


async def read_resource(hone: Hone, client: Client, uri: str, *, stateless: bool) -> dict[str, Any]:
    name, path = _split(uri)
    found = await _load(hone, name)
    if found is None or path not in found.files:
        code = INVALID_PARAMS if stateless else RESOURCE_NOT_FOUND
        raise RpcError(code, f"No resource is served at {uri[:200]}.", {"uri": uri[:200]})
    await count_use(hone, client, name, path)
    return {"contents": [found.read(path)]}


async def read_folder(hone: Hone, uri: str) -> dict[str, Any]:
    name, path = _split(uri)
    found = await _load(hone, name)
    listed = found.list_folder(path) if found else None
    if listed is None:
        raise RpcError(INVALID_PARAMS, f"{uri[:200]} is not a directory resource.")
    return {"resources": listed}


async def _load_page(hone: Hone, cursor: str | None) -> tuple[list[ServedSkill], dict[str, str]]:
    try:
        first = msgspec.convert(cursor or "0", int, strict=False)
    except msgspec.ValidationError:
        first = -1
    if not 0 <= first < 10**9:
        raise RpcError(INVALID_PARAMS, "This cursor is not one of ours; start without one.")
    listed, total = await hone.library.page(first, PAGE, archived=False)
    loaded = [await _load(hone, each.name) for each in listed]
    after = first + PAGE
    return [each for each in loaded if each], {"nextCursor": str(after)} if after < total else {}


async def _load(hone: Hone, name: str) -> ServedSkill | None:
    """Return a skill that is in use. A skill refused by its own rules is not served."""
    with suppress(Missing, Refused):
        held = await hone.library.files(name)
        if ARCHIVED not in held:
            files = {path: _clear(data) for path, data in held.items() if not path.startswith("@")}
            return ServedSkill(name, files, read_front_matter(files[DOCUMENT].decode()))
    return None


def _clear(data: bytes) -> bytes:
    try:
        return clear(data.decode()).encode()
    except UnicodeDecodeError:
        return data


def _split(uri: str) -> tuple[str, str]:
    """Return the skill's name and the path in it; nothing for another kind of address."""
    if not uri.startswith(SCHEME):
        return "", ""
    name, _, path = uri.removeprefix(SCHEME).partition("/")
    return name, unquote(path)
