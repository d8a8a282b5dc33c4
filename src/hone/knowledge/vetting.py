"""Compare what an agent wants to write to the journal with what is there and with what was taken back.

An entry that resembles another one is not added silently. One that contradicts another replaces it if the
owner has said it since. One that the owner took back stays out until the owner says it again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from hone.core.errors import AlreadyKnown, Refused
from hone.core.ledger import MEMORY, USER, Author, ChangeId, Entry, Ledger, Target
from hone.core.loading import import_object
from hone.core.ports import Sessions
from hone.core.value import replace
from hone.knowledge import journal, places, validity
from hone.knowledge.admission import FAULTS
from hone.knowledge.cues import is_negative_claim, only_asks, speaks_of_change
from hone.knowledge.folding import Draft, Step, load_all_steps, steps
from hone.knowledge.journal import describe_contradiction, entries_in, find_missing, list_entries
from hone.knowledge.origins import Origins, speak_of_the_same
from hone.knowledge.own_words import states
from hone.knowledge.quoting import quotes
from hone.knowledge.reasons import find_cue, tells_of_owner
from hone.knowledge.resemblance import (
    contradicts,
    denies,
    find_alike,
    find_contradicting,
    has_same_words,
    is_opposite,
    is_same,
    resembles,
    shares_any,
    shares_words,
)
from hone.knowledge.sentences import sentences
from hone.knowledge.skills import bundled
from hone.knowledge.skills.claims import find_claims
from hone.knowledge.verdicts import AGENTS
from hone.knowledge.withdrawn import (
    SHOWN,
    Withdrawal,
    Withdrawals,
    describe_same_ground,
    describe_withdrawn,
    find_kept,
    find_repeated,
    find_repeated_skill,
    find_same_ground,
    is_later,
    lesson_of,
    name_day,
    said_since,
)

if TYPE_CHECKING:
    from hone.core.embedding import Meanings
    from hone.knowledge.nearness import Nearness

NEARNESS = "hone.knowledge.nearness:Nearness"
"""Imported if an embedder is set."""
CLAIM = (
    "Not saved: a claim that something does not work goes out of date, and then keeps you from trying again. "
    "Save the fix or the workaround, or nothing. If the user said it, quote the user and use no other words."
)
CLAIM_IN_SKILL = (
    "Not saved: a claim that something does not work goes out of date, and then keeps you from trying again. "
    "Write what to do instead, or what to do when it fails. These sentences only say that it fails:"
)
QUESTION = "Not saved: the words you name only ask. A question states nothing; quote what the user stated."

CHANGED = (
    "Not added: the user speaks of a change, and these entries may be about the same. Replace the one that "
    "no longer holds; if they all hold, use add_anyway."
)

OTHERWISE = (
    "Not saved: the user speaks of a change, and the words you name do not say this. Save what holds now, in "
    "the user's words. If this follows from them, use add_anyway."
)
GROUNDLESS = (
    "Not saved: the words you name say nothing of the kind. Quote the words that state it. If it still "
    "follows from them, use add_anyway."
)
PINNED = "the user has pinned the entry that it changes"
REPLACED = "Not saved: you have just replaced this entry, because the user says otherwise now."
UNLIKE = (
    "Not saved: the user has taken lessons back, and this has no word of what it rests on: it may be one "
    "of those in other words. Save it in the user's own words and language."
)

_WEEKS = timedelta(weeks=4)

SHARED = (
    "Not saved: your team shares this already, and you know it from there. If the user states it, too, quote "
    "the user."
)
SharedEntries = Callable[[], Awaitable[Sequence[str]]]
"""Returns the entries that others share with the owner."""

Edits = list[tuple[Target, journal.Edit]]
ReadChange = tuple[tuple[str, ...] | frozenset[tuple[str, bytes | None]], tuple[str, ...]]
"""Entries added and entries removed; for a skill, its new contents by path."""


class Vetted(Struct, frozen=True):
    """The new entries, and the removed ones, each with what the owner has said since it was added. `cause` is
    why the change must be pending, if it must."""

    entries: Sequence[str]
    gone: Mapping[str, Sequence[str]]
    cause: str = ""


class Vetting:
    def __init__(
        self,
        ledger: Ledger,
        meanings: "Meanings | None" = None,
        sessions: Sessions | None = None,
        shared: SharedEntries | None = None,
    ) -> None:
        self._ledger = ledger
        self._shared = shared
        self._origins = Origins(ledger, sessions)
        self._nearness: Nearness | None = import_object(NEARNESS)(meanings) if meanings else None
        self.withdrawals = Withdrawals(ledger, self._origins)
        self._replaced: list[str] = []
        self._waiting: dict[ChangeId, ReadChange] = {}
        """Cached, since pending changes never change, and each is compared with every new pending lesson."""

    def remember_replaced(self, drafts: Sequence[Draft]) -> None:
        """Remember what staged changes replace: no ledger lists them yet."""
        journals = (draft for draft in drafts if places.is_journal(draft.target))
        self._replaced += [entry for draft in journals for entry in differences(draft)[1]]

    async def settle(
        self,
        edits: Sequence[tuple[Target, journal.Edit]],
        texts: Mapping[Target, str],
        author: Author,
        today: date,
    ) -> Edits:
        """Return the edits to make. An addition that contradicts an entry becomes its replacement if the
        owner has said it since. Raises Refused for one that resembles another entry, or contradicts it."""
        staying = _staying(edits, texts)
        settled: Edits = []
        for target, edit in edits:
            dated = _date(_keep_pin(edit, texts[target]), author, today)
            await self._check_shared(getattr(dated, "text", ""), author)
            if isinstance(dated, journal.Add):
                settled += await self._settle_addition(target, dated, staying, author)
            else:
                settled.append((target, dated))
        return settled

    async def _check_shared(self, text: str, author: Author) -> None:
        """Refuse a copy of what others share: it would stay when they withdraw it. The owner's own words are
        no copy."""
        shared = await self._shared() if self._shared and text else ()
        wording = validity.read(text).wording
        is_copy = any(resembles(wording, validity.read(each).wording) for each in shared)
        if is_copy and not quotes(wording, author.quotes):
            raise AlreadyKnown(SHARED)

    async def _settle_addition(
        self, target: Target, edit: journal.Add, staying: Mapping[Target, Sequence[str]], author: Author
    ) -> Edits:
        text = validity.read(edit.text).wording
        near = [(each, entry) for each in _scope(target, staying) for entry in staying[each]]
        contrary = find_contradicting(text, [validity.read(entry).wording for _, entry in near])
        opposed = [near[at] for at in contrary]
        if opposed:
            if not all([await self._is_superseded(*each, text, author) for each in opposed]):
                raise Refused(describe_contradiction([entry for _, entry in opposed]))
            (first, entry), *others = opposed
            removals = [(each, journal.Remove(old)) for each, old in others]
            return [(first, journal.ReplaceEntry(entry, edit.text)), *removals]
        if not edit.anyway and journal.normalize(edit.text) not in staying[target]:
            await self._check_alike(text, near, author)
            with suppress(*FAULTS):  # this is only advice; anything that cannot be compared is judged later
                _check_ground(text, author.quotes)
                await self._check_changed(text, near, author)
        return [(target, edit)]

    async def _check_alike(self, text: str, near: Sequence[tuple[Target, str]], author: Author) -> None:
        """Refuse what may be known already, and name the similar entries: by their words, by their meaning,
        or by the owner's words that they were made of."""
        by_wording = {validity.read(entry).wording: entry for _, entry in near}
        found = find_alike(text, list(by_wording)) or await self._find_near(text, list(by_wording))
        alike = [by_wording[each] for each in found]
        with suppress(*FAULTS):  # anything that cannot be compared is judged later
            alike = alike or await self._find_same_words(near, author)
        if not alike:
            return
        if any(has_same_words(text, each) for each in found):
            raise AlreadyKnown(f"Not added: this is already known, in other words.\n{list_entries(alike)}")
        raise Refused(
            "Not added: these entries are alike. Replace the one that it corrects or completes; if it is a "
            f"different matter, use add_anyway.\n{list_entries(alike)}"
        )

    async def _find_same_words(self, near: Sequence[tuple[Target, str]], author: Author) -> list[str]:
        """Return the older entries that come from words of the owner's about the same subject."""
        said = _sentences(author.quotes)
        return [
            entry
            for target, entry in near
            if speak_of_the_same(said, await self._origins.find_words(target, entry))
            and await self._is_older(target, entry, author)
        ]

    async def _check_changed(self, text: str, near: Sequence[tuple[Target, str]], author: Author) -> None:
        """Refuse an addition if the owner may have changed their mind about an entry, and one that states
        what held before. Either may be in the agent's words, so the sentences that it was made of count,
        too."""
        said = _sentences(author.quotes)
        about = [each for each in said if shares_any(text, each)] or said
        if not speaks_of_change(about):
            return
        if denies(text, about):
            raise Refused(OTHERWISE)
        words = " ".join((text, *about))
        like = [each for each in near if await self._is_about(words, *each)]
        if found := [entry for target, entry in like if await self._is_older(target, entry, author)]:
            raise Refused(f"{CHANGED}\n{list_entries(found)}")

    async def _is_about(self, words: str, target: Target, entry: str) -> bool:
        return shares_any(words, " ".join((entry, *await self._origins.find_words(target, entry))))

    async def _is_older(self, target: Target, entry: str, author: Author) -> bool:
        """Tell whether an entry rests on none of the messages that the author names, and is older than they
        are."""
        origin = await self._origins.find(target, entry)
        evidence = origin.change.author.evidence if origin else ()
        ground = {(each.session, each.message) for each in evidence}
        return any((each.session, each.message) not in ground for each in author.evidence)

    async def _is_superseded(self, target: Target, entry: str, text: str, author: Author) -> bool:
        """Tell whether the owner has said the new text since the entry was added."""
        return quotes(text, await self._said_since(target, entry, author))

    async def _said_since(self, target: Target, entry: str, author: Author) -> Sequence[str]:
        origin = await self._origins.find(target, entry)
        if origin is None:
            return author.quotes
        evidence = origin.change.author.evidence
        return [said.text for said in author.said if is_later(said, evidence, origin.at)]

    async def examine(
        self,
        drafts: Sequence[Draft],
        texts: Mapping[Target, str],
        author: Author,
        latest: ChangeId | None = None,
    ) -> Vetted:
        """Compare a change with what was taken back. Raises Refused for a lesson that was, that rests on a
        question, or that is older than what it would replace. `latest` is the last change, if known: under
        the lock nobody adds another."""
        if author.said and len(author.said) >= len(author.evidence) and only_asks(author.quotes):
            raise Refused(QUESTION)
        entries: list[str] = []
        gone: dict[str, Sequence[str]] = {}
        cause = ""
        known = await self.withdrawals.all(latest)
        for draft in drafts:
            new, old = differences(draft)
            staying = _staying_beside(draft, texts)
            for entry in old:
                cause = cause or (PINNED if validity.read(entry).pinned else "")
                _check_kept(known, draft.target, entry, author)
                gone[entry] = await self._said_since(draft.target, entry, author)
                _check_age(entry, gone[entry], new)
            for entry in new:
                if opposed := find_contradicting(entry, staying):
                    raise Refused(describe_contradiction([staying[at] for at in opposed]))
                cause = cause or await self._check_withdrawn(known, draft.target, entry, author)
            entries += map(_wording, new)
        return Vetted(entries, gone, cause)

    async def examine_skill(self, draft: Draft, author: Author) -> str:
        """Return why a change of a skill must be pending, or nothing. Raises Refused if it was taken back, or
        says that something does not work."""
        _check_claims(draft, author)
        known = await self.withdrawals.all()
        lesson = lesson_of(draft.target, steps(draft.before, draft.after))
        if lesson and (found := find_repeated_skill(known, draft.target, lesson, author)):
            raise Refused(describe_withdrawn(found))
        return describe_same_ground(find_same_ground(known, draft.target, author)) if lesson else ""

    async def examine_staged(self, draft: Draft, since: ChangeId) -> None:
        """Compare what a review has staged with what has happened since. Raises Refused for a lesson that was
        taken back, that contradicts what is there now, or that changes what was pinned."""
        if not places.is_journal(draft.target):
            return
        taken = [
            each for each in await self.withdrawals.all() if each.id > since and each.binds(draft.target)
        ]
        new, old = differences(draft)
        if any(validity.read(entry).pinned for entry in old):
            raise Refused(f"It has to wait: {PINNED}.")
        for entry in new:
            if any(each.has(entry) for each in taken):
                raise Refused("The user took back a lesson like this meanwhile.")
            if opposed := [each for each in _staying_beside(draft, {}) if contradicts(entry, each)]:
                raise Refused(describe_contradiction(opposed))

    async def find_waiting(self, draft: Draft) -> Entry | None:
        """Return the pending change that brings the same lesson."""
        waiting = [
            entry for entry in await self._ledger.pending(draft.target) if entry.change.author.actor in AGENTS
        ]
        new = [entry for entry in waiting if entry.id not in self._waiting]
        made = await load_all_steps(self._ledger, [entry.change for entry in new])
        for entry, each in zip(new, made, strict=True):
            self._waiting[entry.id] = _read_change(each, draft.target)
        wanted = _read_change(steps(draft.before, draft.after), draft.target)
        return next((each for each in waiting if _is_same_change(self._waiting[each.id], wanted)), None)

    async def _check_withdrawn(
        self, known: Sequence[Withdrawal], target: Target, entry: str, author: Author
    ) -> str:
        if found := find_repeated(known, target, _wording(entry), author, states):
            raise Refused(describe_withdrawn(found))
        if any(is_same(_wording(entry), each) for each in self._replaced):
            raise Refused(REPLACED)
        taken = self._replaced or _has_taken_back(known, target, author)
        if taken and author.quotes and not shares_any(entry, " ".join(author.quotes)):
            raise Refused(UNLIKE)
        ground = describe_same_ground(find_same_ground(known, target, author))
        return ground or await self._find_near_withdrawn(known, target, _wording(entry), author)

    async def _find_near_withdrawn(
        self, known: Sequence[Withdrawal], target: Target, text: str, author: Author
    ) -> str:
        """Return why a lesson must be pending that may be a withdrawn one in other words. One that the owner
        has said since is fine, and so is an opposite."""
        taken = [each for each in known[-SHOWN:] if each.binds(target)]
        lessons = {lesson: each for each in taken for lesson in each.lessons if not is_opposite(text, lesson)}
        for lesson in await self._find_near(text, list(lessons)):
            found = lessons[lesson]
            if not any(states(text, [said.text]) for said in said_since(author, found)):
                return f"it is close to a lesson that was taken back (change {found.id})"
        return ""

    async def _find_near(self, text: str, entries: Sequence[str]) -> Sequence[str]:
        return await self._nearness.find(text, entries) if self._nearness else ()


def _check_kept(known: Sequence[Withdrawal], target: Target, entry: str, author: Author) -> None:
    found = find_kept(known, target, entry)
    if found and not any(said.at > found.at for said in author.said):
        raise Refused(
            f"Not changed: the user brought this entry back on {name_day(found)}. Change it only if the user "
            "asks for it again."
        )


def _sentences(texts: Sequence[str]) -> list[str]:
    return [text[start:end] for text in texts for start, end in sentences(text)]


def _has_taken_back(known: Sequence[Withdrawal], target: Target, author: Author) -> bool:
    """Tell whether a lesson that binds this target was taken back or replaced in the last weeks."""
    latest = max((said.at for said in author.said), default=None)
    return latest is not None and any(
        each.lessons and each.binds(target) and latest - each.at < _WEEKS for each in known
    )


def differences(draft: Draft) -> tuple[Sequence[str], Sequence[str]]:
    """Return the entries that a change of the journal adds, and those that it removes."""
    path = places.path_of(draft.target)
    return _differ(draft.before.get(path), draft.after.get(path))


@lru_cache(maxsize=16)  # called several times for a change
def _differ(before: bytes | None, after: bytes | None) -> tuple[Sequence[str], Sequence[str]]:
    old, new = entries_in(before), entries_in(after)
    return tuple(find_missing(new, old)), tuple(find_missing(old, new))


def _read_change(made: Sequence[Step], target: Target) -> ReadChange:
    """Return what a change of the journal adds and removes, or what a change of a skill makes of it."""
    if not places.is_journal(target):
        return frozenset((step.path, step.after) for step in made), ()
    new, gone = _compare(made)
    return tuple(new), tuple(gone)


def _is_same_change(one: ReadChange, other: ReadChange) -> bool:
    (old, old_gone), (new, new_gone) = one, other
    if isinstance(old, frozenset) or isinstance(new, frozenset):
        return old == new
    if len(old) != len(new) or old_gone != new_gone:
        return False
    return all(a == b or is_same(a, b) for a, b in zip(old, new, strict=True))


def _compare(made: Sequence[Step]) -> tuple[list[str], list[str]]:
    before = [entry for step in made for entry in entries_in(step.before)]
    after = [entry for step in made for entry in entries_in(step.after)]
    return find_missing(after, before), find_missing(before, after)


def _keep_pin(edit: journal.Edit, text: str) -> journal.Edit:
    """Pin what replaces a pinned entry, too. An agent cannot pin anything."""
    if not isinstance(edit, journal.Add | journal.ReplaceEntry):
        return edit
    replaced = journal.find_entry(text, edit.match) if isinstance(edit, journal.ReplaceEntry) else ""
    return replace(edit, text=validity.pin(journal.normalize(edit.text), on=validity.read(replaced).pinned))


def _date(edit: journal.Edit, author: Author, today: date) -> journal.Edit:
    """Give the owner's statement that something does not work an end. Raises Refused if it is not the
    owner's."""
    if not isinstance(edit, journal.Add | journal.ReplaceEntry):
        return edit
    wording = validity.read(journal.normalize(edit.text)).wording
    if not is_negative_claim(wording):
        return edit
    if not quotes(wording, author.quotes):
        raise Refused(CLAIM)
    return replace(edit, text=validity.limit(journal.normalize(edit.text), today))


def _check_claims(draft: Draft, author: Author) -> None:
    """Refuse a skill that says that something does not work, unless the owner has said so."""
    known = draft.before or bundled.files(places.name_of(draft.target))
    said = [each for each in _sentences(author.quotes) if is_negative_claim(each)]
    claims = find_claims(known, draft.after)
    if new := [each for each in claims if not any(shares_words(each, own) for own in said)]:
        raise Refused(f"{CLAIM_IN_SKILL}\n{list_entries(new)}")


def _wording(entry: str) -> str:
    """Return what the owner must have said, without a pin and the end date of a claim, which Hone adds."""
    wording = validity.read(entry).wording
    return wording if is_negative_claim(wording) else validity.pin(entry, on=False)


def _staying(
    edits: Sequence[tuple[Target, journal.Edit]], texts: Mapping[Target, str]
) -> dict[Target, list[str]]:
    """Return the entries that exist now and will exist after all of the edits. Raises Refused."""
    staying: dict[Target, list[str]] = {}
    for target, text in texts.items():
        own = [edit for each, edit in edits if each == target]
        after = frozenset(journal.entries(journal.apply(text, own, None)))
        staying[target] = [entry for entry in journal.entries(text) if entry in after]
    return staying


def _staying_beside(draft: Draft, texts: Mapping[Target, str]) -> list[str]:
    new, gone = differences(draft)
    others = [each for each in _scope(draft.target, texts) if each != draft.target]
    here = entries_in(draft.after.get(places.path_of(draft.target)))
    there = [entry for each in others for entry in journal.entries(texts[each])]
    return [entry for entry in (*here, *there) if entry not in new and entry not in gone]


def _scope(target: Target, known: Mapping[Target, object]) -> list[Target]:
    """Return where an entry could stand that is meant to hold at the same time: a project may differ."""
    return [each for each in (MEMORY, USER) if each in known] if target in (MEMORY, USER) else [target]


def _check_ground(text: str, said: Sequence[str]) -> None:
    """Refuse a lesson if the words it rests on state nothing and share no word with it: an agent that wants
    to save something finds a sentence for it."""
    states = any(find_cue(each) or tells_of_owner(each) for each in said)
    if said and not states and not shares_any(text, " ".join(said)):
        raise Refused(GROUNDLESS)


def _check_age(entry: str, since: Sequence[str], new: Sequence[str]) -> None:
    if not since and any(contradicts(entry, each) for each in new):
        raise Refused(
            "Not changed: this entry is newer than the words you name. Replace it only if the user has said "
            f"something else since, and quote that.\n{list_entries([entry])}"
        )
