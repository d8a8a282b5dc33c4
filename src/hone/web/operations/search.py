"""Finding what was said: ranked passages with their neighbours, in all conversations."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from hone.core.recall import Hit, Passage, Query, excerpt
from hone.core.secrets import redact
from hone.tools.recall import nothing
from hone.web.operation import Nothing, Operation, OperationCall


class SearchQuery(msgspec.Struct, frozen=True):
    """A whole question, or words, "phrases" and prefix*."""

    query: Annotated[str, msgspec.Meta(max_length=2_000)]
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20


async def search(call: OperationCall[SearchQuery, Nothing]) -> dict[str, Any]:
    """Passages that may answer a question, the best first. Where there is none, `explanation` says why."""
    state, question = call.state, call.query
    today = state.clock.now().astimezone().date()
    found = await state.hone.recall.search(Query(question.query, question.limit, today=today))
    return {
        "hits": [_hit(each, found.tried) for each in found.hits],
        "tried": found.tried,
        "dropped": found.dropped,
        "waiting": found.waiting,
        "explanation": "" if found.hits else nothing(found),
    }


def _hit(hit: Hit, terms: Sequence[str]) -> dict[str, Any]:
    header = hit.header
    return {
        "session": header.id,
        "tree": hit.tree,
        "title": header.title,
        "origin": header.origin,
        "left": hit.left,
        "score": hit.score,
        "passage": _passage(hit.passage, terms),
        "before": _passage(hit.before, terms) if hit.before else None,
        "after": _passage(hit.after, terms) if hit.after else None,
    }


def _passage(passage: Passage, terms: Sequence[str]) -> dict[str, Any]:
    return {
        "number": passage.number,
        "role": passage.role,
        "trust": passage.trust.name.lower(),
        "at": passage.at.isoformat(),
        "text": redact(excerpt(passage.text, terms)),
    }


OPERATIONS = (Operation("GET", "/api/search", search, query=SearchQuery),)
