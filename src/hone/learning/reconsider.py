"""Judge lessons again that wait only because the owner had not trusted their folder.

Such a lesson is not simply approved: the same rules judge it, on the labels that its conversation would have
if the folder had been trusted from the start. Lessons that rest on any other foreign text keep waiting.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from hone.core.errors import HoneError, Refused
from hone.core.ids import SessionId
from hone.core.jobs import Jobs
from hone.core.ledger import Actor, Author, ChangeId, Entry, Evidence, Said
from hone.core.ports import Sessions
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust, lowest
from hone.core.turn import Origin
from hone.core.value import replace
from hone.core.visible import text_to_path, visible
from hone.knowledge.admission import FOREIGN
from hone.knowledge.evidence import find_cited
from hone.knowledge.keeper import Keeper
from hone.runtime.provenance.lazy import LazyProvenance
from hone.runtime.trust import Folders

RECENT = 500
"""The most reviews to search for the one of a lesson."""
OWN_TOOLS = frozenset({"memory", "skills_list", "skill_view", "skill_manage"})
"""These tools only read what is known already. A review that used another tool may have read something
foreign."""

Conversations = Mapping[SessionId, Transcript]


class LearningHome(Protocol):
    @property
    def folders(self) -> Folders: ...
    @property
    def provenance(self) -> LazyProvenance: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def keeper(self) -> Keeper: ...


class Reconsidered(Struct, frozen=True):
    """`entries` took effect. `conversations` have the labels they would have had in a trusted folder."""

    entries: tuple[Entry, ...]
    conversations: Conversations


async def find_withheld(home: LearningHome, folder: Path) -> Sequence[Entry]:
    """Return the lessons that wait only because a folder is untrusted, oldest first."""
    if not any(map(_is_withheld, await home.keeper.ledger.pending())):
        return []
    found, _ = await _study(home, folder)
    return [entry for entry, _ in found]


async def reconsider(
    home: LearningHome, folder: Path, shown: Collection[ChangeId] | None = None
) -> Reconsidered:
    """Judge again the lessons that waited for the owner's trust in a folder, which is now trusted; with
    `shown`, only those. What now-clean conversations wrote is clean, too. Raises HoneError."""
    found, clean = await _study(home, folder)
    await asyncio.to_thread(home.provenance.observer.clear, clean)
    made: list[Entry] = []
    for entry, author in found:
        if shown is None or entry.id in shown:
            with suppress(Refused):  # it keeps waiting
                made.append(await home.keeper.approve(entry.id, author))
    return Reconsidered(tuple(made), clean)


async def _study(home: LearningHome, folder: Path) -> tuple[list[tuple[Entry, Author]], Conversations]:
    """Return the lessons with their authors as judged in a trusted folder, and the conversations that are
    clean then."""
    observer = home.provenance.observer
    waiting = [entry for entry in await home.keeper.ledger.pending() if _is_withheld(entry)]
    grounds = [(entry, await _find_ground(home, entry)) for entry in waiting]
    tainting = await asyncio.to_thread(observer.find_sessions, folder)
    wanted = tainting.union(*(ground for _, ground in grounds))
    talks = await _load(home, folder, map(SessionId, wanted))
    clean = await asyncio.to_thread(observer.relabel, folder, talks)
    authors = [(entry, _improve(entry.change.author, ground, clean)) for entry, ground in grounds]
    return [(entry, author) for entry, author in authors if author], clean


def _is_withheld(entry: Entry) -> bool:
    change = entry.change
    return change.cause == FOREIGN and not change.group and change.author.actor in (Actor.AGENT, Actor.REVIEW)


async def _find_ground(home: LearningHome, entry: Entry) -> frozenset[SessionId]:
    """Return the conversations that a lesson was made from, cited or not; none if they are unknown."""
    author = entry.change.author
    if author.actor is Actor.AGENT:
        return frozenset({author.session})
    jobs = await home.jobs.jobs(RECENT)
    job = next((each for each in jobs if each.review == author.session), None)
    if job is None or not await _has_read_nothing_else(home, author.session):
        return frozenset()
    return frozenset({job.session, *(session for session, _ in job.others)})


async def _has_read_nothing_else(home: LearningHome, review: SessionId) -> bool:
    """Tell whether a review has only used what it was given and what is known."""
    try:
        stored = await home.sessions.load(review)
    except HoneError:
        return False
    own = stored.transcript.nodes[stored.header.shared :]
    return all(call.name in OWN_TOOLS for node in own for call in node.message.calls)


async def _load(home: LearningHome, folder: Path, ids: Iterable[SessionId]) -> Conversations:
    """Load the owner's conversations that were held in a folder, as far as they can be read."""
    found: dict[SessionId, Transcript] = {}
    for id in ids:
        with suppress(HoneError):
            stored = await home.sessions.load(id)
            is_here = home.folders.covers(folder, text_to_path(stored.header.folder))
            if stored.header.origin is Origin.USER and is_here:
                found[id] = stored.transcript
    return found


def _improve(author: Author, ground: Collection[SessionId], clean: Conversations) -> Author | None:
    """Return the author with the labels of a trusted folder; None unless everything that it rests on is
    clean."""
    if not ground or any(id not in clean for id in (*ground, *(each.session for each in author.evidence))):
        return None
    cited = [(each, find_cited(clean[each.session].nodes, each)) for each in author.evidence]
    found = [(each, node) for each, node in cited if node]
    if len(found) < len(cited):
        return None
    evidence = tuple(replace(each, trust=max(each.trust, node.trust_floor)) for each, node in found)
    floor = lowest(clean[id].trust for id in ground)
    said = tuple(_find_said(author.quotes, found))
    return replace(author, evidence=evidence, trust_floor=floor, said=said)


def _find_said(quotes: Sequence[str], cited: Iterable[tuple[Evidence, Node]]) -> Iterable[Said]:
    """Yield the owner's words among the evidence, with when they were said."""
    for evidence, node in cited:
        if evidence.trust is Trust.OWNER and node.is_owners:
            text = visible(node.message.text)
            yield from (
                Said(quote, evidence.session, evidence.message, node.at) for quote in quotes if quote in text
            )
