"""The OpenAI chat completions format with cache marks, for providers and models that cache marked parts."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from hone.core.clock import Clock
from hone.core.messages import Role
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.models.cacherules import CacheMarks, mark_ends
from hone.models.endpoint import Endpoint
from hone.models.http import Http
from hone.models.openai import OpenAIChat

_MESSAGES = b',"messages":['
"""Inside a string its quotes would be escaped, so it can only match as a key."""
_CLOSING = 3
"""Bytes that close a part, the list of parts and the message."""


class MarkedChat(OpenAIChat):
    """Sends every text as a list of parts, since only a part can carry a mark. The marks move from request to
    request, and the other bytes of a message must not change."""

    def __init__(
        self, http: Http, clock: Clock, endpoint: Endpoint, marks: CacheMarks, *, cache_key: bool = False
    ) -> None:
        super().__init__(http, clock, endpoint, cache_key=cache_key)
        self._marks = marks

    def _head(self, prefix: Prefix) -> bytes:
        fields, _, system = super()._head(prefix).rpartition(_MESSAGES)
        if "prompt_cache_options" not in prefix.settings:
            fields += self._marks.options
        if prefix.system.strip():
            system = _mark(_in_parts(system), self._marks.system)
        return fields + _MESSAGES + system

    def _rest(self, transcript: Transcript) -> Iterable[bytes]:
        mark = partial(_mark, mark=self._marks.message)
        yield from mark_ends(transcript, self._messages.join, self._fragment, mark)
        yield b"]}"

    def _fragment(self, node: Node, before: Node | None) -> bytes:
        fragment = super()._fragment(node, before)
        return fragment if node.message.role is Role.ASSISTANT else b"," + _in_parts(fragment[1:])


def _in_parts(message: bytes) -> bytes:
    """Return a message with its text as the only part. A part must not be blank."""
    said: dict[str, Any] = msgspec.json.decode(message)
    if not isinstance(said["content"], str):
        return message
    text = said["content"] if said["content"].strip() else "(empty)"
    return msgspec.json.encode(said | {"content": [{"type": "text", "text": text}]})


def _mark(message: bytes, mark: bytes) -> bytes:
    return message[:-_CLOSING] + mark + message[-_CLOSING:]
