"""Translate the values of checkpoints to rows of the database, and back."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.features.checkpoints.values import FileChange, PathKind, PathState, Rewind

EPOCH = datetime.fromtimestamp(0, UTC)
MICROSECOND = timedelta(microseconds=1)
CHANGE = (
    "id, session, turn, anchor, path, before_kind, before_mode, before_digest, after_kind, after_mode, "
    "after_digest, by, at, lost, open, expected, rewind, taken_back"
)
REWIND = "id, session, turn, at, finished, redoes"
Cells = tuple[str | None, int | None, str | None]


def microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND


def cells(state: PathState | None) -> Cells:
    return (None, None, None) if state is None else (str(state.kind), state.mode, state.digest)


def change_of(row: Sequence[Any]) -> FileChange:
    """Return the change of a row. Raises Corrupt for a row that Hone cannot have written."""
    try:
        id, session, turn, anchor, path, *states, by, at, lost, opened, expected, rewind, taken_back = row
        return FileChange(
            id,
            SessionId(session),
            turn,
            anchor,
            Path(os.fsdecode(path)),
            _state(states[:3]),
            _state(states[3:]),
            by,
            EPOCH + at * MICROSECOND,
            lost,
            bool(opened),
            tuple(expected.split()),
            rewind,
            taken_back,
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise Corrupt(
            f"A checkpoint is damaged ({error}). Delete those of the session: hone rewind SESSION --forget."
        ) from error


def rewind_of(row: Sequence[Any]) -> Rewind:
    id, session, turn, at, finished, redoes = row
    return Rewind(id, SessionId(session), turn, EPOCH + at * MICROSECOND, bool(finished), redoes)


def _state(row: Sequence[Any]) -> PathState | None:
    kind, mode, digest = row
    return None if kind is None else PathState(PathKind(kind), int(mode), str(digest))
