"""Describe changes and rewinds, in lines for a terminal and as data for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hone.cli.output import moment, number_of
from hone.core.visible import one_line, visible
from hone.features.checkpoints.values import (
    FileChange,
    PathKind,
    PathState,
    RewindPlan,
    RewindStep,
    TurnChanges,
)

SHOWN = 10
"""How many files of a turn to name unless all are requested."""
WORDS, WIDE = 60, 160
NOTHING = "No tool or command has changed a file in this session."


def turn_lines(turns: Sequence[TurnChanges], folder: str) -> Iterator[str]:
    """List turns with the files that each changed."""
    for turn in turns:
        back = "  (taken back)" if turn.is_taken_back else ""
        words = f"  {one_line(turn.words, WORDS)}" if turn.words.strip() else ""
        yield f"turn {turn.number}  {moment(turn.at)}{words}{back}"
        found = collapse(turn.changes)
        command = ""
        for by, path, verb in found[:SHOWN]:
            if by != command:
                yield f"  {one_line(by, WORDS)}"
            command = by
            yield f"  {'  ' if by else ''}{verb:<8}  {_name(path, folder)}"
        if len(found) > SHOWN:
            yield f"  … and {number_of(len(found) - SHOWN, 'more file')}"
        yield from (f"  {line}" for line in lost_lines(turn.changes))


def collapse(changes: Sequence[FileChange]) -> list[tuple[str, Path, str]]:
    """Return the net change of each file in one turn: the last command that changed it, empty for a file
    tool, its path, and created, changed or deleted."""
    first: dict[Path, FileChange] = {}
    last: dict[Path, FileChange] = {}
    for change in changes:
        first.setdefault(change.path, change)
        last[change.path] = change
    rows = []
    for path in sorted(first):
        before, after = first[path].before, last[path].after
        verb = "changed" if last[path].open else _verb(before, after)
        if verb:
            by = last[path].by
            rows.append((by if ":" in by else "", path, verb))
    return sorted(rows)


def _verb(before: PathState | None, after: PathState | None) -> str:
    """Return the verb for a change. Folders are not named: they come and go with their files."""
    kinds = {state.kind for state in (before, after) if state}
    if kinds <= {PathKind.FOLDER}:
        return ""
    if before is None or before.kind is PathKind.FOLDER:
        return "created"
    return "deleted" if after is None or after.kind is PathKind.FOLDER else "changed"


def lost_lines(changes: Sequence[FileChange]) -> Iterator[str]:
    """Describe which changes cannot be undone, and why."""
    reasons = Counter({change.path: change.lost for change in changes if change.lost}.values())
    for reason, count in sorted(reasons.items()):
        yield f"{number_of(count, 'file')} changed by a command cannot be taken back: {reason}"


def plan_lines(plan: RewindPlan, folder: str, *, done: bool = False) -> Iterator[str]:
    """Describe what a rewind does to which file, or did, and what it leaves alone."""
    verbs = ("removed", "brought back", "restored") if done else ("remove", "bring back", "restore")
    for step in files_of(plan.acting):
        verb = verbs[0] if step.target is None else verbs[1] if step.now is None else verbs[2]
        yield f"  {verb:<12}  {_name(step.path, folder)}"
    for step in files_of(plan.left):
        yield f"  {'left alone':<12}  {_name(step.path, folder)}: {step.left}"


def files_of(steps: Sequence[RewindStep]) -> list[RewindStep]:
    """Return the steps that are about files. Folders come and go with their files."""
    return [
        step
        for step in steps
        if {state.kind for state in (step.now, step.target) if state} != {PathKind.FOLDER}
    ]


def count_line(plan: RewindPlan) -> str:
    """Describe in one line what was done."""
    count = number_of(len(files_of(plan.acting)), "file")
    if plan.redoes:
        return f"Redone: {count} as before the rewind."
    return f"Rewound {count} to the state before turn {plan.turn}."


def turn_data(turn: TurnChanges) -> dict[str, Any]:
    return {
        "turn": turn.number,
        "session": turn.session,
        "at": turn.at.isoformat(),
        "words": turn.words,
        "taken_back": turn.is_taken_back,
        "changes": [change_data(change) for change in turn.changes],
    }


def change_data(change: FileChange) -> dict[str, Any]:
    return {
        "path": str(change.path),
        "before": state_data(change.before),
        "after": state_data(change.after),
        "by": change.by,
        "lost": change.lost,
        "taken_back": bool(change.taken_back),
    }


def state_data(state: PathState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {"kind": state.kind, "mode": f"{state.mode:o}", "digest": state.digest}


def plan_data(plan: RewindPlan) -> dict[str, Any]:
    return {
        "session": plan.session,
        "turn": plan.turn,
        "files": [
            {"path": str(step.path), "before": state_data(step.now), "after": state_data(step.target)}
            for step in plan.acting
        ],
        "left": [{"path": str(step.path), "why": step.left} for step in files_of(plan.left)],
    }


def _name(path: Path, folder: str) -> str:
    inside = folder and path.is_relative_to(folder)
    return one_line(visible(str(path.relative_to(folder) if inside else path)), WIDE)
