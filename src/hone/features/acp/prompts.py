"""Turn the blocks of a prompt into a message. What the owner typed is their own words; files are attachments,
each with the label of its folder; everything else that an editor adds is foreign."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.images import SUFFIXES
from hone.core.messages import Attachment, Image, Message, Part, Role, Text
from hone.core.secrets import redact
from hone.core.trust import Trust, lowest
from hone.core.visible import one_line, path_to_text, text_to_path
from hone.features.acp.shapes import (
    AudioBlock,
    Block,
    ImageBlock,
    LinkBlock,
    Resource,
    ResourceBlock,
    TextBlock,
)
from hone.runtime.attaching import LARGEST, MOST, read_files
from hone.runtime.pictures import attach, check_vision
from hone.runtime.session import Session
from hone.web.pictures import read_address

NAMED = 200
"""The most characters of a name from an editor."""


class ReadPrompt(Struct, frozen=True):
    """A message and its label."""

    message: Message
    voice: Trust


class PromptReader:
    """`voice` is the label of the editor's texts."""

    def __init__(self, hone: Hone, session: Session, voice: Trust) -> None:
        self._hone = hone
        self._model = session.agent.prefix.model
        self._folder = text_to_path(session.header.folder)
        self._voice = voice
        self._labels: list[Trust] = []

    async def compose(self, blocks: Sequence[Block]) -> ReadPrompt:
        """Return the message. Its words get the lowest label of its images, since nobody can tell afterwards
        what came from which. Raises Refused."""
        if len(blocks) > 5 * MOST:
            raise Refused(f"A message takes at most {5 * MOST} blocks.")
        parts = [part for block in blocks for part in await self._read(block)]
        if not parts:
            raise Refused("A message needs words.")
        return ReadPrompt(Message(Role.USER, tuple(parts)), lowest((self._voice, *self._labels)))

    async def _read(self, block: Block) -> Sequence[Part]:
        match block:
            case TextBlock():
                return read_text(block)
            case ImageBlock(data, kind):
                return [self._picture(f"data:{kind};base64,{data}")]
            case LinkBlock(uri, name):
                return await self._follow(uri, name)
            case ResourceBlock(resource):
                return [await asyncio.to_thread(self._embed, resource)]
            case AudioBlock():
                raise Refused("Hone cannot listen to audio. Send text, pictures or files.")

    def _picture(self, address: str) -> Image:
        """Return an image. The source of its bytes is unknown."""
        check_vision(self._model, self._hone.settings)
        self._labels.append(Trust.FOREIGN)
        return read_address(address)

    async def _follow(self, uri: str, name: str) -> Sequence[Part]:
        """Return the file that a link names. Anything but a text file of this machine is only named."""
        path = find_path(uri)
        if path is None or not path.is_file():
            return [_mention(uri, name)]
        if path.name.lower().endswith(SUFFIXES):
            message, label = await attach("", [path], self._model, self._hone)
            self._labels.append(label)
            return [part for part in message.parts if isinstance(part, Image)]
        try:
            return await read_files([path], self._folder, self._hone.provenance)
        except Refused:
            return [_mention(uri, name)]

    def _embed(self, resource: Resource) -> Part:
        """Return the editor's version of a file, which may be unsaved, with the label of its folder."""
        if resource.text is None:
            is_picture = (resource.mime_type or "").startswith("image/")
            if resource.blob and is_picture:
                return self._picture(f"data:{resource.mime_type};base64,{resource.blob}")
            return _mention(resource.uri, "")
        path, text = find_path(resource.uri), resource.text[:LARGEST]
        label = Trust.FOREIGN
        name = one_line(resource.uri, NAMED)
        if path:
            real = Path(os.path.realpath(path))
            label = self._hone.provenance.of_file(real, text.encode("utf-8", "replace"))
            inside = real.is_relative_to(self._folder)
            name = f"file {one_line(path_to_text(real.relative_to(self._folder) if inside else real), NAMED)}"
        if len(text) < len(resource.text):
            text += f"\n[The text has {len(resource.text):,} characters; the first {LARGEST:,} are attached.]"
        return Attachment(redact(text), name, label.name.lower())


def read_text(block: TextBlock) -> Sequence[Part]:
    """Return what was typed. The editor, not the owner, added a text for the assistant alone."""
    if not block.text.strip():
        return ()
    audience = block.annotations.audience if block.annotations else None
    if audience and "user" not in audience:
        return [Attachment(redact(block.text[:LARGEST]), "added by the editor")]
    return [Text(block.text)]


def find_path(uri: str) -> Path | None:
    """Return the path of a file: address; None for any other."""
    parsed = urlsplit(uri)
    path = unquote(parsed.path)
    is_here = parsed.scheme == "file" and parsed.netloc in ("", "localhost")
    return Path(path) if is_here and path.startswith("/") and "\0" not in path else None


def _mention(uri: str, name: str) -> Attachment:
    said = f" ({one_line(name, NAMED)})" if name else ""
    return Attachment(f"{one_line(uri, 2_000)}{said}\nOnly the address is attached.", "link")
