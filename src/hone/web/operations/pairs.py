"""Pairs to look at side by side: entries that contradict or repeat each other, and skills that are alike."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from hone.core.skill import DOCUMENT
from hone.knowledge.resemblance import contradicts, resembles
from hone.knowledge.sections import Section, data, sections
from hone.knowledge.skills.document import parse
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.operations.journal import Folder, find_folder
from hone.web.operations.skills import skill_row

MOST = 100
"""Pairs that are told."""


def find_pairs(found: Sequence[Section]) -> Iterator[dict[str, Any]]:
    """Yield each two entries that cannot both hold, then each two that say much the same."""
    entries = [{**each, "part": part.name} for part in found for each in data(part)["entries"]]
    pairs = list(combinations(entries, 2))
    for relation, compare in (("contradicts", contradicts), ("resembles", resembles)):
        for one, other in pairs:
            if compare(one["text"], other["text"]):
                yield {"relation": relation, "one": one, "other": other}


async def pairs(call: OperationCall[Folder, Nothing]) -> dict[str, Any]:
    """Entries of the journal that contradict or repeat each other, two by two, contradictions first."""
    folder = await find_folder(call.state, call.query.folder)
    found = list(find_pairs(await sections(call.state.hone.keeper, folder)))
    return {"pairs": found[:MOST], "total": len(found)}


async def alike(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Skills that may be the same as this one, the most alike first."""
    library, name = call.state.hone.library, call.path["name"]
    document = parse((await library.files(name))[DOCUMENT].decode())
    near = await library.find_similar(name, document.description)
    return {"name": name, "skills": [skill_row(each) for each in near if each.name != name]}


OPERATIONS = (
    Operation("GET", "/api/pairs", pairs, query=Folder),
    Operation("GET", "/api/skills/{name}/alike", alike),
)
