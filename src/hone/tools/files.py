"""Read, write and patch text files. If anything fails, the old content stays unchanged."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec

from hone.core.permit import Effect
from hone.core.secrets import redact_rows
from hone.core.tool import Outcome, Tool, ToolKind
from hone.core.visible import amend
from hone.core.visible import find as seen
from hone.files.atomic import draft, open_file, sync, sync_folder
from hone.tools.define import tool

LARGEST = 64 * 2**20
WIDEST = 2_000
"""Characters of a line that are shown."""
ROWS = 80
"""Lines of a diff that are shown."""
AROUND = 2
"""Lines of a diff around each change."""
Positive = Annotated[int, msgspec.Meta(ge=1)]


def file_tools(folder: Path) -> list[Tool]:
    """Relative paths start at `folder`."""

    @tool(effects={Effect.READ}, readonly=True, kind=ToolKind.FILE)
    def read_file(
        path: str, offset: Annotated[Positive, "first line"] = 1, limit: Positive = 2_000
    ) -> Outcome:
        """Read a text file, or some of its lines."""
        try:
            return _excerpt(decoded(load(located(folder, path))), offset, limit)
        except (OSError, ValueError) as error:
            return failure("read", located(folder, path), error)

    @tool(effects={Effect.WRITE}, kind=ToolKind.FILE)
    def write_file(path: str, content: str) -> Outcome:
        """Create or overwrite a text file, folders included. For small changes use patch."""
        if path.endswith("/"):
            return Outcome(f"{shown(path)} was not written: it names a folder.", failed=True)
        try:
            before = store(located(folder, path), content.encode())
        except (OSError, ValueError) as error:
            return failure("written", located(folder, path), error)
        size = f"{len(content.encode()):,} bytes"
        verb, was = ("Created", "") if before is None else ("Overwrote", f", before {before:,}")
        return Outcome(f"{verb} {shown(path)} ({size}{was}).")

    @tool(effects={Effect.READ, Effect.WRITE}, kind=ToolKind.FILE)
    def patch(
        path: str,
        find: Annotated[str, "exact text; must occur once unless all"],
        replace: str,
        all: bool = False,
    ) -> Outcome:
        """Replace text in a file. Gives the diff."""
        try:
            before = decoded(load(located(folder, path)))
            after = _patched(before, find, replace, everywhere=all)
            if isinstance(after, Outcome):
                return after
            store(located(folder, path), after.encode())
        except (OSError, ValueError) as error:
            return failure("patched", located(folder, path), error)
        return Outcome(f"Patched {shown(path)}.\n{_difference(_lines(before), _lines(after))}")

    return [read_file, write_file, patch]


def located(folder: Path, path: str) -> Path:
    return folder / os.path.expanduser(path)


def shown(path: str | Path) -> str:
    """A name on one line, with nothing hidden in it."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(path)
    )


def failure(done: str, path: Path, error: OSError | ValueError) -> Outcome:
    match error:
        case FileNotFoundError():
            reason = f"there is no such file{_nearby(path)}"
        case FileExistsError() | NotADirectoryError():
            reason = "a part of its path is a file, not a folder"
        case OSError():
            reason = (error.strerror or str(error)).lower()
        case UnicodeDecodeError():
            reason = f"it is not UTF-8 text (byte {error.start:,})"
        case _:
            reason = str(error)
    return Outcome(f"{shown(path)} was not {done}: {reason}.", failed=True)


def load(path: Path) -> bytes:
    """The content of a regular file. Raises OSError, also for what is no file."""
    _insist(os.stat(path))  # opening a device can already do something
    # A pipe put there meanwhile must not block; it is turned down below.
    with open_file(path, follow=True) as file:
        status = os.fstat(file.fileno())
        _insist(status)
        if status.st_size > LARGEST:
            raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes, and {LARGEST:,} are the most")
        return file.read()


def decoded(data: bytes) -> str:
    if b"\0" in data[:8192]:
        raise ValueError(f"it is binary ({len(data):,} bytes)")
    return data.decode()


def store(path: Path, data: bytes) -> int | None:
    """Replaces the file as a whole or not at all; gives the size of what was there. Follows links, keeps mode
    and owner. Raises OSError."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    old = _status(target)
    if old:
        _insist(old)
        # Replacing asks for no right to write the file itself, and a read-only file shall stay as it is.
        os.close(os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    with draft(target.parent, 0o600 if old else 0o666) as (file, temporary):
        if old:
            _dress(file.fileno(), old)
        file.write(data)
        sync(file)
        temporary.replace(target)
    with contextlib.suppress(PermissionError):  # a folder one may write to and not read
        sync_folder(target.parent)
    return old.st_size if old else None


def _insist(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket")


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _dress(file: int, like: os.stat_result) -> None:
    with contextlib.suppress(PermissionError):  # somebody else's file in a shared folder becomes ours
        os.fchown(file, like.st_uid, like.st_gid)
    os.fchmod(file, stat.S_IMODE(like.st_mode))


def _nearby(path: Path) -> str:
    try:
        names = get_close_matches(path.name, os.listdir(path.parent), n=3)
    except OSError:
        return ""
    return f"; close names: {', '.join(map(shown, names))}" if names else ""


def _lines(text: str) -> list[str]:
    """As editors count them: only a line feed ends a line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _excerpt(text: str, offset: int, limit: int) -> Outcome:
    lines = _lines(text.removeprefix("\ufeff"))
    if not lines:
        return Outcome("[the file is empty]")
    if offset > len(lines):
        return Outcome(f"There is no line {offset:,}: the file has {len(lines):,}.", failed=True)
    last = min(len(lines), offset - 1 + limit)
    rows = [_clipped(line.removesuffix("\r")) for line in redact_rows(lines, offset - 1, last)]
    if last < len(lines):
        rows.append(f"[{len(lines) - last:,} more lines; go on with offset={last + 1}]")
    return Outcome("\n".join(rows))


def _clipped(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[:WIDEST]} [{len(line) - WIDEST:,} more characters]"


def _patched(text: str, find: str, replace: str, *, everywhere: bool) -> str | Outcome:
    if not find:
        return Outcome("Not patched: the text to find is empty.", failed=True)
    unix, dos = find.replace("\r\n", "\n"), find.replace("\r\n", "\n").replace("\n", "\r\n")
    found = next((form for form in (find, dos, unix) if form in text), None)
    escaped = [] if found else seen(text, find)
    starts = list(islice(_positions(text, found), 1_000)) if found else [start for start, _ in escaped]
    if not starts:
        return Outcome(
            f"Not patched: the text to find is not in the file.{_closest(text, unix)}", failed=True
        )
    if len(starts) > 1 and not everywhere:
        return Outcome(_ambiguous(text, starts[:1_000]), failed=True)
    new = _ended(replace, like=found if found and "\n" in found else text)
    after = text.replace(found, new) if found else _rewritten(text, escaped, new)
    return Outcome("Not patched: nothing would change.", failed=True) if after == text else after


def _rewritten(text: str, spans: list[tuple[int, int]], new: str) -> str:
    """For text that was shown with escapes: what the escapes stand for stays as it is in the file."""
    kept, done = [], 0
    for start, end in spans:
        if start >= done:
            kept += [text[done:start], amend(text[start:end], new)]
            done = end
    return "".join([*kept, text[done:]])


def _positions(text: str, find: str) -> Iterator[int]:
    at = text.find(find)
    while at >= 0:
        yield at
        at = text.find(find, at + 1)


def _ended(text: str, like: str) -> str:
    """The text with the line endings that most lines of `like` have."""
    if "\n" not in like:
        return text
    unix = text.replace("\r\n", "\n")
    return unix.replace("\n", "\r\n") if 2 * like.count("\r\n") > like.count("\n") else unix


def _ambiguous(text: str, starts: list[int]) -> str:
    numbers = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts[:10])
    count = f"{len(starts)} times" if len(starts) < 1_000 else "1,000 times or more"
    more = ", …" if len(starts) > 10 else ""
    return (
        f"Not patched: the text to find occurs {count} (lines {numbers}{more}). "
        "Add lines around it until it is unique, or set all."
    )


def _closest(text: str, find: str) -> str:
    """The lines that look most like the first line to be found."""
    wanted = next((line.strip() for line in find.split("\n") if line.strip()), "")[:200]
    whole = _lines(text)[:20_000]
    lines: dict[str, str] = {}
    for number, (line, safe) in enumerate(zip(whole, redact_rows(whole, 0, len(whole)), strict=True), 1):
        lines.setdefault(line.strip()[:200], f"\n{number}: {_clipped(safe.rstrip())}")
    near = get_close_matches(wanted, lines, n=3)
    return "".join(["\nClosest lines:" if near else "", *(lines[line] for line in near)])


def _difference(before: list[str], after: list[str]) -> str:
    """A unified diff, without secrets. The lines both sides begin and end with stay out of it, for comparing
    many is slow."""
    shortest = min(len(before), len(after))
    head = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    rest = shortest - head
    tail = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    start, end = max(0, head - AROUND), max(0, tail - AROUND)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if len(old) + len(new) > 2_000:
        return f"[lines {head + 1:,} to {len(after) - tail:,} changed]"
    safe = redact_rows(before, start, start + len(old)), redact_rows(after, start, start + len(new))
    rows = [_clipped(row.removesuffix("\r")) for row in _hunks(old, new, safe, start)]
    more = [f"[{len(rows) - ROWS:,} more lines]"] if len(rows) > ROWS else []
    return "\n".join([*rows[:ROWS], *more])


def _hunks(
    old: Sequence[str], new: Sequence[str], safe: tuple[Sequence[str], Sequence[str]], start: int
) -> Iterator[str]:
    """What differs is told by the lines themselves, and shown in their `safe` form."""
    left, right = safe
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(AROUND):
        (_, first, _, second, _), (_, _, last, _, end) = group[0], group[-1]
        yield f"@@ -{start + first + 1},{last - first} +{start + second + 1},{end - second} @@"
        for tag, *(a, b, c, d) in group:
            if tag == "equal":
                yield from (f" {line}" for line in left[a:b])
            else:
                yield from (f"-{line}" for line in left[a:b])
                yield from (f"+{line}" for line in right[c:d])
