"""The library of all skills, those in the ledger and those that come with Hone: rank, search and look up."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct

from hone.core import seldom
from hone.core.clock import Clock
from hone.core.errors import Missing, Refused
from hone.core.ids import SessionId
from hone.core.ledger import Actor, ChangeId, ChangeKind, skill
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
"""Checks skills that carry checks, those whose files have not passed, and switches off those that fail."""
FIRST = 80
"""How many skills compete for a place in the prompt."""


class Ranking(Struct, frozen=True):
    """The skills that are first in rank, how many there are in all, and the places on the disk that say
    whether this still holds."""

    skills: tuple[ListedSkill, ...]
    total: int
    places: tuple[str, ...]


class Library:
    """`meanings`, if given, ranks what was found by words anew by what it means. `settle` is called before
    any skill is listed or read."""

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
        self._summarized: ChangeId | None = None
        self._checked: tuple[ChangeId, Sequence[str]] | None = None
        self._settle = settle

    async def ranked(self, folder: str) -> Ranking:
        """Return the first in rank: the same all day, but for what changes."""
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
        """Return where the files and folders of skills lie, of which more than the document matters."""
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
        """Let no skill be listed whose own checks have not passed. Return the names of those with checks."""
        names = await self._with_checks()
        if names and self._settle:
            await self._settle(names)
        return names

    async def _rank_first(self, folder: str) -> Sequence[ListedSkill]:
        """Return the first in rank, and summarize no others: a prompt does not wait for thousands."""
        place = (folder, self.today, FIRST)
        await self._summarize(await self._catalog.unsummarized_first(*place))
        return await self._catalog.ranked(*place)

    async def _adopt_first(self, fresh: Sequence[str], folder: str) -> None:
        """Adopt, of new folders, those that can be among the first in rank: only their names rank them."""
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
        """Summarize whatever is new. What the ledger had at the last time is not gone through again."""
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
        """Return some of those that are in use, or of those that are archived, by name, and how many there
        are. Only the files of these are looked at."""
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
        """Return those of the ledger that are in use, without a look at the disk."""
        return await self._catalog.listed()

    async def bundled(self) -> Sequence[ListedSkill]:
        """Return those that come with Hone, unless the owner has one of the same name."""
        return _own(await self._catalog.names())

    async def search(self, query: str, limit: int) -> Sequence[ListedSkill]:
        """Return the best for these words first; without words, those that are first in rank."""
        if not query.strip():
            return (await self.ranked("")).skills[:limit]
        return [fit.skill for fit in (await self.rank(query))[:limit]]

    async def rank(self, query: str) -> "Sequence[Fit]":
        """Return the skills that fit these words, the best first, and how well."""
        names, fresh = await self._look_around()
        await self._adopt(fresh)
        ranked = deferred.similar.rank(query, *await self._candidates(query, names))
        return await self._compare_meanings(query, ranked) if self._meanings else ranked

    async def _compare_meanings(self, query: str, ranked: "Sequence[Fit]") -> "Sequence[Fit]":
        assert self._meanings is not None
        first = [f"{fit.skill.name}: {fit.skill.description}" for fit in ranked[: deferred.similar.MEANT]]
        asked = await self._meanings.vectors([query], "question")
        passages = await self._meanings.vectors(first) if asked else ()
        similarity = import_object("hone.core.embedding:similarity")  # most homes have no embedder
        return deferred.similar.blend(ranked, [similarity(asked[0], each) for each in passages])

    async def match(self, words: str) -> Sequence[ListedSkill]:
        """Return the skills that are close enough to a user's words to be named unasked, the best first."""
        return deferred.similar.choose_close(await self.rank(words))

    async def suggest(self, words: str, messages: Iterable[Message], system: str) -> str:
        """Return the note that goes with a user's words: the skills that may fit them, if any."""
        if not has_more_skills(system):
            return ""
        suggest: Callable[..., Awaitable[str]] = import_object("hone.knowledge.suggesting:suggest")
        return await suggest(self.match, words, messages, system)

    async def find_similar(self, name: str, description: str) -> Sequence[ListedSkill]:
        """Return skills that may already be what a new one is meant to be."""
        names, fresh = await self._look_around()
        await self._adopt(fresh)
        candidates, _ = await self._candidates(f"{name} {description}", names)
        return deferred.similar.similar(name, description, candidates)

    async def _candidates(
        self, query: str, names: Collection[str]
    ) -> "tuple[Sequence[Candidate], SkillMatches]":
        """Return them with their words. Of those that come with Hone, all."""
        similar = deferred.similar
        matches = await self._catalog.search(similar.content_words(query), similar.CANDIDATES)
        if not matches.found:
            matches = await self._catalog.search(similar.words(query), similar.CANDIDATES)
        own = [(each, bundled.words(each.name), 0.0) for each in _own(names)]
        return [*matches.found, *own], matches

    async def files(self, name: str) -> Files:
        """Return the files of a skill. Raises Missing, with names that are close."""
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
        Missing, with names that are close, or Refused."""
        return "\n".join([await self._load(name) for name in dict.fromkeys(names)])

    async def use(self, names: Sequence[str], session: SessionId) -> str:
        """Load skills and count each of them as used in this conversation."""
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
        """Return the sentence that says where scripts of a skill can be run; empty if it has none, or if they
        lie in the home."""
        sync = self.keeper.file_sync
        return await sync.lay_out(name, files) if sync else ""

    async def wake(self, name: str) -> bool:
        """Restore a skill that was archived because nobody used it. Return False for any other."""

        async def choose(before: Files) -> Draft | None:
            if ARCHIVED not in before or not await was_aged(self.keeper.ledger, skill(name)):
                return None
            after = {path: data for path, data in before.items() if path != ARCHIVED}
            return Draft(skill(name), ChangeKind.WAKE, before, after, reason="it was used again")

        return await self.keeper.mark(name, choose) is not None

    async def rate(self, session: SessionId, results: Callable[[str], SkillResult]) -> None:
        """Note of each skill that was used in a session how that went."""
        for name in await self._catalog.used(session):
            await self._catalog.rate(name, session, results(name))

    async def days(self) -> Mapping[str, frozenset[date]]:
        return await self._catalog.days()

    async def usage_counts(self) -> Mapping[str, UsageCounts]:
        return await self._catalog.usage_counts()

    async def _look_around(self) -> tuple[Mapping[str, bool], Sequence[str]]:
        """Publish folders that are missing, clear those that were archived. Return the skills that are known,
        and the names of new folders."""
        names = await self._load_names()
        if names and await self.settle_checks():
            names = await self._load_names()
        sync = self.keeper.file_sync
        lying = await sync.folders(places.SKILLS, names) if sync else None
        if lying is None:
            return names, ()
        for name in sorted(name for name, archived in names.items() if archived is (name in lying)):
            await self.keeper.files(skill(name))
        return names, sorted(name for name in lying - names.keys() if SHAPE.fullmatch(name))

    async def _load_names(self) -> Mapping[str, bool]:
        """Return the names, and whether each is archived. They are read again after a change, so that a turn
        does not take longer with many skills."""
        latest = await self.keeper.ledger.latest()
        if self._names is None or self._names[0] != latest:
            self._names = latest, await self._catalog.names()
        return self._names[1]

    async def _look_at(self, skills: Sequence[ListedSkill]) -> bool:
        """Take in what the owner has changed in these. Return whether there was something."""
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
        """Return a library for a run whose changes nobody else shall see yet."""
        keeper, ledger = self.keeper.stage()
        return Library(keeper, self._catalog, self._clock, self._meanings, self._settle), ledger

    @property
    def today(self) -> date:
        return self._clock.now().astimezone().date()


def _document(name: str) -> str:
    return f"{places.folder_of(skill(name))}/{DOCUMENT}"


def _own(names: Collection[str]) -> Sequence[ListedSkill]:
    """Return those that come with Hone, unless the owner has one of the same name."""
    return [each for each in bundled.listed() if each.name not in names]


def _summarize(data: bytes) -> SkillSummary:
    return parse(data.decode()).summary
