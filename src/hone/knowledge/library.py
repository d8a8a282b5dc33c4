"""The library of all skills, in the ledger and bundled with Hone: rank, search and look up."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct

from hone.core import seldom
from hone.core.clock import Clock
from hone.core.errors import Missing, Refused
from hone.core.ids import SessionId
from hone.core.ledger import START, Actor, ChangeId, ChangeKind, skill
from hone.core.loading import import_object
from hone.core.messages import Message
from hone.core.skill import (
    ARCHIVED,
    CHECKS,
    DOCUMENT,
    ListedSkill,
    SkillCatalog,
    SkillEvent,
    SkillMatches,
    SkillResult,
    SkillSummary,
    UsageCounts,
)
from hone.core.value import replace
from hone.core.visible import one_line, visible
from hone.files.tree import TICK, Seen
from hone.knowledge import deferred, places
from hone.knowledge.folding import Draft, Files, was_aged
from hone.knowledge.keeper import Keeper
from hone.knowledge.skills import bundled
from hone.knowledge.skills.document import decode, parse
from hone.knowledge.skills.facts import facts, split_facts
from hone.knowledge.skills.naming import SHAPE
from hone.knowledge.staging import StagedLedger
from hone.prompt.compose import has_more_skills

if TYPE_CHECKING:
    from hone.core.embedding import Meanings
    from hone.knowledge.skills.similar import Candidate, Fit

Settle = Callable[[Sequence[str]], Awaitable[None]]
"""Checks skills that have checks, unless their files have passed, and switches off those that fail."""
FIRST = 80
"""How many skills compete for a place in the prompt."""


class Ranking(Struct, frozen=True):
    """The top-ranked skills, the number of all skills, and the places on disk that tell whether this still
    holds."""

    skills: tuple[ListedSkill, ...]
    total: int
    places: tuple[str, ...]


class Library:
    """`meanings`, if given, reranks search results by meaning. `settle` is called before any skill is listed
    or read."""

    def __init__(
        self,
        keeper: Keeper,
        catalog: SkillCatalog,
        clock: Clock,
        meanings: "Meanings | None" = None,
        settle: Settle | None = None,
    ) -> None:
        self.keeper = keeper
        self._catalog = catalog
        self._clock = clock
        self._meanings = meanings
        self._names: tuple[ChangeId, Mapping[str, bool]] | None = None
        self._unchanged: tuple[ChangeId, Seen] | None = None
        """The last change, and how the folder of skills looked, when both had the same skills."""
        self._summarized: ChangeId | None = None
        self._checked: tuple[ChangeId, Sequence[str]] | None = None
        self._settle = settle

    async def ranked(self, folder: str) -> Ranking:
        """Return the top-ranked skills: the same all day, except for changes."""
        names, fresh = await self._look_around()
        await self._adopt_first(fresh, folder)
        checked = await self.settle_checks() if fresh else await self._with_checks()
        known = await self._rank_first(folder)
        if await self._look_at(known):
            known = await self._rank_first(folder)
        own = _own(names)
        active = sum(not archived for archived in names.values())
        documents = [_document(each.name) for each in known]
        unread = [place for name in fresh for place in (places.folder_of(skill(name)), _document(name))]
        return Ranking(
            (*known, *own)[:FIRST],
            active + len(fresh) + len(own),
            (places.SKILLS, *documents, *unread, *await self._list_files(checked)),
        )

    async def _list_files(self, names: Sequence[str]) -> Sequence[str]:
        """Return where the files and folders of skills lie that are more than a document."""
        found: dict[str, None] = {}
        for name in names:
            held = await self.keeper.ledger.held(skill(name))
            home = places.home_of(skill(name), held)
            for path in sorted(path for path in held if not path.startswith("@")):
                parts = path.split("/")
                found.update((f"{home}/{'/'.join(parts[:end])}", None) for end in range(1, len(parts) + 1))
        return list(found)

    async def _with_checks(self) -> Sequence[str]:
        """Return the names, read again after a change."""
        latest = await self.keeper.ledger.latest()
        if self._settle and (self._checked is None or self._checked[0] != latest):
            self._checked = latest, await self._catalog.with_checks()
        return self._checked[1] if self._checked else ()

    async def settle_checks(self) -> Sequence[str]:
        """List no skill before its own checks have passed. Return the names of skills with checks."""
        names = await self._with_checks()
        if names and self._settle:
            await self._settle(names)
        return names

    async def _rank_first(self, folder: str) -> Sequence[ListedSkill]:
        """Return the top-ranked skills, and summarize no others: a prompt does not wait for thousands."""
        place = (folder, self.today, FIRST)
        await self._summarize(await self._catalog.unsummarized_first(*place))
        return await self._catalog.ranked(*place)

    async def _adopt_first(self, fresh: Sequence[str], folder: str) -> None:
        """Adopt new folders that may be top-ranked: only their names rank them."""
        tried = 0
        while left := fresh[tried:]:
            room = FIRST - await self._catalog.idle(left[0], folder, self.today)
            if room <= 0:
                return
            await self.keeper.adopt(left[:room])
            tried += room

    async def _adopt(self, names: Sequence[str]) -> None:
        """Adopt new folders, and summarize whatever is new."""
        if names:
            await self.keeper.adopt(names)
            await self.settle_checks()
        await self._summarize_all()

    async def _summarize_all(self) -> None:
        """Summarize whatever is new. Skip what the ledger had the last time."""
        latest = await self.keeper.ledger.latest()
        if latest != self._summarized:
            await self._summarize(await self._catalog.unsummarized())
            self._summarized = latest

    async def listed(self, *, archived: bool = False) -> Sequence[ListedSkill]:
        """Return all of them, by name."""
        names, fresh = await self._look_around()
        await self._adopt(fresh)
        known = await self._catalog.listed(archived=archived)
        if await self._look_at([each for each in known if not each.archived]):
            await self._summarize_all()
            known = await self._catalog.listed(archived=archived)
        counts = await self._catalog.usage_counts()
        own = [replace(each, counts=counts.get(each.name, UsageCounts())) for each in _own(names)]
        return sorted((*known, *own), key=lambda each: each.name)

    async def page(self, first: int, limit: int, *, archived: bool) -> tuple[Sequence[ListedSkill], int]:
        """Return some of the skills that are in use, or archived, by name, and their total number. Only their
        files are checked."""
        names, fresh = await self._look_around()
        await self._adopt(fresh)
        if fresh:
            names = await self._load_names()
        own = {each.name: each for each in _own(names)} if not archived else {}
        every = sorted((*(name for name, away in names.items() if away is archived), *own))
        chosen = every[first : first + limit]
        known = await self._catalog.named(chosen)
        if not archived and await self._look_at(known):
            await self._summarize_all()
            known = await self._catalog.named(chosen)
        ours = [own[name] for name in chosen if name in own]
        counts = await self._catalog.usage_counts() if ours else {}
        counted = [replace(each, counts=counts.get(each.name, UsageCounts())) for each in ours]
        return sorted((*known, *counted), key=lambda each: each.name), len(every)

    async def find_active(self, names: Collection[str]) -> Sequence[ListedSkill]:
        """Return those of these skills that are in use, by name."""
        await self.settle_checks()
        await self._summarize_all()
        known = await self._catalog.named(sorted(names))
        if await self._look_at([each for each in known if not each.archived]):
            await self._summarize_all()
            known = await self._catalog.named(sorted(names))
        own = [each for each in _own(await self._load_names()) if each.name in names]
        return sorted((*(each for each in known if not each.archived), *own), key=lambda each: each.name)

    async def known(self) -> Sequence[ListedSkill]:
        """Return the ledger's skills that are in use, without checking the disk."""
        return await self._catalog.listed()

    async def bundled(self) -> Sequence[ListedSkill]:
        """Return the bundled skills, unless the owner has one of the same name."""
        return _own(await self._catalog.names())

    async def search(self, query: str, limit: int) -> Sequence[ListedSkill]:
        """Return the best skills for these words first; without words, the top-ranked ones."""
        if not query.strip():
            return (await self.ranked("")).skills[:limit]
        return [fit.skill for fit in (await self.rank(query))[:limit]]

    async def rank(self, query: str, *, small: bool = True) -> "Sequence[Fit]":
        """Return the skills that fit these words, best first, and how well they fit. Search for `small`
        words, too, if no skill has any of the others."""
        names, fresh = await self._look_around()
        await self._adopt(fresh)
        ranked = deferred.similar.rank(query, *await self._candidates(query, names, small=small))
        return await self._compare_meanings(query, ranked) if self._meanings else ranked

    async def _compare_meanings(self, query: str, ranked: "Sequence[Fit]") -> "Sequence[Fit]":
        assert self._meanings is not None
        first = [f"{fit.skill.name}: {fit.skill.description}" for fit in ranked[: deferred.similar.MEANT]]
        asked = await self._meanings.vectors([query], "question")
        passages = await self._meanings.vectors(first) if asked else ()
        similarity = import_object("hone.core.embedding:similarity")  # most homes have no embedder
        return deferred.similar.blend(ranked, [similarity(asked[0], each) for each in passages])

    async def match(self, words: str) -> Sequence[ListedSkill]:
        """Return the skills that are close enough to a user's words to be named unasked, best first. Small
        words alone bring none close enough."""
        return deferred.similar.choose_close(await self.rank(words, small=False))

    async def suggest(self, words: str, messages: Iterable[Message], system: str) -> str:
        """Return the note for a user's words: the skills that may fit, if any."""
        if not has_more_skills(system):
            return ""
        suggest: Callable[..., Awaitable[str]] = import_object("hone.knowledge.suggesting:suggest")
        return await suggest(self.match, words, messages, system)

    async def find_similar(self, name: str, description: str) -> Sequence[ListedSkill]:
        """Return skills that may already cover what a new one is meant for."""
        names, fresh = await self._look_around()
        await self._adopt(fresh)
        candidates, _ = await self._candidates(f"{name} {description}", names)
        return deferred.similar.similar(name, description, candidates)

    async def _candidates(
        self, query: str, names: Collection[str], *, small: bool = True
    ) -> "tuple[Sequence[Candidate], SkillMatches]":
        """Return candidates with their words, including all bundled skills."""
        similar = deferred.similar
        matches = await self._catalog.search(similar.content_words(query), similar.CANDIDATES)
        if small and not matches.found:
            matches = await self._catalog.search(similar.words(query), similar.CANDIDATES)
        own = [(each, bundled.words(each.name), 0.0) for each in _own(names)]
        return [*matches.found, *own], matches

    async def files(self, name: str) -> Files:
        """Return the files of a skill. Raises Missing, with similar names."""
        held = await self.keeper.files(skill(name)) if SHAPE.fullmatch(name) else {}
        if self._settle and any(path.startswith(CHECKS) for path in held):
            await self._settle([name])
            held = await self.keeper.files(skill(name))
        if DOCUMENT in held:
            return held
        if name in bundled.names():
            return {**bundled.files(name), **held}
        near = ", ".join(
            seldom.difflib.get_close_matches(name, (*await self._catalog.names(), *bundled.names()), 3)
        )
        close = f" Close: {near}." if near else ""
        raise Missing(f"There is no skill {one_line(name, 80)!r}.{close}")

    async def count(self, name: str, event: SkillEvent, actor: Actor, session: SessionId) -> None:
        await self._catalog.count(name, event, actor, session, self.today)

    async def load(self, names: Sequence[str]) -> str:
        """Return the text of skills that the user asks for by name, to send with the user's words. Raises
        Missing, with similar names, or Refused."""
        return "\n".join([await self._load(name) for name in dict.fromkeys(names)])

    async def use(self, names: Sequence[str], session: SessionId) -> str:
        """Load skills and count each as used in this conversation."""
        text = await self.load(names)
        for name in dict.fromkeys(names):
            await self.count(name, SkillEvent.USE, Actor.OWNER, session)
        return text

    async def _load(self, name: str) -> str:
        files = await self.files(name)
        known = facts(files)
        if known.failed:
            raise Refused(
                f"The skill {name} is switched off: its own check failed. See why: hone skills show {name}"
            )
        if known.archived and not await self.wake(name):
            raise Refused(f"The skill {name} is archived. Take it out again with: hone skills restore {name}")
        body = visible(parse(decode(DOCUMENT, files[DOCUMENT])).body)
        lines = [
            f"# The user asked for the skill {name}",
            *(f"  {line}".rstrip() for line in body.split("\n")),
        ]
        if others := sorted(split_facts(files)[0].keys() - {DOCUMENT}):
            lines.append(f"# Files of {name} (read them with skill_view): {', '.join(others)}")
        if where := await self.lay_out(name, files):
            lines.append(f"# {where}")
        return "\n".join(lines)

    async def lay_out(self, name: str, files: Files) -> str:
        """Return the sentence that says where a skill's scripts can be run; empty if it has none, or if they
        are in the home."""
        sync = self.keeper.file_sync
        return await sync.lay_out(name, files) if sync else ""

    async def wake(self, name: str) -> bool:
        """Restore a skill that was archived because nothing used it. Return False for any other."""

        async def choose(before: Files) -> Draft | None:
            if ARCHIVED not in before or not await was_aged(self.keeper.ledger, skill(name)):
                return None
            after = {path: data for path, data in before.items() if path != ARCHIVED}
            return Draft(skill(name), ChangeKind.WAKE, before, after, reason="it was used again")

        return await self.keeper.mark(name, choose) is not None

    async def rate(self, session: SessionId, results: Callable[[str], SkillResult]) -> None:
        """Record the outcome of a session for each skill that it used."""
        for name in await self._catalog.used(session):
            await self._catalog.rate(name, session, results(name))

    async def days(self) -> Mapping[str, frozenset[date]]:
        return await self._catalog.days()

    async def usage_counts(self) -> Mapping[str, UsageCounts]:
        return await self._catalog.usage_counts()

    async def _look_around(self) -> tuple[Mapping[str, bool], Sequence[str]]:
        """Publish missing folders, and clear those of archived skills. Return the known skills, and the names
        of new folders."""
        names = await self._load_names()
        if names and await self.settle_checks():
            names = await self._load_names()
        sync = self.keeper.file_sync
        if sync is None:
            return names, ()
        sight, latest = await sync.sight([places.SKILLS]), self._names[0] if self._names else START
        if self._unchanged == (latest, sight.seen):
            return names, ()
        lying = await sync.folders(places.SKILLS, names)
        if lying is None:
            return names, ()
        astray = sorted(name for name, archived in names.items() if archived is (name in lying))
        for name in astray:
            await self.keeper.files(skill(name))
        fresh = sorted(name for name in lying - names.keys() if SHAPE.fullmatch(name))
        if not astray and not fresh and sight.touched < sight.at - TICK:
            self._unchanged = latest, sight.seen
        return names, fresh

    async def _load_names(self) -> Mapping[str, bool]:
        """Return the names, and whether each is archived. They are read again only after a change, so that a
        turn stays fast with many skills."""
        latest = await self.keeper.ledger.latest()
        if self._names is None or self._names[0] != latest:
            self._names = latest, await self._catalog.names()
        return self._names[1]

    async def _look_at(self, skills: Sequence[ListedSkill]) -> bool:
        """Merge what the owner has changed in these. Tell whether there was anything."""
        sync = self.keeper.file_sync
        changed = await sync.find_touched([skill(each.name) for each in skills]) if sync else ()
        for target in changed:
            await self.keeper.files(target)
        if changed:
            await self.settle_checks()
        return bool(changed)

    async def _summarize(self, digests: Sequence[str]) -> None:
        if digests:
            contents = await self.keeper.ledger.contents(digests)
            await self._catalog.save_summaries({name: _summarize(data) for name, data in contents.items()})

    def stage(self) -> tuple["Library", StagedLedger]:
        """Return a library for a run whose changes nobody else may see yet."""
        keeper, ledger = self.keeper.stage()
        return Library(keeper, self._catalog, self._clock, self._meanings, self._settle), ledger

    @property
    def today(self) -> date:
        return self._clock.now().astimezone().date()


def _document(name: str) -> str:
    return f"{places.folder_of(skill(name))}/{DOCUMENT}"


def _own(names: Collection[str]) -> Sequence[ListedSkill]:
    """Return the bundled skills, unless the owner has one of the same name."""
    return [each for each in bundled.listed() if each.name not in names]


def _summarize(data: bytes) -> SkillSummary:
    return parse(data.decode()).summary
