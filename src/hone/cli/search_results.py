"""`hone sessions search`: passages of earlier conversations, and how to open them."""

import json
from collections.abc import Iterator

from hone.cli.listing import SPEAKERS, moment
from hone.cli.paint import Paint
from hone.core.recall import Hit, Passage, SearchResult, excerpt
from hone.core.turn import Origin
from hone.core.visible import one_line

WIDTH, BESIDE = 300, 100


def lines(found: SearchResult, paint: Paint) -> Iterator[str]:
    for place, hits in enumerate(found.trees):
        if place:
            yield ""
        for header in {hit.header.id: hit.header for hit in hits}.values():
            kind = "" if header.origin is Origin.USER else f" [{header.origin}]"
            of = f" (of {header.parent})" if header.parent else ""
            yield paint.bold(f"Session {header.id}") + f"{kind}{of}  {one_line(header.title, 80)}".rstrip()
            for hit in hits:
                if hit.header.id == header.id:
                    yield from _entry(hit, found.tried, paint)


def _entry(hit: Hit, terms: tuple[str, ...], paint: Paint) -> Iterator[str]:
    here = hit.passage
    yield f"  {_speaker(here)} {paint.dim(f'{moment(here.at)} · {here.trust.name.lower()}')}"
    if hit.before:
        yield paint.dim(f"    {_speaker(hit.before)}: {_short(hit.before, terms, BESIDE)}")
    yield f"    {_short(here, terms, WIDTH)}"
    if hit.after:
        yield paint.dim(f"    {_speaker(hit.after)}: {_short(hit.after, terms, BESIDE)}")
    yield paint.dim(f"    {opening(hit)}")


def opening(hit: Hit) -> str:
    earlier = " --earlier" if hit.left else ""
    return f"hone sessions show {hit.header.id} --at {hit.passage.number}{earlier}"


def _speaker(passage: Passage) -> str:
    return f"{passage.number} {SPEAKERS[passage.role]}"


def _short(passage: Passage, terms: tuple[str, ...], width: int) -> str:
    return one_line(excerpt(passage.text, terms, width), width + 10)


def as_json(found: SearchResult) -> str:
    hits = [
        {
            "session": hit.header.id,
            "tree": hit.tree,
            "origin": hit.header.origin,
            "title": hit.header.title,
            "message": hit.passage.number,
            "role": hit.passage.role,
            "trust": hit.passage.trust.name.lower(),
            "at": hit.passage.at.isoformat(),
            "text": excerpt(hit.passage.text, found.tried, WIDTH),
            "left": hit.left,
            "open": opening(hit),
        }
        for hit in found.hits
    ]
    return json.dumps(
        {"hits": hits, "tried": found.tried, "dropped": found.dropped, "waiting": found.waiting}, indent=2
    )
