"""`/diff` in the chat: what tools and commands changed in this conversation, as a unified diff."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from hone.cli.output import number_of
from hone.cli.render import paint_for
from hone.cli.slash import ChatState
from hone.cli.slash_commands.conversation import color_diff
from hone.core.errors import Corrupt, Missing
from hone.core.visible import text_to_path, visible
from hone.features.checkpoints import disk
from hone.features.checkpoints.part import CheckpointsPart
from hone.features.checkpoints.store import CheckpointStore
from hone.features.checkpoints.text import NOTHING
from hone.features.checkpoints.values import FileChange, PathState

MOST = 400
"""The most lines of a diff to show at once."""


async def show_diff(state: ChatState, argument: str) -> str:
    """Compare each file with its state before the first change that was not undone."""
    service = state.hone.part(CheckpointsPart).service
    if not len(state.session.transcript):
        return NOTHING
    turns = await service.history.turns(state.session.id)
    folder = text_to_path(state.session.header.folder)
    changes = find_first(change for turn in turns for change in turn.changes)
    wanted = [each for each in changes if not argument or each.path == folder / argument]
    lines = [line for each in wanted for line in await _compare(service.store, each, folder)]
    if not lines:
        return f"No tool has changed {visible(argument)}." if argument else NOTHING
    shown = color_diff(lines[:MOST], paint_for(sys.stdout))
    more = len(lines) - len(shown)
    hint = f"… {number_of(more, 'more line')}. /diff FILE shows one file." if more else ""
    return "\n".join((*shown, hint) if hint else shown)


def find_first(changes: Iterable[FileChange]) -> list[FileChange]:
    """Return the first change of each path that was not undone, by path."""
    first: dict[Path, FileChange] = {}
    for change in sorted(changes, key=lambda each: each.id):
        if not change.taken_back:
            first.setdefault(change.path, change)
    return [first[path] for path in sorted(first)]


async def _compare(store: CheckpointStore, change: FileChange, folder: Path) -> Sequence[str]:
    try:
        now, after = await asyncio.to_thread(disk.read, change.path)
        before = await _content(store, change.before)
    except (OSError, Missing, Corrupt) as error:
        return [f"{_name(change.path, folder)}: {error}"]
    was, has = (before if change.before else None), (after if now else None)
    return list(compare(_name(change.path, folder), was, has))


async def _content(store: CheckpointStore, state: PathState | None) -> bytes:
    return await store.content(state.digest) if state and state.has_content else b""


def compare(name: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Yield a unified diff; None stands for a missing file. Yield nothing if both are the same."""
    if before == after:
        return
    if b"\0" in (before or b"") + (after or b""):
        yield f"Binary file {name} has changed"
        return
    old, new = (visible((data or b"").decode("utf-8", "replace")).splitlines() for data in (before, after))
    sources = "/dev/null" if before is None else f"a/{name}", "/dev/null" if after is None else f"b/{name}"
    yield from unified_diff(old, new, *sources, lineterm="")


def _name(path: Path, folder: Path) -> str:
    return visible(str(path.relative_to(folder) if path.is_relative_to(folder) else path))
