"""Prepare changes of the journal: apply them, compare them with what is known, and judge them.

Pending changes, in the journal or in a skill, can be judged again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import AlreadyKnown, Refused
from hone.core.ledger import MEMORY, USER, Author, ChangeKind, ChangeState, Target
from hone.core.value import replace
from hone.knowledge import journal, places, validity
from hone.knowledge.admission import FAULTS, FOREIGN, TRUSTED, check, clean, confirm_quoted, defer, judge
from hone.knowledge.cues import asks_to_change, is_negative_claim
from hone.knowledge.folding import Draft, Files, Loaded
from hone.knowledge.own_words import Edits, check_words, put_in_own_words
from hone.knowledge.quoting import quotes
from hone.knowledge.resemblance import gist
from hone.knowledge.skills.facts import facts, find_protection, new_lines, touches_scripts
from hone.knowledge.verdicts import AGENTS, LearningMode, Verdict
from hone.knowledge.vetting import Vetted, Vetting


class Prepared(Struct, frozen=True):
    """A change of the journal that is ready to be recorded."""

    drafts: Sequence[Draft]
    verdict: Verdict


class Noting:
    """`load` returns what parts of the journal hold, under the lock; `limits` are characters by part."""

    def __init__(
        self,
        load: Callable[[Sequence[Target]], Awaitable[Loaded]],
        vetting: Vetting,
        clock: Clock,
        limits: Mapping[str, int],
    ) -> None:
        self._load = load
        self._vetting = vetting
        self._clock = clock
        self._limits = limits

    async def prepare(
        self, edits: Edits, author: Author, kind: ChangeKind | None, mode: LearningMode
    ) -> Prepared:
        """Prepare all of the edits or none. If an agent's words would have to wait, the change takes effect
        in the owner's words. Raises Refused or StoreError."""
        made = await self._judge(edits, author, kind, mode)
        if author.actor in AGENTS and made.verdict.cause == FOREIGN:
            made = await self._reword(edits, author, kind, mode) or made
        return made

    async def _reword(
        self, edits: Edits, author: Author, kind: ChangeKind | None, mode: LearningMode
    ) -> Prepared | None:
        """Return the change in the owner's words if it takes effect that way; None if none does and it may be
        pending. Raises Refused if it is known, or if the agent should try other words."""
        if own := put_in_own_words(edits, author):
            try:
                made = await self._judge(own, author, kind, mode)
            except AlreadyKnown:
                raise
            except Refused:
                return None
            if made.verdict.standing is ChangeState.ACTIVE:
                return made
        if mode is LearningMode.AUTO:
            check_words(edits, author)
        return None

    async def _judge(
        self, edits: Edits, author: Author, kind: ChangeKind | None, mode: LearningMode
    ) -> Prepared:
        screened = [(target, *clean(edit)) for target, edit in edits]
        flags = [flag for *_, found in screened for flag in found]
        wanted = [(target, edit) for target, edit, _ in screened]
        vetted = author.actor in AGENTS
        held = await self._load(_list_compared(edits, author))
        self._vetting.withdrawals.pass_over(held)
        texts = _texts(held)
        if vetted:
            wanted = await self._vetting.settle(wanted, texts, author, self._today)
        drafts = []
        for target in dict.fromkeys(target for target, _ in wanted):
            own = [edit for each, edit in wanted if each == target]
            drafts.append(self._draft(target, held.files[target], own, kind))
        flags += [flag for draft in drafts for flag in check(draft.before, draft.after)]
        found = Vetted((), {})
        if vetted:
            found = await self._vetting.examine(drafts, texts, author, held.latest)
        verdict = judge(author, mode, entries=found.entries, gone=found.gone, flags=flags)
        return Prepared(drafts, defer(verdict, found.cause))

    async def judge_again(self, drafts: Sequence[Draft], author: Author, mode: LearningMode) -> Verdict:
        """Judge a pending change as if it were made now. Raises Refused unless it takes effect."""
        if len(drafts) != 1:
            raise Refused("Changes that were made together wait for the user.")
        draft = drafts[0]
        flags = check(draft.before, draft.after)
        if places.is_journal(draft.target):
            held = await self._load(list(dict.fromkeys((MEMORY, USER, draft.target))))
            found = await self._vetting.examine(drafts, _texts(held), author, held.latest)
            verdict = judge(author, mode, entries=found.entries, gone=found.gone, flags=flags)
            verdict = defer(verdict, found.cause)
        else:
            verdict = await self._judge_skill(draft, author, mode, flags)
        if verdict.standing is not ChangeState.ACTIVE:
            raise Refused(f"Change {draft.about} keeps waiting: {verdict.cause}.")
        return replace(verdict, cause=TRUSTED)

    async def _judge_skill(
        self, draft: Draft, author: Author, mode: LearningMode, flags: Sequence[str]
    ) -> Verdict:
        name, before, after = places.name_of(draft.target), draft.before, draft.after
        known = facts(before) if before else None
        asked = asks_to_change(name, author.quotes)
        cause = find_protection(name, known, author.actor, asked=asked)
        scripts = bool(touches_scripts(before, after))
        verdict = judge(author, mode, entries=None, flags=flags, scripts=scripts)
        cause = cause or await self._vetting.examine_skill(draft, author)
        return confirm_quoted(defer(verdict, cause), new_lines(before, after), author)

    def _draft(
        self, target: Target, before: Files, edits: Sequence[journal.Edit], kind: ChangeKind | None
    ) -> Draft:
        path, limit = places.path_of(target), self._limits[places.name_of(target)]
        after = journal.apply(_text(before, path), edits, limit)
        named = kind or (edits[0].kind if len(edits) == 1 else ChangeKind.BATCH)
        return Draft(target, named, before, {path: after.encode()})

    @property
    def _today(self) -> date:
        return self._clock.now().astimezone().date()


def _list_compared(edits: Edits, author: Author) -> Sequence[Target]:
    """Return the parts of the journal that a change needs. An agent's entry is compared with those of other
    parts."""
    compared = (MEMORY, USER) if author.actor in AGENTS else ()
    return list(dict.fromkeys((*compared, *(target for target, _ in edits))))


def read_ahead(edits: Edits, author: Author) -> None:
    """Compute what an agent's change will need before others have to wait: the results are cached until the
    change asks for them under the lock."""
    for edit in (edit for _, edit in edits if author.actor in AGENTS):
        if isinstance(edit, journal.Add | journal.ReplaceEntry):
            with suppress(Refused, *FAULTS):  # they come up again, and are handled there
                words = validity.read(journal.normalize(clean(edit)[0].text)).wording
                gist(words), is_negative_claim(words), quotes(words, author.quotes)


def _texts(held: Loaded) -> Mapping[Target, str]:
    return {target: _text(files, places.path_of(target)) for target, files in held.files.items()}


def _text(files: Files, path: str) -> str:
    return files.get(path, b"").decode()
