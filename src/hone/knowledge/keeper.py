"""The one way to change what is known: whoever acts, with a tool, a command, an editor or an undo.

Under a lock: take in what the owner edited by hand, apply the edit, screen and judge it, record it, publish
it. The record is the truth; a process killed between record and publication leaves an old printout, which the
next one to look at it prints again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace

from hone.core.clock import Clock
from hone.core.errors import Conflict, Refused, StoreError
from hone.core.ledger import (
    MEMORY,
    PROJECT,
    USER,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeState,
    Entry,
    Ledger,
    Target,
    skill,
)
from hone.core.skill import ARCHIVED
from hone.core.value import dataclass
from hone.core.waiting import uninterrupted
from hone.files.tree import FileTree
from hone.knowledge import drafts as drafting
from hone.knowledge import folding, journal, places
from hone.knowledge.admission import LearningMode, Verdict, judge, routine, stricter
from hone.knowledge.cleaning import checked, cleaned
from hone.knowledge.drafts import Batch, Draft
from hone.knowledge.file_sync import FileSync, Publisher
from hone.knowledge.folding import Files, Step
from hone.knowledge.skills import bundled, folder
from hone.knowledge.skills.facts import facts, protected, touches_scripts
from hone.knowledge.skills.naming import shape
from hone.knowledge.staging import StagedLedger, UnpublishedFiles

OWNER = Author(Actor.OWNER)


@dataclass(frozen=True, slots=True)
class KeeperRules:
    """`limits` are characters by the part of the journal (0: switched off); `modes` by actor, `merges` for
    what the curator rewrites. `closed` says why nothing can be changed, if so."""

    limits: Mapping[str, int]
    modes: Mapping[Actor, LearningMode]
    closed: str = ""
    merges: LearningMode = LearningMode.ASK


Finish = Callable[[Sequence[Change], Mapping[str, bytes]], Awaitable[Sequence[Entry]]]
"""Records changes together with whatever must happen in the same transaction."""
CONFIRM = "confirm"
MET = "it met a change that was made meanwhile"

DEFAULTS = KeeperRules({MEMORY: 2_200, USER: 1_375, PROJECT[:-1]: 2_200}, {})


Close = Callable[[Sequence[Change], Mapping[str, bytes], Sequence[str]], Awaitable[Sequence[Entry]]]
"""Like Finish, and with the reasons why batches were refused."""


class Keeper:
    """`say` takes one plain sentence for the owner, as when a file was missing and was printed again."""

    def __init__(
        self,
        ledger: Ledger,
        disk: FileTree,
        clock: Clock,
        say: Callable[[str], None],
        rules: KeeperRules = DEFAULTS,
    ) -> None:
        self.ledger = ledger
        self.rules = rules
        self._clock = clock
        self._say = say
        self.press: Publisher = FileSync(ledger, disk, clock, say, alone=bool(rules.closed))

    def close(self) -> None:
        self.press.close()

    async def note(
        self, edits: Sequence[tuple[Target, journal.Edit]], author: Author, kind: ChangeKind | None = None
    ) -> Sequence[Entry]:
        """Changes the journal: all of the edits or none. Raises Refused or StoreError."""
        return await uninterrupted(self._note(edits, author, kind))

    async def shelve(self, name: str, edit: folder.Edit, author: Author) -> Entry:
        """Changes a skill. Raises Refused, Conflict or StoreError."""
        return await uninterrupted(self._shelve(name, edit, author))

    async def undo(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """Takes a change back and nothing that came later. Raises Refused where they cannot be told apart."""
        return await uninterrupted(self._undo(id, author))

    async def approve(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """What waits takes effect, byte for byte as it was shown. Raises Refused if it no longer fits."""
        return await uninterrupted(self._approve(id, author))

    async def reject(self, id: ChangeId, author: Author = OWNER) -> Entry:
        return await uninterrupted(self._reject(id, author))

    async def confirm(self, id: ChangeId, author: Author) -> Entry:
        """What rests on nothing the owner said or did counts as if it did: the owner's check has shown it.
        Raises Refused if it does not hold as it was made."""
        return await uninterrupted(self._confirm(id, author))

    async def files(self, target: Target) -> Files:
        """What a target holds, with what the owner has edited by hand. If its files cannot be read, what was
        known before goes on to hold, and `say` tells so."""
        return await uninterrupted(self._read(target))

    async def text(self, target: Target) -> str:
        """A part of the journal."""
        return _text(await self.files(target), places.path_of(target))

    async def adopt(self, names: Sequence[str]) -> None:
        """Skills whose folders the owner has put there become known."""
        await uninterrupted(self._adopt(names))

    def staged(self) -> tuple["Keeper", StagedLedger]:
        """The same keeper, for changes that nobody else sees until `settle` makes them."""
        apart, ledger = copy(self), StagedLedger(self.ledger)
        apart.ledger, apart.press = ledger, UnpublishedFiles(ledger)
        return apart, ledger

    async def settle(self, staged: StagedLedger, finish: Finish) -> Sequence[Entry]:
        """Makes what was staged, on what is there by now, in one transaction with `finish`. A change that
        meets a later one waits for the owner instead."""
        return await uninterrupted(self._settle(staged, finish))

    async def arrange(self, batches: Sequence[Batch], close: Close) -> Sequence[Entry]:
        """Makes batches of moves, in one transaction with `close`. A batch that meets what was changed since
        it was thought of, or may not be, is refused whole."""
        return await uninterrupted(self._arrange(batches, close))

    async def wake(self, name: str) -> bool:
        """What was put away because nobody used it comes back when somebody does. False for any other."""
        return await uninterrupted(self._wake(name))

    async def _note(
        self, edits: Sequence[tuple[Target, journal.Edit]], author: Author, kind: ChangeKind | None
    ) -> Sequence[Entry]:
        screened = [(target, *cleaned(edit)) for target, edit in edits]
        flags = [flag for *_, found in screened for flag in found]
        async with self._open():
            drafts = []
            for target in dict.fromkeys(target for target, _ in edits):
                own = [edit for each, edit, _ in screened if each == target]
                drafts.append(await self._noted(target, own, kind))
            flags += [flag for draft in drafts for flag in checked(draft.before, draft.after)]
            verdict = judge(author, self._mode(author), entries=_told(drafts), flags=flags)
            return await self._record(drafts, author, verdict)

    async def _noted(self, target: Target, edits: Sequence[journal.Edit], kind: ChangeKind | None) -> Draft:
        before = await self.press.taken_in(target)
        path, limit = places.path_of(target), self.rules.limits[places.name_of(target)]
        after = journal.apply(_text(before, path), edits, limit)
        named = kind or (edits[0].kind if len(edits) == 1 else ChangeKind.BATCH)
        return Draft(target, named, before, {path: after.encode()})

    async def _shelve(self, name: str, edit: folder.Edit, author: Author) -> Entry:
        target = skill(name)
        edit, flags = cleaned(edit)
        async with self._open():
            before = await self._shelved(name)
            cause = protected(name, facts(before) if before else None, author.actor)
            after = folder.apply(name, before, edit)
            odd, scripts = (*flags, *checked(before, after)), bool(touches_scripts(before, after))
            verdict = judge(author, self._mode(author), entries=None, flags=odd, scripts=scripts)
            if cause and verdict.standing is ChangeState.ACTIVE:
                verdict = Verdict(ChangeState.PENDING, False, cause)
            draft = Draft(target, edit.kind, before, after)
            return (await self._record([draft], author, verdict))[0]

    async def _shelved(self, name: str) -> Files:
        held = await self.press.taken_in(skill(shape(name)))
        return held or (bundled.files(name) if name in bundled.names() else {})

    async def _undo(self, id: ChangeId, author: Author) -> Entry:
        async with self._open():
            entry = await self.ledger.entry(id)
            if entry.change.standing is ChangeState.PENDING:
                raise Refused(f"Change {id} has not taken effect; turn it down with: hone reject {id}")
            if not await self.is_standing(entry):
                by = f"was already undone by change {entry.settled}" if entry.settled else "changed nothing"
                raise Refused(f"Change {id} {by}.")
            return await self._resettle(entry, ChangeKind.UNDO, author)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        """Whoever changes something is alone with it."""
        if self.rules.closed:
            raise Refused(self.rules.closed)
        async with self.press.locked():
            yield

    async def _settle(self, staged: StagedLedger, finish: Finish) -> Sequence[Entry]:
        async with self._open():
            now: dict[Target, Files] = {}
            changes: list[Change] = []
            contents = dict(staged.contents_made)
            for change in staged.changes:
                if change.standing is ChangeState.PENDING:
                    changes.append(change)
                    continue
                target = change.target
                before = now[target] if target in now else await self.press.taken_in(target)
                try:
                    self._spare(target, before, change.author.actor)
                    after = self._applied(target, before, await _steps(staged, change))
                except Refused:
                    changes.append(replace(change, standing=ChangeState.PENDING, confirmed=False, cause=MET))
                    continue
                deltas, named = folding.deltas(folding.steps(before, after))
                if deltas:
                    changes.append(replace(change, deltas=deltas))
                    contents |= named
                    now[target] = after
            entries = await finish(changes, contents)
            for target, files in now.items():
                await self._print(target, files)
            return entries

    def _spare(self, target: Target, files: Files, actor: Actor) -> None:
        """Raises Refused for a skill that has come under protection since."""
        if not places.is_journal(target) and files and protected(places.name_of(target), facts(files), actor):
            raise Refused(MET)

    async def is_standing(self, entry: Entry) -> bool:
        """Whether a change has effect, or still waits for an answer."""
        if not entry.settled:
            return bool(entry.change.deltas)
        if entry.change.standing is ChangeState.PENDING:
            return False
        return not await self.is_standing(await self.ledger.entry(entry.settled))

    async def _arrange(self, batches: Sequence[Batch], close: Close) -> Sequence[Entry]:
        async with self._open():
            changes: list[Change] = []
            contents: dict[str, bytes] = {}
            made: list[Draft] = []
            refused: list[str] = []
            for batch in batches:
                try:
                    drafts, verdict = await self._drafted(batch)
                    new, named = drafting.changes(drafts, batch.author, verdict, drafting.named())
                except (Refused, Conflict) as error:
                    refused.append(str(error))
                    continue
                changes += new
                contents |= named
                made += drafts if verdict.standing is ChangeState.ACTIVE else ()
            entries = await close(changes, contents, refused)
            for draft in made:
                await self._print(draft.target, draft.after)
            return entries

    async def _drafted(self, batch: Batch) -> tuple[Sequence[Draft], Verdict]:
        drafts: list[Draft] = []
        flags: list[str] = []
        scripts = False
        for move in batch.moves:
            before = await self._shelved(move.name)
            if before != move.before:
                raise Conflict(f"The skill {move.name} has changed meanwhile; nothing of it was done.")
            if cause := protected(move.name, facts(before) if before else None, batch.author.actor):
                raise Refused(f"Nothing of it was done: {cause}.")
            if gone := sorted(path for path in before if not path.startswith("@") and path not in move.after):
                raise Refused(f"The skill {move.name} would lose {', '.join(gone)}; nothing of it was done.")
            after = folder.apply(move.name, before, folder.SetFiles(move.after))
            flags += checked(before, after)
            scripts = scripts or bool(touches_scripts(before, after))
            target = skill(move.name)
            drafts.append(Draft(target, move.kind, before, after, reason=move.reason, sources=move.sources))
        mode = self._mode(batch.author)
        if batch.counted:
            return drafts, routine(batch.author, mode)
        mode = stricter(mode, self.rules.merges)
        return drafts, judge(batch.author, mode, entries=None, flags=flags, scripts=scripts)

    async def _wake(self, name: str) -> bool:
        async with self._open():
            before = await self._shelved(name)
            if ARCHIVED not in before or not await self._is_aged(name):
                return False
            after = {path: data for path, data in before.items() if path != ARCHIVED}
            draft = Draft(skill(name), ChangeKind.WAKE, before, after, reason="it was used again")
            await self._record([draft], Author(Actor.CURATOR), Verdict(ChangeState.ACTIVE))
            return True

    async def _is_aged(self, name: str) -> bool:
        """Whether it was ageing that put it away, and not a person or a merge."""
        for entry in await self.ledger.entries(target=skill(name)):
            change = entry.change
            came = any(each.path == ARCHIVED and each.before is None for each in change.deltas)
            if came and change.standing is ChangeState.ACTIVE:
                approved = change.kind is ChangeKind.APPROVE and change.about
                origin = (
                    (await self.ledger.entry(change.about)).change if approved and change.about else change
                )
                return origin.kind is ChangeKind.AGE
        return False

    async def _approve(self, id: ChangeId, author: Author) -> Entry:
        async with self._open():
            return await self._resettle(await self._waiting(id), ChangeKind.APPROVE, author)

    async def _reject(self, id: ChangeId, author: Author) -> Entry:
        async with self._open():
            group = await self.together(await self._waiting(id))
            changes = [
                Change(each.change.target, ChangeKind.REJECT, (), author, confirmed=True, about=each.id)
                for each in group
            ]
            entries = await self.ledger.record(changes, {}, self._clock.now())
            return next(entry for entry in entries if entry.change.about == id)

    async def together(self, entry: Entry) -> Sequence[Entry]:
        """The changes that are settled with this one, itself included, oldest first."""
        if not entry.change.group:
            return [entry]
        group = await self.ledger.entries(group=entry.change.group)
        return [each for each in reversed(group) if await self.is_standing(each)]

    async def _confirm(self, id: ChangeId, author: Author) -> Entry:
        async with self._open():
            entry = await self.ledger.entry(id)
            if entry.settled or entry.change.confirmed or entry.change.standing is ChangeState.PENDING:
                raise Refused(f"Change {id} is not one that could be confirmed.")
            change = Change(entry.change.target, ChangeKind.CONFIRM, (), author, confirmed=True, about=id)
            return (await self.ledger.record([change], {}, self._clock.now()))[0]

    async def _waiting(self, id: ChangeId) -> Entry:
        entry = await self.ledger.entry(id)
        if entry.change.standing is not ChangeState.PENDING:
            raise Refused(f"Change {id} does not wait for an answer; it took effect when it was made.")
        if entry.settled:
            settled = await self.ledger.entry(entry.settled)
            raise Refused(f"Change {id} was already answered: {settled.change.kind}, change {settled.id}.")
        return entry

    def _mode(self, author: Author) -> LearningMode:
        return self.rules.modes.get(author.actor, LearningMode.AUTO)

    async def _resettle(self, entry: Entry, kind: ChangeKind, author: Author) -> Entry:
        """Replays a change, or takes it back, on what is there now; all of its group or nothing."""
        group = entry.change.group
        drafts = [await self._redrafted(each, kind) for each in await self.together(entry)]
        verdict = Verdict(ChangeState.ACTIVE, True, "")
        entries = await self._record(drafts, author, verdict, drafting.named() if group else "")
        return next(made for made in entries if made.change.about == entry.id)

    async def _redrafted(self, entry: Entry, kind: ChangeKind) -> Draft:
        target, made = entry.change.target, await _steps(self.ledger, entry.change)
        before = await self.press.taken_in(target)
        if kind is ChangeKind.UNDO:
            made = [step.reverse for step in made if step.before != step.after]
        elif entry.change.group and before != {
            each.path: each.before for each in made if each.before is not None
        }:
            raise Refused(f"{target} has changed since; nothing was changed.{await self._meanwhile(entry)}")
        try:
            after = self._applied(target, before, made)
        except Refused as error:
            raise Refused(f"{error}{await self._meanwhile(entry)}") from error
        return Draft(target, kind, before, after, about=entry.id)

    def _applied(self, target: Target, before: Files, made: Sequence[Step]) -> Files:
        if not places.is_journal(target):
            after = folding.replayed(before, made, entries=False)
            return folder.apply(places.name_of(target), before, folder.SetFiles(after))
        after = folding.replayed(before, made, entries=True)
        path, limit = places.path_of(target), self.rules.limits[places.name_of(target)]
        text = journal.apply(_text(before, path), [journal.SetText(_text(after, path))], limit)
        return {path: text.encode()} if path in after else {}

    async def _adopt(self, names: Sequence[str]) -> None:
        try:
            async with self.press.locked():
                await self.press.adopt(names)
        except StoreError as error:
            self._say(str(error))

    async def _meanwhile(self, entry: Entry) -> str:
        later = await self.ledger.entries(target=entry.change.target, after=entry.id)
        active = [
            str(each.id)
            for each in later
            if each.change.standing is ChangeState.ACTIVE and each.change.deltas
        ]
        return f"\nChanges since: {', '.join(reversed(active))}." if active else ""

    async def _record(
        self, drafts: Sequence[Draft], author: Author, verdict: Verdict, group: str = ""
    ) -> Sequence[Entry]:
        changes, contents = drafting.changes(drafts, author, verdict, group)
        entries = await self.ledger.record(changes, contents, self._clock.now())
        if verdict.standing is ChangeState.ACTIVE:
            for draft in drafts:
                await self._print(draft.target, draft.after)
        return entries

    async def _print(self, target: Target, files: Files) -> None:
        """What is recorded stays recorded: a disk that takes no file only delays the printout."""
        try:
            await self.press.publish(target, files)
        except StoreError as error:
            self._say(f"It is recorded, but not printed yet: {error}")

    async def _read(self, target: Target) -> Files:
        files = await self.press.held(target)
        try:
            if await self.press.is_quiet(target, files):
                return files
            async with self.press.locked():
                return await self.press.taken_in(target)
        except StoreError as error:
            self._say(f"{error} Until then Hone goes by what it knew before.")
            return files


async def _steps(ledger: Ledger, change: Change) -> Sequence[Step]:
    named = {each for delta in change.deltas for each in (delta.before, delta.after) if each}
    contents = await ledger.contents(named)
    return [
        Step(delta.path, *(contents[each] if each else None for each in (delta.before, delta.after)))
        for delta in change.deltas
    ]


def _text(files: Files, path: str) -> str:
    return files.get(path, b"").decode()


def _told(drafts: Sequence[Draft]) -> Sequence[str] | None:
    """The entries that are new. None if some go: that the owner once said a thing is no word for taking it
    back, so no quote can cover it."""
    new: list[str] = []
    for draft in drafts:
        path = places.path_of(draft.target)
        before, after = (journal.entries(_text(files, path)) for files in (draft.before, draft.after))
        if set(before) - set(after):
            return None
        new += [entry for entry in after if entry not in before]
    return new
