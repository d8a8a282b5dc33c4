"""Make a task from a session: its request, the messages before it, and the files it started with."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Refused
from hone.core.messages import Message, Role, Text, encode
from hone.core.ports import Sessions
from hone.core.screen import screen
from hone.core.secrets import redact
from hone.core.transcript import Node
from hone.core.visible import one_line
from hone.features.experiments.values import Check, Task, TaskMessage
from hone.features.templates.seeding import free_name, slug
from hone.files.atomic import open_file

LARGEST, MOST, WHOLE = 200_000, 200, 2_000_000
"""The most bytes of a file, files of a task, and bytes of all of them."""
NOTHING = Check()
_WRITING = "write_file"
_CHANGING = ("patch", _WRITING)
_NAMING = ("read_file", *_CHANGING)


class RecordingOptions(Struct, frozen=True):
    """The owner's options for a task. `at` is the message that asks (0: the user's first one), `files` are
    patterns below `folder` (none: the files that the session named)."""

    name: str = ""
    at: int = 0
    folder: Path | None = None
    files: tuple[str, ...] = ()
    check: Check = NOTHING


class Recorded(Struct, frozen=True):
    """`changed` are files that the session has changed since the request: they are recorded in their final
    state."""

    task: Task
    changed: tuple[str, ...] = ()


async def record(
    store: Sessions, beginning: str, options: RecordingOptions, taken: Collection[str], clock: Clock
) -> Recorded:
    """Record a task. Raises Refused if there is nothing to ask or to check, or nothing left to do."""
    if not options.check:
        raise Refused("A task needs a check: --expect-text, --expect-file or --check-script.")
    for path, _ in options.check.files:
        _below(path)
    stored = await store.load(await store.find(beginning))
    nodes = [node for node in stored.transcript.nodes if not node.message.template]
    at = _asking(nodes, options.at)
    own, after = Path(stored.header.folder), nodes[at:]
    folder = options.folder or own
    wanted = _matching(folder, options.files) if options.files else _begun_with(after, own)
    files = dict(_read(folder, [each for each in wanted if (folder / each).is_file()]))
    _undone(options.check, files)
    changed = () if options.folder else (path for path in files if path in _named(after, own, _CHANGING))
    task = Task(
        options.name or free_name(slug(nodes[at].message.text) or f"task-{stored.header.id[:6]}", taken),
        stored.header.id,
        clock.now(),
        stored.header.folder,
        redact(nodes[at].message.text),
        options.check,
        files,
        tuple(_before(nodes[:at])),
    )
    return Recorded(task, tuple(changed))


def _asking(nodes: Sequence[Node], at: int) -> int:
    """Return the index of the request."""
    mine = [place for place, node in enumerate(nodes) if node.message.role is Role.USER]
    spoken = [place for place in mine if nodes[place].message.text.strip()]
    if not spoken:
        raise Refused("There is no request of yours in this session.")
    if at and at - 1 not in spoken:
        numbers = ", ".join(str(each + 1) for each in spoken[:20])
        raise Refused(f"Message {at} is no request of yours; these are: {numbers}.")
    return at - 1 if at else spoken[0]


def _before(nodes: Sequence[Node]) -> Iterator[TaskMessage]:
    """Yield what was said, without secrets in the owner's words and without Hone's notes on what it knew
    then."""
    for node in nodes:
        message = node.message
        if message.role is Role.USER:
            message = Message(message.role, (Text(redact(message.text) or "(an image)"),))
        yield TaskMessage(encode(message).decode(), node.trust, node.at)


def _undone(check: Check, files: Mapping[str, str]) -> None:
    """Raise Refused if the files alone satisfy the check."""
    if check.script or check.text or not check.files:
        return
    if all(path in files and words in files[path] for path, words in check.files):
        raise Refused(
            "The check holds before the task has begun: the files are taken as they are now. Take them from "
            "a folder where it is not done yet (--folder), or name others (--files)."
        )


def _begun_with(nodes: Sequence[Node], folder: Path) -> list[str]:
    """Return what the session read or patched below its folder, but not files that it wrote first."""
    named = _named(nodes, folder, _NAMING)
    return [path for path, tool in named.items() if tool != _WRITING]


def _named(nodes: Iterable[Node], folder: Path, tools: Collection[str]) -> dict[str, str]:
    """Return the files below the folder that these tools were called for, each with the first tool that named
    it."""
    found: dict[str, str] = {}
    for call in (call for node in nodes for call in node.message.calls if call.name in tools):
        try:
            path = str(json.loads(call.arguments)["path"])
            inside = (folder / path).resolve().relative_to(folder.resolve())
        except (ValueError, KeyError, TypeError, OSError, RecursionError):
            continue
        found.setdefault(inside.as_posix(), call.name)
    return found


def _matching(folder: Path, patterns: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        _below(pattern)
        some = sorted(each for each in folder.glob(pattern) if each.is_file() and not each.is_symlink())
        if not some:
            raise Refused(f"{one_line(pattern, 100)!r} matches no file in {folder}.")
        found.update((each.relative_to(folder).as_posix(), None) for each in some)
    return list(found)


def _below(path: str) -> None:
    pure = PurePosixPath(path)
    if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts:
        raise Refused(f"{one_line(path, 100)!r} must be a path below the task's folder.")


def _read(folder: Path, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Read small texts only, follow no link out of the folder, and skip files with a recognized secret."""
    if len(paths) > MOST:
        raise Refused(f"A task has at most {MOST} files; these are {len(paths):,}. Name fewer with --files.")
    whole = 0
    for path in paths:
        text = _text(folder, path)
        whole += len(text)
        if whole > WHOLE:
            raise Refused(f"The files have more than {WHOLE:,} characters. Name fewer with --files.")
        yield path, text


def _text(folder: Path, path: str) -> str:
    real = (folder / path).resolve()
    if not real.is_relative_to(folder.resolve()):
        raise Refused(f"{path} leads out of {folder}. Name others with --files.")
    try:
        with open_file(real) as file:
            text = file.read(LARGEST + 1).decode()
    except (OSError, UnicodeDecodeError):
        raise Refused(f"{path} is not a text that can be read. Name others with --files.") from None
    if len(text) > LARGEST:
        raise Refused(f"{path} has more than {LARGEST:,} characters. Name others with --files.")
    if secrets := screen(text).secrets:
        raise Refused(f"There seems to be a secret in {path} ({', '.join(secrets)}). Leave it out: --files.")
    return text
