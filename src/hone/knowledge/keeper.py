"""The keeper: the only way to change what is known, for tools, commands, editors and undo.

Under a lock, the keeper merges the owner's edits, applies the edit, screens and judges it, records it and
publishes it. The ledger is the truth. If a process is killed between recording and publishing, the file on
disk is old, and the next process that reads it publishes it again.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from hone.core.clock import Clock
from hone.core.errors import Conflict, Refused, StoreError
from hone.core.ledger import (
    START,
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
from hone.core.loading import import_object
from hone.core.ports import Sessions
from hone.core.skill import SkillOrigin
from hone.core.value import replace
from hone.core.waiting import repeat, uninterrupted
from hone.files.tree import FileTree
from hone.knowledge import deferred, folding, journal, places
from hone.knowledge.file_sync import FileSync
from hone.knowledge.folding import Batch, Draft, Files, Loaded, Step, load_steps
from hone.knowledge.skills import bundled, folder
from hone.knowledge.skills.facts import facts, find_protection, new_lines, split_facts, touches_scripts
from hone.knowledge.skills.naming import check_name
from hone.knowledge.staging import StagedLedger
from hone.knowledge.verdicts import AGENTS, DEFAULTS, KeeperRules, LearningMode, Verdict

if TYPE_CHECKING:
    from hone.core.embedding import Meanings
    from hone.knowledge.copies import Copies
    from hone.knowledge.noting import Noting
    from hone.knowledge.own_words import Edits
    from hone.knowledge.served import ServedKnowledge
    from hone.knowledge.vetting import SharedEntries, Vetting
    from hone.knowledge.withdrawn import Withdrawals

OWNER = Author(Actor.OWNER)

Finish = Callable[[Sequence[Change], Mapping[str, bytes]], Awaitable[Sequence[Entry]]]
"""Records changes together with whatever belongs in the same transaction."""
Close = Callable[[Sequence[Change], Mapping[str, bytes], Sequence[str]], Awaitable[Sequence[Entry]]]
"""Like Finish, with the reasons why batches were refused."""
MET = "it met a change that was made meanwhile"

T = TypeVar("T")
P = ParamSpec("P")


def exclusive(
    method: Callable[Concatenate["Keeper", P], Awaitable[T]],
) -> Callable[Concatenate["Keeper", P], Coroutine[Any, Any, T]]:
    """Run a change under the lock and to its end, even if the caller is interrupted."""

    @wraps(method)
    async def run(keeper: "Keeper", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await uninterrupted(keeper.attempt(lambda: method(keeper, *args, **kwargs)))

    return run


class Keeper:
    """Changes what is known. Without a `disk` nothing is published, and copies for other agents need one.
    `say` takes one plain sentence for the owner, for instance that a missing file was published again. With
    `meanings`, lessons that share no words are compared, too, and with `sessions` the owner's words that they
    were made of. `shared` returns what others share with the owner: no agent copies that into the journal."""

    def __init__(
        self,
        ledger: Ledger,
        disk: "FileTree | ServedKnowledge | None",
        clock: Clock,
        say: Callable[[str], None],
        rules: KeeperRules = DEFAULTS,
        meanings: "Meanings | None" = None,
        sessions: Sessions | None = None,
        shared: "SharedEntries | None" = None,
    ) -> None:
        self.ledger = ledger
        self.rules = rules
        self._clock = clock
        self._say = say
        self._meanings = meanings
        self._sessions = sessions
        self._shared = shared
        self._recorded: Mapping[str, bytes] = {}  # contents of the last changes, by digest
        self.file_sync = (
            FileSync(ledger, disk, clock, say, alone=bool(rules.closed))
            if isinstance(disk, FileTree)
            else disk
        )

    @cached_property
    def _vetting(self) -> "Vetting":
        return deferred.vetting.Vetting(self.ledger, self._meanings, self._sessions, self._shared)

    @cached_property
    def _noting(self) -> "Noting":
        return deferred.noting.Noting(self._load, self._vetting, self._clock, self.rules.limits)

    @property
    def withdrawals(self) -> "Withdrawals":
        """What the owner took back."""
        return self._vetting.withdrawals

    async def settle(self) -> None:
        """Write the files that still lag behind the ledger."""
        if self.file_sync:
            await self.file_sync.settle()

    def close(self) -> None:
        if self.file_sync:
            self.file_sync.close()

    def stage(self) -> tuple["Keeper", StagedLedger]:
        """Return a keeper for changes that nobody else sees until `commit` makes them."""
        ledger = StagedLedger(self.ledger)
        compared = (self._meanings, self._sessions, self._shared)
        return Keeper(ledger, None, self._clock, self._say, self.rules, *compared), ledger

    async def files(self, target: Target) -> Files:
        """Return what a target holds, the owner's manual edits included. If its files cannot be read, the
        previous content still holds, and `say` reports that."""
        files = await folding.load(self.ledger, target)
        if self.file_sync is None or places.is_outside(target):
            return files
        try:
            return await uninterrupted(self.file_sync.read(target, files))
        except StoreError as error:
            self._say(f"{error} Until then Hone goes by what it knew before.")
            return files

    async def text(self, target: Target) -> str:
        """Return a part of the journal."""
        return _text(await self.files(target), places.path_of(target))

    async def texts_after(self, made: Sequence[Entry]) -> Mapping[Target, str]:
        """Return the parts of the journal in which changes took effect, as the last of them left each."""
        return await folding.load_after(self.ledger, made, self._recorded)

    async def is_in_sync(self, target: Target) -> bool:
        """Tell whether the files match the ledger. Raises StoreError if they cannot be read."""
        files = await folding.load(self.ledger, target)
        if self.file_sync is None or places.is_outside(target):
            return True
        return await self.file_sync.is_in_sync(target, files)

    async def is_standing(self, entry: Entry) -> bool:
        """Return whether a change has effect, or still waits for an answer."""
        return await folding.is_standing(self.ledger, entry)

    async def together(self, entry: Entry) -> Sequence[Entry]:
        """Return the changes that are answered or undone with this one, including itself, oldest first."""
        return await folding.find_group(self.ledger, entry)

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Exclude every other writer of this home. Do not cancel it."""
        return self.file_sync.lock() if self.file_sync else nullcontext()

    async def attempt(self, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change under the lock. Repeat it if another machine was faster."""
        if self.rules.closed:
            raise Refused(self.rules.closed)

        async def work() -> T:
            async with self.lock():
                return await change()

        return await repeat(work, self.file_sync.tries if self.file_sync else 1)

    async def sync(self, target: Target) -> Files:
        """Merge the owner's manual edits and return what the target then holds. Hold the lock. Raises
        StoreError if a file cannot be read or used, and Refused if a person changed a copy elsewhere."""
        if self.file_sync and places.is_copy(target):
            await self._copies(self.file_sync).check(target)
        elif self.file_sync and not places.is_item(target):
            return await self.file_sync.sync(target)
        return await folding.load(self.ledger, target)

    async def _load(self, targets: Sequence[Target]) -> Loaded:
        """Like `sync`, for parts of the journal whose files may follow later."""
        if self.file_sync is None:
            return Loaded({target: await folding.load(self.ledger, target) for target in targets})
        return await self.file_sync.load(targets, self.rules.lag)

    async def adopt(self, names: Sequence[str]) -> None:
        """Record skills whose folders the owner has added."""
        if self.file_sync is None:
            return
        try:
            await uninterrupted(self.file_sync.adopt(names))
        except StoreError as error:
            self._say(str(error))

    async def _publish(self, target: Target, files: Files) -> None:
        """Write the files of what is recorded. If that fails, the files follow later."""
        if self.file_sync is None or places.is_item(target):
            return
        try:
            if places.is_copy(target):
                files = await folding.load(self.ledger, target)  # another process may have been faster
                await self._copies(self.file_sync).publish(target, files)
            else:
                await self.file_sync.publish(target, files)
        except StoreError as error:
            self._say(f"It is recorded, but not printed yet: {error}")

    def _copies(self, file_sync: "FileSync | ServedKnowledge") -> "Copies":
        made: Copies = import_object("hone.knowledge.copies:Copies")(self.ledger, file_sync.aside)
        return made

    @exclusive
    async def share(self, target: Target, files: Files, author: Author) -> Entry | None:
        """Let a copy outside the home hold these files; None removes it. Return None if that was already
        recorded. Raises Refused if a person wrote or changed what is there."""
        before = await self.sync(target)
        if self.file_sync:
            await self._copies(self.file_sync).check(target, files)
        if before == files:
            await self._publish(target, files)
            return None
        draft = Draft(target, ChangeKind.INSTALL if files else ChangeKind.UNINSTALL, before, files)
        return (await self._record([draft], author, Verdict(ChangeState.ACTIVE, True, "")))[0]

    async def note(
        self, edits: "Edits", author: Author, kind: ChangeKind | None = None, *, moved: ChangeId | None = None
    ) -> Sequence[Entry]:
        """Change the journal: all of the edits or none. If they move an entry that change `moved` added, they
        are undone together, too. Raises Refused or StoreError."""
        deferred.noting.read_ahead(edits, author)
        return await self._note(edits, author, kind, moved)

    @exclusive
    async def _note(
        self, edits: "Edits", author: Author, kind: ChangeKind | None, moved: ChangeId | None
    ) -> Sequence[Entry]:
        made = await self._noting.prepare(edits, author, kind, self._mode(author))
        # An entry that replaces several is undone as one.
        is_wider = len(made.drafts) > len({target for target, _ in edits})
        group = folding.new_group() if is_wider or moved else ""
        drafts = [replace(each, sources=(moved,)) for each in made.drafts] if moved else made.drafts
        lag = self.rules.lag if author.actor in AGENTS else 0
        return await self._record(drafts, author, made.verdict, group, lag)

    @exclusive
    async def edit_skill(self, name: str, edit: folder.Edit, author: Author) -> Entry:
        """Change a skill. Raises Refused, Conflict or StoreError."""
        admission = deferred.admission
        edit, flags = admission.clean(edit)
        held = await self.sync(skill(check_name(name)))
        before = held or bundled.files(name)
        corrects, asked = edit.kind in folder.CORRECTIONS, deferred.cues.asks_to_change(name, author.quotes)
        known = facts(before) if before else None
        cause = find_protection(name, known, author.actor, asked=asked, corrects=corrects)
        copy = corrects and before and (author.actor in AGENTS or not held)
        origin = SkillOrigin.USER if asked or author.actor is Actor.OWNER else SkillOrigin.AGENT
        after = folder.apply(name, folder.copied(name, before, origin) if copy else before, edit)
        odd, scripts = (*flags, *admission.check(before, after)), bool(touches_scripts(before, after))
        verdict = admission.judge(author, self._mode(author), entries=None, flags=odd, scripts=scripts)
        draft = Draft(skill(name), edit.kind, held, after)
        if author.actor in AGENTS:
            cause = cause or await self._vetting.examine_skill(draft, author)
        verdict = admission.defer(verdict, cause)
        verdict = admission.confirm_quoted(verdict, new_lines(before, after), author)
        return (await self._record([draft], author, verdict))[0]

    async def _skill_files(self, name: str) -> Files:
        held = await self.sync(skill(check_name(name)))
        return held or (bundled.files(name) if name in bundled.names() else {})

    @exclusive
    async def mark(self, name: str, choose: Callable[[Files], Awaitable[Draft | None]]) -> Entry | None:
        """Change facts about a skill that follow from counting or checking, whatever its origin. `choose`
        gets what the skill holds; None leaves it unchanged. Raises Refused if a file would change."""
        before = await self._skill_files(name)
        draft = await choose(before)
        if draft is None:
            return None
        if split_facts(draft.after)[0] != split_facts(before)[0] or draft.before != before:
            raise Refused(f"Only what is known about {name} may change here, not its files.")
        return (await self._record([draft], Author(Actor.CURATOR), Verdict(ChangeState.ACTIVE)))[0]

    @exclusive
    async def commit(self, staged: StagedLedger, finish: Finish) -> Sequence[Entry]:
        """Make the staged changes on the current state, in one transaction with `finish`. A change that
        conflicts with a later one becomes pending."""
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
                self._spare(target, before, change)
                after = self._replay(target, before, await load_steps(staged, change))
                draft = Draft(target, change.kind, before, after)
                await self._vetting.examine_staged(draft, staged.since or START)
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

    def _spare(self, target: Target, files: Files, change: Change) -> None:
        """Raise Refused for a skill that has become protected since."""
        if places.is_journal(target) or not files:
            return
        corrects, name = change.kind in folder.CORRECTIONS, places.name_of(target)
        if find_protection(name, facts(files), change.author.actor, corrects=corrects):
            raise Refused(MET)

    @exclusive
    async def arrange(self, batches: Sequence[Batch], close: Close) -> Sequence[Entry]:
        """Make batches of moves, in one transaction with `close`. A batch is refused as a whole if its base
        has changed, or if it is not allowed."""
        changes: list[Change] = []
        contents: dict[str, bytes] = {}
        made: list[Draft] = []
        refused: list[str] = []
        for batch in batches:
            try:
                drafts, verdict = await self._draft_batch(batch)
                new, named = folding.changes(
                    drafts, self.rules.sign(batch.author), verdict, folding.new_group()
                )
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
        admission = deferred.admission
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
            flags += admission.check(before, after)
            scripts = scripts or bool(touches_scripts(before, after))
            target = skill(move.name)
            drafts.append(Draft(target, move.kind, before, after, reason=move.reason, sources=move.sources))
        mode = self._mode(batch.author)
        if batch.counted:
            return drafts, admission.judge_routine(batch.author, mode)
        mode = admission.stricter(mode, self.rules.merges)
        return drafts, admission.judge(batch.author, mode, entries=None, flags=flags, scripts=scripts)

    @exclusive
    async def undo(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """Undo a change and nothing later. Raises Refused if they cannot be separated."""
        entry = await self.ledger.entry(id)
        if entry.change.standing is ChangeState.PENDING:
            raise Refused(f"Change {id} has not taken effect; turn it down with: hone reject {id}")
        if not await self.is_standing(entry):
            by = f"was already undone by change {entry.settled}" if entry.settled else "changed nothing"
            raise Refused(f"Change {id} {by}.")
        return await self._repeat(entry, ChangeKind.UNDO, author)

    @exclusive
    async def approve(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """Make a pending change take effect, byte for byte as it was shown. For an agent, which now has
        better evidence, it is judged again. Raises Refused if it no longer fits, or still has to wait."""
        return await self._repeat(await self._waiting(id), ChangeKind.APPROVE, author)

    @exclusive
    async def reject(self, id: ChangeId, author: Author = OWNER) -> Entry:
        """Reject a pending change, with its whole group."""
        by = self.rules.sign(author)
        changes = [
            Change(each.change.target, ChangeKind.REJECT, (), by, confirmed=True, about=each.id)
            for each in await self.together(await self._waiting(id))
        ]
        entries = await self.ledger.record(changes, {}, self._clock.now())
        return next(entry for entry in entries if entry.change.about == id)

    @exclusive
    async def confirm(self, id: ChangeId, author: Author) -> Entry:
        """Confirm a change that rests on nothing the owner said or did, since the owner's check has proved
        it. Raises Refused if it does not hold as it was made."""
        entry = await self.ledger.entry(id)
        if entry.settled or entry.change.confirmed or entry.change.standing is ChangeState.PENDING:
            raise Refused(f"Change {id} is not one that could be confirmed.")
        by = self.rules.sign(author)
        change = Change(entry.change.target, ChangeKind.CONFIRM, (), by, confirmed=True, about=id)
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
        """Replay or revert a change on the current state: its whole group or nothing."""
        drafts = [await self._draft_again(each, kind) for each in await self.together(entry)]
        group = folding.new_group() if entry.change.group else ""
        verdict = Verdict(ChangeState.ACTIVE, True, "")
        if kind is ChangeKind.APPROVE and author.actor in AGENTS:
            verdict = await self._noting.judge_again(drafts, author, self._mode(author))
        entries = await self._record(drafts, author, verdict, group)
        return next(made for made in entries if made.change.about == entry.id)

    async def _draft_again(self, entry: Entry, kind: ChangeKind) -> Draft:
        target, made = entry.change.target, await load_steps(self.ledger, entry.change)
        before = await self.sync(target)
        if kind is ChangeKind.UNDO:
            made = tuple(step.reverse for step in made if step.before != step.after)
        elif entry.change.group and before != {
            each.path: each.before for each in made if each.before is not None
        }:
            since = await folding.describe_since(self.ledger, entry)
            raise Refused(f"{target} has changed since; nothing was changed.{since}")
        try:
            after = self._replay(target, before, made)
        except Refused as error:
            raise Refused(f"{error}{await folding.describe_since(self.ledger, entry)}") from error
        return Draft(target, kind, before, after, about=entry.id)

    def _replay(self, target: Target, before: Files, made: Sequence[Step]) -> Files:
        if places.is_outside(target):
            return folding.replay(before, made, entries=False)
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
        self, drafts: Sequence[Draft], author: Author, verdict: Verdict, group: str = "", lag: float = 0
    ) -> Sequence[Entry]:
        """Record drafts and publish them; the journal's files may follow `lag` seconds later."""
        waits = verdict.standing is ChangeState.PENDING and len(drafts) == 1 and author.actor in AGENTS
        if waits and (same := await self._vetting.find_waiting(drafts[0])):
            return [same]
        changes, contents = folding.changes(drafts, self.rules.sign(author), verdict, group)
        entries = await self.ledger.record(changes, contents, self._clock.now())
        self._recorded = contents
        if verdict.standing is ChangeState.ACTIVE:
            if isinstance(self.ledger, StagedLedger):
                self._vetting.remember_replaced(drafts)
            for draft in drafts:
                if self.file_sync and lag:
                    self.file_sync.publish_later(draft.target, contents, lag)
                else:
                    await self._publish(draft.target, draft.after)
        return entries


def _text(files: Files, path: str) -> str:
    return files.get(path, b"").decode()
