"""The keeper: the only way to change what is known, for tools, commands, editors and undo.

Under a lock, the keeper merges the owner's edits, applies the edit, screens and judges it, records it and
publishes it. The ledger is the truth. If a process is killed between recording and publishing, the file on
disk is old, and the next process that reads it publishes it again.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec import Struct

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
    ChangeQuery,
    ChangeState,
    Entry,
    Ledger,
    Target,
    skill,
)
from hone.core.skill import ARCHIVED
from hone.core.value import replace
from hone.core.waiting import uninterrupted
from hone.files.tree import FileTree
from hone.knowledge import folding, journal, places
from hone.knowledge.admission import (
    LearningMode,
    Verdict,
    check,
    clean,
    confirm_quoted,
    judge,
    judge_routine,
    stricter,
)
from hone.knowledge.file_sync import FileSync
from hone.knowledge.folding import Batch, Draft, Files, Step, load_steps
from hone.knowledge.skills import bundled, folder
from hone.knowledge.skills.facts import facts, find_protection, new_lines, touches_scripts
from hone.knowledge.skills.naming import check_name
from hone.knowledge.staging import StagedLedger

OWNER = Author(Actor.OWNER)


class KeeperRules(Struct, frozen=True):
    """`limits` are characters by the part of the journal (0: switched off); `modes` by actor, `merges` for
    what the curator rewrites. `closed` says why nothing can be changed, if so."""

    limits: Mapping[str, int]
    modes: Mapping[Actor, LearningMode]
    closed: str = ""
    merges: LearningMode = LearningMode.ASK


Finish = Callable[[Sequence[Change], Mapping[str, bytes]], Awaitable[Sequence[Entry]]]
"""Records changes together with whatever must happen in the same transaction."""
MET = "it met a change that was made meanwhile"

DEFAULTS = KeeperRules({MEMORY: 2_200, USER: 1_375, PROJECT[:-1]: 2_200}, {})


Close = Callable[[Sequence[Change], Mapping[str, bytes], Sequence[str]], Awaitable[Sequence[Entry]]]
"""Like Finish, and with the reasons why batches were refused."""


T = TypeVar("T")
P = ParamSpec("P")


def exclusive(
    method: Callable[Concatenate["Keeper", P], Awaitable[T]],
) -> Callable[Concatenate["Keeper", P], Coroutine[Any, Any, T]]:
    """Run a change under the lock and to its end, whoever is interrupted. Refuse it where the keeper is
    closed."""

    @wraps(method)
    async def run(keeper: "Keeper", /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def work() -> T:
            if keeper.rules.closed:
                raise Refused(keeper.rules.closed)
            async with keeper.lock():
                return await method(keeper, *args, **kwargs)

        return await uninterrupted(work())

    return run


class Keeper:
    """Changes what is known. Without a `disk` nothing is published. `say` takes one plain sentence for the
    owner, as when a file was missing and was published again."""

    def __init__(
        self,
        ledger: Ledger,
        disk: FileTree | None,
        clock: Clock,
        say: Callable[[str], None],
        rules: KeeperRules = DEFAULTS,
    ) -> None:
        self.ledger = ledger
        self.rules = rules
        self._clock = clock
        self._say = say
        self.file_sync = FileSync(ledger, disk, clock, say, alone=bool(rules.closed)) if disk else None

    def close(self) -> None:
        if self.file_sync:
            self.file_sync.close()

    def stage(self) -> tuple["Keeper", StagedLedger]:
        """Return a keeper for changes that nobody else sees until `commit` makes them."""
        ledger = StagedLedger(self.ledger)
        return Keeper(ledger, None, self._clock, self._say, self.rules), ledger

    async def files(self, target: Target) -> Files:
        """Return what a target holds, the owner's edits by hand included. If its files cannot be read, what
        was known before still holds, and `say` tells so."""
        files = await folding.load(self.ledger, target)
        if self.file_sync is None:
            return files
        try:
            return await uninterrupted(self.file_sync.read(target, files))
        except StoreError as error:
            self._say(f"{error} Until then Hone goes by what it knew before.")
            return files

    async def text(self, target: Target) -> str:
        """Return a part of the journal."""
        return _text(await self.files(target), places.path_of(target))

    async def is_in_sync(self, target: Target) -> bool:
        """Return whether the files say what the ledger says. Raises StoreError if they cannot be read."""
        files = await folding.load(self.ledger, target)
        return self.file_sync is None or await self.file_sync.is_in_sync(target, files)

    async def is_standing(self, entry: Entry) -> bool:
        """Return whether a change has effect, or still waits for an answer."""
        if not entry.settled:
            return bool(entry.change.deltas)
        if entry.change.standing is ChangeState.PENDING:
            return False
        return not await self.is_standing(await self.ledger.entry(entry.settled))

    async def together(self, entry: Entry) -> Sequence[Entry]:
        """Return the changes that are answered or undone with this one, itself included, oldest first."""
        if not entry.change.group:
            return [entry]
        group = await self.ledger.entries(ChangeQuery(group=entry.change.group))
        return [each for each in reversed(group) if await self.is_standing(each)]

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Exclude every other writer of this home. Not to be cancelled."""
        return self.file_sync.lock() if self.file_sync else nullcontext()

    async def sync(self, target: Target) -> Files:
        """Take in the owner's edits by hand and return what the target holds then. Under the lock. Raises
        StoreError if a file cannot be read or used."""
        if self.file_sync:
            return await self.file_sync.sync(target)
        return await folding.load(self.ledger, target)

    async def adopt(self, names: Sequence[str]) -> None:
        """Record skills whose folders the owner has put there."""
        if self.file_sync is None:
            return
        try:
            await uninterrupted(self.file_sync.adopt(names))
        except StoreError as error:
            self._say(str(error))

    async def _publish(self, target: Target, files: Files) -> None:
        """Write the files of what is recorded. It stays recorded if the disk takes none: they come later."""
        if self.file_sync is None:
            return
        try:
            await self.file_sync.publish(target, files)
        except StoreError as error:
            self._say(f"It is recorded, but not printed yet: {error}")

    @exclusive
    async def note(
        self, edits: Sequence[tuple[Target, journal.Edit]], author: Author, kind: ChangeKind | None = None
    ) -> Sequence[Entry]:
        """Change the journal: all of the edits or none. Raises Refused or StoreError."""
        screened = [(target, *clean(edit)) for target, edit in edits]
        flags = [flag for *_, found in screened for flag in found]
        drafts = []
        for target in dict.fromkeys(target for target, _ in edits):
            own = [edit for each, edit, _ in screened if each == target]
            drafts.append(await self._draft_journal(target, own, kind))
        flags += [flag for draft in drafts for flag in check(draft.before, draft.after)]
        verdict = judge(author, self._mode(author), entries=_new_entries(drafts), flags=flags)
        return await self._record(drafts, author, verdict)

    async def _draft_journal(
        self, target: Target, edits: Sequence[journal.Edit], kind: ChangeKind | None
    ) -> Draft:
        before = await self.sync(target)
        path, limit = places.path_of(target), self.rules.limits[places.name_of(target)]
        after = journal.apply(_text(before, path), edits, limit)
        named = kind or (edits[0].kind if len(edits) == 1 else ChangeKind.BATCH)
        return Draft(target, named, before, {path: after.encode()})

    @exclusive
    async def edit_skill(self, name: str, edit: folder.Edit, author: Author) -> Entry:
        """Change a skill. Raises Refused, Conflict or StoreError."""
        edit, flags = clean(edit)
        before = await self._skill_files(name)
        cause = find_protection(name, facts(before) if before else None, author.actor)
        after = folder.apply(name, before, edit)
        odd, scripts = (*flags, *check(before, after)), bool(touches_scripts(before, after))
        verdict = judge(author, self._mode(author), entries=None, flags=odd, scripts=scripts)
        if cause and verdict.standing is ChangeState.ACTIVE:
            verdict = Verdict(ChangeState.PENDING, False, cause)
        verdict = confirm_quoted(verdict, new_lines(before, after), author)
        draft = Draft(skill(name), edit.kind, before, after)
        return (await self._record([draft], author, verdict))[0]

    async def _skill_files(self, name: str) -> Files:
        held = await self.sync(skill(check_name(name)))
        return held or (bundled.files(name) if name in bundled.names() else {})

    @exclusive
    async def wake(self, name: str) -> bool:
        """Restore a skill that was archived because nobody used it. Return False for any other."""
        before = await self._skill_files(name)
        if ARCHIVED not in before or not await self._is_aged(name):
            return False
        after = {path: data for path, data in before.items() if path != ARCHIVED}
        draft = Draft(skill(name), ChangeKind.WAKE, before, after, reason="it was used again")
        await self._record([draft], Author(Actor.CURATOR), Verdict(ChangeState.ACTIVE))
        return True

    async def _is_aged(self, name: str) -> bool:
        """Return whether ageing has archived it, and not a person or a merge."""
        for entry in await self.ledger.entries(ChangeQuery(target=skill(name))):
            change = entry.change
            came = any(each.path == ARCHIVED and each.before is None for each in change.deltas)
            if came and change.standing is ChangeState.ACTIVE:
                if change.kind is ChangeKind.APPROVE and change.about:
                    change = (await self.ledger.entry(change.about)).change
                return change.kind is ChangeKind.AGE
        return False

    @exclusive
    async def commit(self, staged: StagedLedger, finish: Finish) -> Sequence[Entry]:
        """Make what was staged, on what is there by now, in one transaction with `finish`. A change that
        meets a later one waits for the owner instead."""
        now: dict[Target, Files] = {}
        changes: list[Change] = []
        contents = dict(staged.contents_made)
        for change in staged.changes:
            if change.standing is ChangeState.PENDING:
                changes.append(change)
                continue
            target = change.target
            before = now[target] if target in now else await self.sync(target)
            try:
                self._spare(target, before, change.author.actor)
                after = self._replay(target, before, await load_steps(staged, change))
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
            await self._publish(target, files)
        return entries

    def _spare(self, target: Target, files: Files, actor: Actor) -> None:
        """Raises Refused for a skill that has come under protection since."""
        if (
            not places.is_journal(target)
            and files
            and find_protection(places.name_of(target), facts(files), actor)
        ):
            raise Refused(MET)

    @exclusive
    async def arrange(self, batches: Sequence[Batch], close: Close) -> Sequence[Entry]:
        """Make batches of moves, in one transaction with `close`. A batch that meets what was changed since
        it was thought of, or may not be, is refused whole."""
        changes: list[Change] = []
        contents: dict[str, bytes] = {}
        made: list[Draft] = []
        refused: list[str] = []
        for batch in batches:
            try:
                drafts, verdict = await self._draft_batch(batch)
                new, named = folding.changes(drafts, batch.author, verdict, folding.new_group())
            except (Refused, Conflict) as error:
                refused.append(str(error))
                continue
            changes += new
            contents |= named
            made += drafts if verdict.standing is ChangeState.ACTIVE else ()
        entries = await close(changes, contents, refused)
        for draft in made:
            await self._publish(draft.target, draft.after)
        return entries

    async def _draft_batch(self, batch: Batch) -> tuple[Sequence[Draft], Verdict]:
        drafts: list[Draft] = []
        flags: list[str] = []
        scripts = False
        for move in batch.moves:
            before = await self._skill_files(move.name)
            if before != move.before:
                raise Conflict(f"The skill {move.name} has changed meanwhile; nothing of it was done.")
            if cause := find_protection(move.name, facts(before) if before else None, batch.author.actor):
                raise Refused(f"Nothing of it was done: {cause}.")
            if gone := sorted(path for path in before if not path.startswith("@") and path not in move.after):
                raise Refused(f"The skill {move.name} would lose {', '.join(gone)}; nothing of it was done.")
            after = folder.apply(move.name, before, folder.SetFiles(move.after))
            flags += check(before, after)
            scripts = scripts or bool(touches_scripts(before, after))
            target = skill(move.name)
            drafts.append(Draft(target, move.kind, before, after, reason=move.reason, sources=move.sources))
        mode = self._mode(batch.author)
        if batch.counted:
            return drafts, judge_routine(batch.author, mode)
        mode = stricter(mode, self.rules.merges)
        return drafts, judge(batch.author, mode, entries=None, flags=flags, scripts=scripts)

    @exclusive
    async def undo(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """Take a change back and nothing that came later. Raises Refused where they cannot be told apart."""
        entry = await self.ledger.entry(id)
        if entry.change.standing is ChangeState.PENDING:
            raise Refused(f"Change {id} has not taken effect; turn it down with: hone reject {id}")
        if not await self.is_standing(entry):
            by = f"was already undone by change {entry.settled}" if entry.settled else "changed nothing"
            raise Refused(f"Change {id} {by}.")
        return await self._repeat(entry, ChangeKind.UNDO, author)

    @exclusive
    async def approve(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """Make what waits take effect, byte for byte as it was shown. Raises Refused if it no longer fits."""
        return await self._repeat(await self._waiting(id), ChangeKind.APPROVE, author)

    @exclusive
    async def reject(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """Turn down what waits, with all of its group."""
        changes = [
            Change(each.change.target, ChangeKind.REJECT, (), author, confirmed=True, about=each.id)
            for each in await self.together(await self._waiting(id))
        ]
        entries = await self.ledger.record(changes, {}, self._clock.now())
        return next(entry for entry in entries if entry.change.about == id)

    @exclusive
    async def confirm(self, id: ChangeId, author: Author) -> Entry:
        """Let what rests on nothing the owner said or did count as if it did: the owner's check has shown it.
        Raises Refused if it does not hold as it was made."""
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

    async def _repeat(self, entry: Entry, kind: ChangeKind, author: Author) -> Entry:
        """Replay a change, or take it back, on what is there now; all of its group or nothing."""
        drafts = [await self._draft_again(each, kind) for each in await self.together(entry)]
        group = folding.new_group() if entry.change.group else ""
        entries = await self._record(drafts, author, Verdict(ChangeState.ACTIVE, True, ""), group)
        return next(made for made in entries if made.change.about == entry.id)

    async def _draft_again(self, entry: Entry, kind: ChangeKind) -> Draft:
        target, made = entry.change.target, await load_steps(self.ledger, entry.change)
        before = await self.sync(target)
        if kind is ChangeKind.UNDO:
            made = tuple(step.reverse for step in made if step.before != step.after)
        elif entry.change.group and before != {
            each.path: each.before for each in made if each.before is not None
        }:
            raise Refused(f"{target} has changed since; nothing was changed.{await self._meanwhile(entry)}")
        try:
            after = self._replay(target, before, made)
        except Refused as error:
            raise Refused(f"{error}{await self._meanwhile(entry)}") from error
        return Draft(target, kind, before, after, about=entry.id)

    async def _meanwhile(self, entry: Entry) -> str:
        later = await self.ledger.entries(ChangeQuery(target=entry.change.target, after=entry.id))
        active = [
            str(each.id)
            for each in later
            if each.change.standing is ChangeState.ACTIVE and each.change.deltas
        ]
        return f"\nChanges since: {', '.join(reversed(active))}." if active else ""

    def _replay(self, target: Target, before: Files, made: Sequence[Step]) -> Files:
        if not places.is_journal(target):
            after = folding.replay(before, made, entries=False)
            return folder.apply(places.name_of(target), before, folder.SetFiles(after))
        after = folding.replay(before, made, entries=True)
        path, limit = places.path_of(target), self.rules.limits[places.name_of(target)]
        text = journal.apply(_text(before, path), [journal.SetText(_text(after, path))], limit)
        return {path: text.encode()} if path in after else {}

    def _mode(self, author: Author) -> LearningMode:
        return self.rules.modes.get(author.actor, LearningMode.AUTO)

    async def _record(
        self, drafts: Sequence[Draft], author: Author, verdict: Verdict, group: str = ""
    ) -> Sequence[Entry]:
        changes, contents = folding.changes(drafts, author, verdict, group)
        entries = await self.ledger.record(changes, contents, self._clock.now())
        if verdict.standing is ChangeState.ACTIVE:
            for draft in drafts:
                await self._publish(draft.target, draft.after)
        return entries


def _text(files: Files, path: str) -> str:
    return files.get(path, b"").decode()


def _new_entries(drafts: Sequence[Draft]) -> Sequence[str] | None:
    """Return the entries that are new. None if some go: that the owner once said a thing is no word for
    taking it back, so no quote can cover it."""
    new: list[str] = []
    for draft in drafts:
        path = places.path_of(draft.target)
        before, after = (journal.entries(_text(files, path)) for files in (draft.before, draft.after))
        if set(before) - set(after):
            return None
        new += [entry for entry in after if entry not in before]
    return new
