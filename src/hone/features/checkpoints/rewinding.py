"""Rewind files to the state before a turn, and redo a rewind.

A rewind is stored before it touches the first file, and what it replaces is kept. If its process is killed in
the middle, the next one finds out from the files what was done.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hone.core.errors import Corrupt, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.value import replace
from hone.core.waiting import uninterrupted
from hone.features.checkpoints import disk
from hone.features.checkpoints.decisions import CHANGED, complete, order_steps, plan_steps
from hone.features.checkpoints.store import LOCK, CheckpointStore, Contents
from hone.features.checkpoints.values import (
    ChangeDraft,
    FileChange,
    PathKind,
    PathState,
    RewindPlan,
    RewindStep,
)
from hone.files.atomic import make_folder
from hone.files.locks import acquire, release

TOO_LARGE = "too large"
ROOM = 256 * 2**20
"""How many bytes of replaced files are kept for a redo."""
BUSY = "Another process is rewinding files right now. Try again when it has finished."


class Rewinder:
    """`home` is never touched."""

    def __init__(self, store: CheckpointStore, home: Path) -> None:
        self._store = store
        self._home = home.resolve()

    async def complete(self, changes: Sequence[FileChange]) -> list[FileChange]:
        """Resolve changes whose process was killed."""
        begun = {change.path for change in changes if change.open}
        if not begun:
            return list(changes)
        await asyncio.to_thread(_sweep, begun)
        states = await asyncio.to_thread(_look_at_all, begun)
        return complete(
            changes, {path: state for path, state in states.items() if not isinstance(state, str)}
        )

    async def plan(self, session: SessionId, turn: int, changes: Iterable[FileChange]) -> RewindPlan:
        """Return what a rewind of these changes would do. They are those of the turn and all later ones."""
        active = [each for each in changes if not each.taken_back and not self._is_own(each.path)]
        states = await asyncio.to_thread(_look_at_all, {each.path for each in active})
        readable = [each for each in active if not isinstance(states[each.path], str)]
        now = {path: state for path, state in states.items() if not isinstance(state, str)}
        steps = [await self._explain(session, step) for step in plan_steps(readable, now)]
        steps += [
            RewindStep(path, None, None, left=why) for path, why in states.items() if isinstance(why, str)
        ]
        return RewindPlan(session, turn, tuple(sorted(steps, key=lambda step: step.path)))

    async def plan_redo(self, sessions: Sequence[SessionId]) -> RewindPlan:
        """Return what undoing the last rewind would do. Raises Refused if there is none."""
        rewinds = [found for each in sessions if (found := await self._store.last_rewind(each))]
        if not rewinds:
            raise Refused("There is no rewind to redo in this session.")
        rewind, changes = max(rewinds, key=lambda found: found[0].id)
        plan = await self.plan(rewind.session, rewind.turn, changes)
        return replace(plan, redoes=rewind.id)

    async def apply(self, plan: RewindPlan) -> RewindPlan:
        """Execute the plan, and return what was done. A file that has changed since the plan was made is left
        alone."""
        return await uninterrupted(self._apply(plan))

    async def settle(self) -> None:
        """Resolve rewinds whose process was killed. Raises Refused while another one is running."""
        if not await self._store.unfinished():
            return
        with self._alone():
            await self._settle()

    async def _settle(self) -> None:
        for rewind, changes in await self._store.unfinished():
            await asyncio.to_thread(_sweep, {each.path for each in changes})
            done = [each.path for each in changes if await self._is_done(each)]
            await self._store.finish_rewind(rewind.id, done)

    async def _apply(self, plan: RewindPlan) -> RewindPlan:
        taking = [step for step in plan.steps if step.undoes]
        if not taking and not plan.redoes:
            return plan
        with self._alone():
            await self._settle()
            steps, drafts, contents = await asyncio.to_thread(_gather, taking)
            kept = replace(plan, steps=tuple(step for step in steps if step.undoes))
            rewind = await self._store.begin_rewind(kept, drafts, contents)
            left = {step.path: why for step in order_steps(steps) if (why := await self._restore(step))}
            done = [step.path for step in kept.steps if step.path not in left]
            await self._store.finish_rewind(rewind, done)
        others = [step for step in plan.steps if not step.undoes]
        made = [_stopped(step, left[step.path]) if step.path in left else step for step in steps]
        return replace(plan, steps=tuple(sorted((*others, *made), key=lambda step: step.path)))

    async def _restore(self, step: RewindStep) -> str:
        """Restore one path; return why it was left alone, or nothing."""
        try:
            content = b""
            if step.target is not None and step.target.has_content:
                content = await self._store.content(step.target.digest)
            await asyncio.to_thread(disk.restore, step.path, step.now, step.target, content)
        except disk.Touched:
            return CHANGED
        except OSError as error:
            return f"it cannot be written: {(error.strerror or str(error)).lower()}"
        except (Missing, Corrupt) as error:
            return str(error)
        return ""

    async def _is_done(self, change: FileChange) -> bool:
        """Tell whether a killed rewind had restored this path. If it was killed between the two steps of a
        restore, complete it: nothing is there that could belong to anybody."""
        try:
            now = await asyncio.to_thread(disk.look, change.path)
        except OSError:
            return False
        if now is None and disk.needs_two_steps(change.before, change.after):
            return not await self._restore(RewindStep(change.path, None, change.after, (change.id,)))
        if now and change.after and now.kind is change.after.kind is PathKind.FOLDER:
            return True  # perhaps with another mode than intended
        return now == change.after

    async def _explain(self, session: SessionId, step: RewindStep) -> RewindStep:
        """Name the session that changed a file after this one, unless it was the user."""
        if step.left != CHANGED:
            return step
        last = await self._store.last_change(step.path)
        if last is None or last.rewind or last.session == session or last.after != step.target:
            return step
        return replace(step, left=f"changed since by session {last.session}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            make_folder(self._store.folder)
            handle = acquire(self._store.folder / LOCK, wait=False)
        except BlockingIOError:
            raise Refused(BUSY) from None
        except OSError as error:
            raise StoreError(f"{self._store.folder} cannot be written: {error.strerror}.") from error
        try:
            yield
        finally:
            release(handle)

    def _is_own(self, path: Path) -> bool:
        return path.is_relative_to(self._home)


def _sweep(paths: Iterable[Path]) -> None:
    for path in {path.parent: path for path in paths}.values():
        disk.sweep_beside(path)


def _look_at_all(paths: Iterable[Path]) -> dict[Path, PathState | str | None]:
    """Return the state of each path, or why it cannot be read."""
    states: dict[Path, PathState | str | None] = {}
    for path in paths:
        try:
            states[path] = disk.look(path)
        except OSError as error:
            states[path] = f"it cannot be read: {(error.strerror or str(error)).lower()}"
    return states


def _gather(steps: Sequence[RewindStep]) -> tuple[list[RewindStep], list[ChangeDraft], Contents]:
    """Read what the steps will replace, so that it can be brought back. A step is dropped if its file has
    changed since the plan."""
    gathered: list[RewindStep] = []
    drafts: list[ChangeDraft] = []
    contents: dict[str, bytes] = {}
    room = ROOM
    for step in steps:
        try:
            now, data = disk.read(step.path)
        except OSError:
            now, data = None, b""
        if now != step.now:
            gathered.append(_stopped(step, CHANGED))
            continue
        is_kept = now is None or now.kind is PathKind.FOLDER or (now.has_content and len(data) <= room)
        if is_kept and now is not None and now.has_content:
            contents[now.digest] = data
            room -= len(data)
        lost = "" if is_kept else TOO_LARGE
        drafts.append(ChangeDraft(step.path, now, step.target, "rewind", lost))
        gathered.append(step)
    return gathered, drafts, contents


def _stopped(step: RewindStep, why: str) -> RewindStep:
    return RewindStep(step.path, step.now, step.now, left=why)
