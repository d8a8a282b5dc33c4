"""Decide what a rewind does to each path. Pure functions: they look at no disk and no store."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hone.core.messages import Role, ToolCall, digest
from hone.core.transcript import Node, Transcript
from hone.core.value import replace
from hone.features.checkpoints.values import FileChange, PathKind, PathState, RewindStep

CHANGED = "changed by you since"
UNKNOWN = "it cannot be told whether the tool or you changed it"
States = Mapping[Path, PathState | None]


def find_turns(transcript: Transcript) -> list[Node]:
    """Return the user's messages, without the examples of a template."""
    return [node for node in transcript.nodes if node.message.role is Role.USER and not node.message.template]


def anchor_of(node: Node) -> str:
    """Identify a message within its session, also after older messages were summarized."""
    return f"{node.digest[:32]}@{int(node.at.timestamp() * 1_000_000):x}"


def complete(changes: Sequence[FileChange], now: States) -> list[FileChange]:
    """Find out what became of changes that were begun and not finished, from what was there next. Leaves out
    those that were not made; one that nobody can tell from the user's work stays open."""
    following = dict(now)
    kept: list[FileChange] = []
    for change in reversed(changes):
        found = following.get(change.path)
        following[change.path] = change.before
        if not change.open:
            kept.append(change)
        elif found is not None and _is_made(change, found):
            kept.append(replace(change, after=found, open=False))
        elif found != change.before:
            kept.append(change)
    return kept[::-1]


def _is_made(change: FileChange, found: PathState) -> bool:
    """Tell whether a change was made, from what is there. A folder that was missing is taken for the tool's:
    it is only ever removed when it is empty."""
    return found.digest in change.expected or (found.kind is PathKind.FOLDER and change.before is None)


def plan_steps(changes: Iterable[FileChange], now: States) -> tuple[RewindStep, ...]:
    """Return a step for each path. `changes` are those to take back, in order."""
    by_path: dict[Path, list[FileChange]] = defaultdict(list)
    for change in changes:
        by_path[change.path].append(change)
    steps = (trace(path, found, now[path]) for path, found in by_path.items())
    return tuple(sorted((step for step in steps if step), key=lambda step: step.path))


def trace(path: Path, changes: Sequence[FileChange], now: PathState | None) -> RewindStep | None:
    """Follow the changes of a path back as far as each left what the next one, or the disk, has. So whatever
    somebody else wrote in between is where it ends. None if there is nothing to do and nothing to say."""
    state = now
    undone: list[int] = []
    for change in reversed(changes):
        left = _obstacle(change, state)
        if left:
            if not undone and state == changes[0].before:
                return None  # somebody has taken it back already
            silent = _is_folder(change) or state == changes[0].before
            return RewindStep(path, now, state, tuple(undone), "" if silent else left)
        undone.append(change.id)
        state = change.before
    return RewindStep(path, now, state, tuple(undone)) if undone else None


def _obstacle(change: FileChange, state: PathState | None) -> str:
    """Say why a change cannot be taken back from this state; empty if it can."""
    if change.open:
        return UNKNOWN
    if state != change.after:
        return CHANGED
    return f"cannot be taken back: {change.lost}" if change.lost else ""


def _is_folder(change: FileChange) -> bool:
    return PathKind.FOLDER in {state.kind for state in (change.before, change.after) if state}


def order_steps(steps: Iterable[RewindStep]) -> list[RewindStep]:
    """Put removals first, the deepest path first; then what is made or replaced, the highest first."""
    acting = [step for step in steps if step.acts]
    clearing = [step for step in acting if step.target is None]
    making = [step for step in acting if step.target is not None]
    depth = {step.path: len(step.path.parts) for step in acting}
    return [
        *sorted(clearing, key=lambda step: (-depth[step.path], step.path)),
        *sorted(making, key=lambda step: (depth[step.path], step.path)),
    ]


def expected_digests(call: ToolCall, before: bytes | None) -> tuple[str, ...]:
    """Return what a file can hold after this call. A process that is killed right after it wrote the file has
    not noted what it wrote; by these digests its work is told from the user's."""
    texts = {name: value for name, value in _arguments(call).items() if isinstance(value, str)}
    if "content" in texts:
        return (_digest(texts["content"]),)
    if before is None or not {"find", "replace"} <= texts.keys():
        return ()
    return _patched(before, texts["find"], texts["replace"])


def _patched(before: bytes, find: str, replace: str) -> tuple[str, ...]:
    """Return the results of a patch with either kind of line ending."""
    try:
        text = before.decode()
    except UnicodeDecodeError:
        return ()
    results = {
        text.replace(old, new)
        for old in {find, *_endings(find)}
        if old and old in text
        for new in {replace, *_endings(replace)}
    }
    return tuple(sorted(map(_digest, results - {text})))


def _endings(text: str) -> tuple[str, str]:
    unix = text.replace("\r\n", "\n")
    return unix, unix.replace("\n", "\r\n")


def _digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))


def is_background(call: ToolCall) -> bool:
    """Tell whether a call starts a process that continues after it."""
    return _arguments(call).get("background") is True


def _arguments(call: ToolCall) -> dict[str, object]:
    """Return nothing for what is no JSON object."""
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
