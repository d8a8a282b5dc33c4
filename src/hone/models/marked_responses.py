"""The OpenAI Responses format with cache marks, for models that cache marked parts."""

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
from hone.models.responses import OpenAIResponses

_INPUT = b',"input":['
_CLOSING = 3
"""Bytes that close a part, the list of parts and the item."""


class MarkedResponses(OpenAIResponses):
    """Sends the words of the user and of tools as lists of parts, since only a part can carry a mark. The
    marks move from request to request, and the other bytes of an item must not change. The instructions
    cannot be marked; the first mark after them covers them."""

    def __init__(
        self, http: Http, clock: Clock, endpoint: Endpoint, marks: CacheMarks, *, cache_key: bool = False
    ) -> None:
        super().__init__(http, clock, endpoint, cache_key=cache_key)
        self._marks = marks

    def _head(self, prefix: Prefix) -> bytes:
        head = super()._head(prefix)
        if "prompt_cache_options" in prefix.settings:
            return head
        return head[: -len(_INPUT)] + self._marks.options + _INPUT

    def _rest(self, transcript: Transcript) -> Iterable[bytes]:
        mark = partial(_mark, mark=self._marks.message)
        yield from mark_ends(transcript, self._messages.join, self._fragment, mark)
        yield b"]}"

    def _fragment(self, node: Node, before: Node | None) -> bytes:
        fragment = super()._fragment(node, before)
        if node.message.role is Role.ASSISTANT:
            return fragment
        return fragment[:1] + _in_parts(fragment[1:]) if before else _in_parts(fragment)


def _in_parts(item: bytes) -> bytes:
    """Return an item with its text as the only part, at its end. A part must not be blank."""
    said: dict[str, Any] = msgspec.json.decode(item)
    name = "output" if "output" in said else "content"
    words = said.pop(name)
    if isinstance(words, str):
        words = [{"type": "input_text", "text": words if words.strip() else "(empty)"}]
    return msgspec.json.encode(said | {name: words})


def _mark(item: bytes, mark: bytes) -> bytes:
    return item[:-_CLOSING] + mark + item[-_CLOSING:]
