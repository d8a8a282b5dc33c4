"""Keep the content of files before tools and commands change them.

A failing checkpoint never stops a tool: it is reported once per session, and the work continues.
"""

import asyncio
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from hone.core.errors import HoneError
from hone.core.events import Notice
from hone.core.ids import SessionId
from hone.core.messages import Role, digest
from hone.core.ports import Sessions
from hone.core.tool_context import ToolContext
from hone.core.transcript import Transcript
from hone.core.turn import Origin
from hone.core.waiting import uninterrupted
from hone.features.checkpoints.commanding import CommandRun, CommandWatch
from hone.features.checkpoints.decisions import anchor_of, expected_digests, find_turns, is_background
from hone.features.checkpoints.folders import MOST, TooMany
from hone.features.checkpoints.store import CheckpointStore
from hone.features.checkpoints.values import ChangeDraft, PathKind, PathState, TurnMark

Opened = dict[Path, int]
"""Changes that were begun, by path: a file and the folders created for it."""


class Checkpointer:
    """Observes the tools of all conversations of one Hone. A child's work belongs to its parent's turn."""

    def __init__(self, home: Path, store: CheckpointStore, sessions: Sessions) -> None:
        self._home = home.resolve()
        self._store = store
        self._sessions = sessions
        self._opened: dict[tuple[SessionId, Path], Opened] = {}
        self._parents: dict[SessionId, TurnMark | None] = {}
        self._watches: dict[Path, CommandWatch] = {}
        self._warned: set[SessionId] = set()
        self._closed = False
        self.used: set[SessionId] = set()
        """Sessions that changed files in this process."""

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        with self._forgiving(context):
            mark = await self._mark(context)
            if mark is None or path.is_relative_to(self._home):
                return
            drafts = await asyncio.to_thread(_draft_write, path, before, context.call.name)
            contents = {} if before is None else {digest(before): before}
            expected = expected_digests(context.call, before)
            ids = await self._store.begin(mark, drafts, contents, expected)
            opened = dict(zip((draft.path for draft in drafts), ids, strict=True))
            self._opened[context.header.id, path] = opened

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        with self._forgiving(context):
            opened = self._opened.pop((context.header.id, path), None)
            if opened:
                states = await asyncio.to_thread(_states_after, opened, path, data)
                await uninterrupted(self._store.finish(states))

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        entered: tuple[CommandWatch, CommandRun] | None = None
        with self._forgiving(context):
            mark = await self._mark(context)
            if mark is not None:
                watch = self._watches.setdefault(folder, CommandWatch(folder, self._home, self._store))
                by = f"{context.call.name}: {text}"
                run = CommandRun(mark, by, is_background(context.call))
                await watch.enter(run)
                entered = watch, run
        try:
            yield
        finally:
            with self._forgiving(context):
                if entered and not self._closed:
                    await uninterrupted(self._leave(*entered))

    async def close(self) -> None:
        self._closed = True
        for watch in self._watches.values():
            await watch.close()

    async def _leave(self, watch: CommandWatch, run: CommandRun) -> None:
        is_over = run.background and not await self._is_running(run.mark)
        await watch.leave(run, discard=is_over)

    async def _is_running(self, mark: TurnMark) -> bool:
        """Tell whether a turn has not been answered yet."""
        transcript = (await self._sessions.load(mark.session)).transcript
        last = transcript.nodes[-1].message
        is_answered = last.role is Role.ASSISTANT and not last.calls
        return _find_mark(mark.session, transcript) == mark and not is_answered

    async def _mark(self, context: ToolContext) -> TurnMark | None:
        header = context.header
        if not header.id or self._closed:
            return None
        if header.origin is Origin.USER or header.parent is None:
            mark = _find_mark(header.id, context.transcript)
        else:
            mark = await self._parents_mark(header.id, header.parent)
        if mark:
            self.used.add(mark.session)
        return mark

    async def _parents_mark(self, child: SessionId, parent: SessionId) -> TurnMark | None:
        """Return the turn in which a child got its task. It does not change while the child works."""
        if child not in self._parents:
            stored = await self._sessions.load(parent)
            while stored.header.origin is not Origin.USER and stored.header.parent:
                stored = await self._sessions.load(stored.header.parent)
            self._parents[child] = _find_mark(stored.header.id, stored.transcript)
        return self._parents[child]

    @contextmanager
    def _forgiving(self, context: ToolContext) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  whatever fails here, the tool's own work must not
            if context.header.id in self._warned or self._closed:
                return
            self._warned.add(context.header.id)
            context.emit(Notice(f"What is changed now cannot be rewound later. {_describe(error)}"))


def _find_mark(session: SessionId, transcript: Transcript) -> TurnMark | None:
    turns = find_turns(transcript)
    return TurnMark(session, len(turns), anchor_of(turns[-1])) if turns else None


def _describe(error: Exception) -> str:
    if isinstance(error, TooMany):
        return f"The working folder has more than {MOST:,} files; only the file tools' changes are kept."
    if isinstance(error, HoneError):
        return str(error)
    if isinstance(error, OSError):
        return f"The checkpoint failed: {(error.strerror or str(error)).lower()}."
    return f"The checkpoint failed: {type(error).__name__}."


def _draft_write(path: Path, before: bytes | None, by: str) -> list[ChangeDraft]:
    """Return the change of a file, and of the folders that will be made for it."""
    missing = [each for each in path.parents if not each.exists()]
    folders = [ChangeDraft(each, None, None, by) for each in reversed(missing)]
    state = None
    if before is not None:
        state = PathState(PathKind.FILE, _mode(path), digest(before))
    return [*folders, ChangeDraft(path, state, None, by)]


def _states_after(opened: Opened, path: Path, data: bytes) -> dict[int, PathState | None]:
    return {
        id: PathState(PathKind.FILE, _mode(path), digest(data))
        if each == path
        else PathState(PathKind.FOLDER, _mode(each))
        for each, id in opened.items()
    }


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)
