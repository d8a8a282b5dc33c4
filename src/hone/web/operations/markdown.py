"""Read Markdown for the page, which places the nodes as elements and never as markup."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from hone.web.markdown import encoded
from hone.web.operation import Nothing, Operation, OperationCall

MOST = 200
"""Texts of one request."""
LONGEST = 1_000_000

MarkdownText = Annotated[str, msgspec.Meta(max_length=LONGEST)]


class MarkdownTexts(msgspec.Struct, frozen=True):
    texts: Annotated[list[MarkdownText], msgspec.Meta(max_length=MOST)]


async def read(call: OperationCall[Nothing, MarkdownTexts]) -> dict[str, Any]:
    """Texts as trees of nodes. `settled` lines of a text stay as they are, whatever follows."""
    return {"documents": await asyncio.to_thread(_documents, call.body.texts)}


def _documents(texts: Sequence[str]) -> list[msgspec.Raw]:
    return [encoded(each) for each in texts]


OPERATIONS = (Operation("POST", "/api/markdown", read, body=MarkdownTexts),)
