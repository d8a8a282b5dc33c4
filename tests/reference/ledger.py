"""The ledger and the shelf in the memory of this process: the reference for every other store."""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from datetime import date, datetime

from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.ids import SessionId
from hone.core.ledger import (
    EVERY,
    SKILL,
    Actor,
    Change,
    ChangeId,
    ChangeQuery,
    ChangeState,
    Entry,
    Held,
    LedgerView,
    PublishedFile,
    Target,
)
from hone.core.messages import sound
from hone.core.regex import regex
from hone.core.skill import (
    ARCHIVED,
    CHECKS,
    DOCUMENT,
    ORIGIN,
    PINNED,
    PROJECT,
    ListedSkill,
    SkillEvent,
    SkillMatches,
    SkillResult,
    SkillSummary,
    SkillWords,
    UsageCounts,
)
from hone.core.value import replace
from hone.stores import checks
from hone.stores import words as wording

WORD = regex(r"[^\W_]+")


class InMemoryLedger:
    """Values are replaced and never changed, so a record that fails has changed nothing."""

    def __init__(self) -> None:
        self._entries: tuple[Entry, ...] = ()
        self._contents: dict[str, bytes] = {}
        self._held: dict[Target, dict[str, str]] = {}
        self._prints: dict[tuple[Target, str], PublishedFile] = {}

    async def record(
        self, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
    ) -> Sequence[Entry]:
        checks.genuine(contents)
        known = {**self._contents, **contents}
        held = {target: dict(holding) for target, holding in self._held.items()}
        entries = list(self._entries)
        for change in map(checks.storable, changes):
            _admit(change, entries, known, held)
            entries.append(Entry(ChangeId(len(entries) + 1), at, change))
            if change.about is not None and change.standing is ChangeState.ACTIVE:
                entries[change.about - 1] = replace(entries[change.about - 1], settled=entries[-1].id)
        before, self._entries = len(self._entries), tuple(entries)
        self._contents, self._held = known, {target: paths for target, paths in held.items() if paths}
        return self._entries[before:]

    async def entry(self, id: ChangeId) -> Entry:
        if not 1 <= id <= len(self._entries):
            raise checks.absent(id)
        return self._entries[id - 1]

    async def entries(self, query: ChangeQuery = EVERY) -> Sequence[Entry]:
        found = [
            entry
            for entry in reversed(self._entries)
            if _within(entry.change.target, sound(query.target))
            and query.actor in (None, entry.change.author.actor)
            and (not query.session or sound(query.session) in _sessions(entry))
            and query.group in ("", entry.change.group)
            and (not query.kinds or entry.change.kind in query.kinds)
            and (query.since is None or entry.at >= query.since)
            and (query.after is None or entry.id > query.after)
            and (query.before is None or entry.id < query.before)
        ]
        return tuple(found[: query.limit])

    async def pending(self, target: Target | None = None) -> Sequence[Entry]:
        return tuple(
            entry
            for entry in self._entries
            if entry.change.standing is ChangeState.PENDING and entry.settled is None
            if target is None or entry.change.target == sound(target)
        )

    async def latest(self) -> ChangeId:
        return ChangeId(len(self._entries))

    async def held(self, target: Target) -> Held:
        return dict(self._held.get(Target(sound(target)), {}))

    async def held_below(self, beginning: str) -> Mapping[Target, Held]:
        return {
            target: dict(holding)
            for target, holding in self._held.items()
            if target.startswith(sound(beginning))
        }

    async def contents(self, digests: Collection[str]) -> Mapping[str, bytes]:
        for name in digests:
            if name not in self._contents:
                raise checks.unknown(name)
        return {name: self._contents[name] for name in digests}

    async def view(
        self,
        targets: Collection[Target],
        known: Set[str] = frozenset(),
        since: ChangeId | None = None,
    ) -> LedgerView:
        held = {target: await self.held(target) for target in targets}
        contents = await self.contents({name for each in held.values() for name in each.values()} - known)
        made = None if since is None else frozenset(each.change.kind for each in self._entries[since:])
        return LedgerView(await self.latest(), held, await self.published_files(targets), contents, made)

    async def published_files(
        self, targets: Collection[Target]
    ) -> Mapping[tuple[Target, str], PublishedFile]:
        wanted = set(map(sound, targets))
        return {key: each for key, each in self._prints.items() if key[0] in wanted}

    async def mark_published(self, files: Mapping[tuple[Target, str], PublishedFile | None]) -> None:
        for (target, path), made in files.items():
            key = (Target(sound(target)), sound(path))
            self._prints.pop(key, None)
            if made is not None:
                self._prints[key] = made


class InMemorySkillCatalog:
    """Looks into the ledger for every answer. What is ranked comes without a tally."""

    def __init__(self, ledger: InMemoryLedger) -> None:
        self._ledger = ledger
        self._cards: dict[str, SkillSummary] = {}
        self._tallies: dict[str, UsageCounts] = {}
        self._uses: dict[str, set[tuple[date, SessionId]]] = {}
        self._results: dict[tuple[str, SessionId], SkillResult] = {}

    async def unsummarized(self) -> Sequence[str]:
        return tuple(sorted(await self._documents() - self._cards.keys()))

    async def unsummarized_first(self, folder: str, today: date, limit: int) -> Sequence[str]:
        """As if each of them had a summary."""
        whole = InMemorySkillCatalog(self._ledger)
        whole._uses = self._uses
        whole._cards = dict.fromkeys(await self._documents(), SkillSummary("", "", ""))
        first = {line.digest for line in await whole.ranked(folder, today, limit)}
        return tuple(sorted(first - self._cards.keys()))

    async def save_summaries(self, summaries: Mapping[str, SkillSummary]) -> None:
        held = await self._documents()
        self._cards = {name: card for name, card in {**self._cards, **summaries}.items() if name in held}

    async def listed(self, *, archived: bool = False) -> Sequence[ListedSkill]:
        held = sorted((await self._ledger.held_below(SKILL)).items())
        lines = [
            await self._line(target.removeprefix(SKILL), holding)
            for target, holding in held
            if holding.get(DOCUMENT) in self._cards
        ]
        return tuple(line for line in lines if archived or not line.archived)

    async def named(self, names: Sequence[str]) -> Sequence[ListedSkill]:
        return tuple(each for each in await self.listed(archived=True) if each.name in names)

    async def ranked(self, folder: str, today: date, limit: int) -> Sequence[ListedSkill]:
        def rank(line: ListedSkill) -> tuple[bool, bool, int, int, str]:
            used = [(day, session) for day, session in self._uses.get(line.name, ()) if day < today]
            last = max((day.toordinal() for day, _ in used), default=0)
            often = len({session for _, session in used})
            return not line.pinned, not folder or line.project != sound(folder), -last, -often, line.name

        lines = sorted(await self.listed(), key=rank)
        return tuple(replace(line, counts=UsageCounts()) for line in lines[:limit])

    async def idle(self, before: str, folder: str, today: date) -> int:
        used = {name for name, uses in self._uses.items() if any(day < today for day, _ in uses)}
        return sum(
            line.name < sound(before)
            and not (line.pinned or (folder and line.project == sound(folder)) or line.name in used)
            for line in await self.listed()
        )

    async def search(self, words: Collection[str], limit: int) -> SkillMatches:
        terms = {term: _plain(term) for term in wording.terms(words)}
        scored = [
            (line, SkillWords.of(self._cards[line.digest]), self._score(line, [*terms.values()]))
            for line in await self.listed()
        ]
        found = sorted((each for each in scored if each[2]), key=lambda each: -each[2])[:limit]
        cards = [" ".join(_fields(card)) for card in self._cards.values()]
        counts = {term: sum(plain in card for card in cards) for term, plain in terms.items()}
        return SkillMatches(tuple(found), counts, len(cards))

    async def count(
        self, skill: str, event: SkillEvent, actor: Actor, session: SessionId, today: date
    ) -> None:
        name, foreground = sound(skill), actor in (Actor.OWNER, Actor.AGENT, Actor.CLIENT)
        tally = self._tallies.get(name, UsageCounts())
        match event, foreground:
            case SkillEvent.VIEW, True:
                tally = replace(tally, views=tally.views + 1)
            case SkillEvent.VIEW, False:
                tally = replace(tally, background_views=tally.background_views + 1)
            case SkillEvent.PATCH, True:
                tally = replace(tally, patches=tally.patches + 1)
            case SkillEvent.PATCH, False:
                tally = replace(tally, background_patches=tally.background_patches + 1)
            case SkillEvent.USE, True:
                used = self._uses.setdefault(name, set())
                used.add((today, SessionId(sound(session))))
                uses, last = len({each for _, each in used}), max(day for day, _ in used)
                tally = replace(tally, uses=uses, last_use=last)
            case _:
                return
        self._tallies[name] = tally

    async def used(self, session: SessionId) -> Sequence[str]:
        wanted = sound(session)
        return tuple(
            sorted(name for name, uses in self._uses.items() if wanted in {each for _, each in uses})
        )

    async def rate(self, skill: str, session: SessionId, result: SkillResult) -> None:
        name, where = sound(skill), SessionId(sound(session))
        if name not in await self.used(where):
            return
        self._results[name, where] = result
        results = [each for (known, _), each in self._results.items() if known == name]
        self._tallies[name] = replace(
            self._tallies[name],
            succeeded=results.count(SkillResult.SUCCEEDED),
            corrected=results.count(SkillResult.CORRECTED),
        )

    async def with_checks(self) -> Sequence[str]:
        held = await self._ledger.held_below(SKILL)
        return tuple(
            sorted(
                target.removeprefix(SKILL)
                for target, holding in held.items()
                if DOCUMENT in holding and any(path.startswith(CHECKS) for path in holding)
            )
        )

    async def names(self) -> Mapping[str, bool]:
        held = await self._ledger.held_below(SKILL)
        return {
            target.removeprefix(SKILL): ARCHIVED in holding
            for target, holding in held.items()
            if DOCUMENT in holding
        }

    async def days(self) -> Mapping[str, frozenset[date]]:
        return {name: frozenset(day for day, _ in used) for name, used in self._uses.items()}

    async def usage_counts(self) -> Mapping[str, UsageCounts]:
        return dict(self._tallies)

    async def _documents(self) -> set[str]:
        held = await self._ledger.held_below(SKILL)
        return {holding[DOCUMENT] for holding in held.values() if DOCUMENT in holding}

    async def _line(self, name: str, holding: Held) -> ListedSkill:
        facts = {path: holding[path] for path in (ORIGIN, PROJECT) if path in holding}
        bodies = await self._ledger.contents(facts.values())
        return ListedSkill(
            name,
            sound(self._cards[holding[DOCUMENT]].description),
            holding[DOCUMENT],
            checks.birth(bodies[facts[ORIGIN]] if ORIGIN in facts else None),
            PINNED in holding,
            ARCHIVED in holding,
            bodies[facts[PROJECT]].decode("utf-8", "replace") if PROJECT in facts else "",
            self._tallies.get(name, UsageCounts()),
        )

    def _score(self, line: ListedSkill, terms: Sequence[str]) -> float:
        fields = _fields(self._cards[line.digest])
        return sum(
            weight
            for weight, field in zip((1.5, 1.5, 1.0), fields, strict=True)
            for term in terms
            if term.strip() and term in field
        )


class InMemoryCuratorRuns:
    def __init__(self, ledger: InMemoryLedger) -> None:
        self._ledger = ledger
        self._rounds: tuple[CuratorRun, ...] = ()

    async def runs(self, limit: int | None = None) -> Sequence[CuratorRun]:
        return self._rounds[::-1][:limit]

    async def complete(
        self, run: CuratorRun, after: CuratorRunId, changes: Sequence[Change], contents: Mapping[str, bytes]
    ) -> tuple[CuratorRun, Sequence[Entry]]:
        if after != len(self._rounds):
            raise checks.overtaken()
        entries = await self._ledger.record(changes, contents, run.at)
        ids = tuple(entry.id for entry in entries)
        made = replace(checks.sound_words(run), changes=ids, id=CuratorRunId(after + 1))
        self._rounds = (*self._rounds, made)
        return made, entries


def _admit(
    change: Change,
    entries: Sequence[Entry],
    known: Mapping[str, bytes],
    held: dict[Target, dict[str, str]],
) -> None:
    if change.about is not None:
        there = entries[change.about - 1] if 1 <= change.about <= len(entries) else None
        standing, settled = (there.change.standing, there.settled) if there else (None, None)
        checks.settle(change.about, standing, settled)
    for name in checks.digests(change):
        if name not in known:
            raise checks.unknown(name)
    if change.standing is ChangeState.PENDING:
        return
    holding = held.setdefault(change.target, {})
    for delta in change.deltas:
        checks.follow(change.target, delta, holding.pop(delta.path, None))
        if delta.after is not None:
            holding[delta.path] = delta.after


def _within(target: str, wanted: str) -> bool:
    return target.startswith(wanted) if wanted.endswith(":") or not wanted else target == wanted


def _sessions(entry: Entry) -> Iterator[str]:
    yield entry.change.author.session
    yield from (each.session for each in entry.change.author.evidence)


def _plain(text: str) -> str:
    """Lower case without accents, each word between blanks."""
    letters = unicodedata.normalize("NFKD", text.lower())
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return f" {' '.join(WORD.findall(bare))} "


def _fields(card: SkillSummary) -> list[str]:
    return [_plain(wording.spaced(text)) for text in (card.name, card.description, card.body)]
