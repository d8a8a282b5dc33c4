"""Decide what a rewind does to each path. Pure functions: they read no disk and no store."""

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
    """Identify a message within its session, even after older messages were summarized."""
    return f"{node.digest[:32]}@{int(node.at.timestamp() * 1_000_000):x}"


def complete(changes: Sequence[FileChange], now: States) -> list[FileChange]:
    """Resolve changes that were begun and not finished, by the next known state. Leave out those that were
    not made; one that cannot be told from the user's work stays open."""
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
    """Tell whether a change was made, from the current state. A folder that was missing counts as the tool's:
    it is only ever removed when it is empty."""
    return found.digest in change.expected or (found.kind is PathKind.FOLDER and change.before is None)


def plan_steps(changes: Iterable[FileChange], now: States) -> tuple[RewindStep, ...]:
    """Return a step for each path. `changes` are those to undo, in order."""
    by_path: dict[Path, list[FileChange]] = defaultdict(list)
    for change in changes:
        by_path[change.path].append(change)
    steps = (trace(path, found, now[path]) for path, found in by_path.items())
    return tuple(sorted((step for step in steps if step), key=lambda step: step.path))


def trace(path: Path, changes: Sequence[FileChange], now: PathState | None) -> RewindStep | None:
    """Trace the changes of a path back for as long as each one's result is what the next one, or the disk,
    has. What somebody else wrote in between ends the trace. Return None if there is nothing to do or say."""
    state = now
    undone: list[int] = []
    for change in reversed(changes):
        left = _obstacle(change, state)
        if left:
            if not undone and state == changes[0].before:
                return None  # somebody has undone it already
            silent = _is_folder(change) or state == changes[0].before
            return RewindStep(path, now, state, tuple(undone), "" if silent else left)
        undone.append(change.id)
        state = change.before
    return RewindStep(path, now, state, tuple(undone)) if undone else None


def _obstacle(change: FileChange, state: PathState | None) -> str:
    """Return why a change cannot be undone from this state; empty if it can."""
    if change.open:
        return UNKNOWN
    if state != change.after:
        return CHANGED
    return f"cannot be taken back: {change.lost}" if change.lost else ""


def _is_folder(change: FileChange) -> bool:
    return PathKind.FOLDER in {state.kind for state in (change.before, change.after) if state}


def order_steps(steps: Iterable[RewindStep]) -> list[RewindStep]:
    """Order steps: removals first, the deepest path first; then creations and replacements, the highest
    first."""
    acting = [step for step in steps if step.acts]
    clearing = [step for step in acting if step.target is None]
    making = [step for step in acting if step.target is not None]
    depth = {step.path: len(step.path.parts) for step in acting}
    return [
        *sorted(clearing, key=lambda step: (-depth[step.path], step.path)),
        *sorted(making, key=lambda step: (depth[step.path], step.path)),
    ]


def expected_digests(call: ToolCall, before: bytes | None) -> tuple[str, ...]:
    """Return the possible digests of a file after this call. A process that is killed right after writing the
    file has not noted its content; these digests distinguish its work from the user's."""
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
    """Tell whether a call starts a process that outlives it."""
    return _arguments(call).get("background") is True


def _arguments(call: ToolCall) -> dict[str, object]:
    """Return the arguments; nothing unless they are a JSON object."""
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
