"""Read, write and patch text files. If anything fails, the old content stays unchanged."""

import asyncio
import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec

from hone.core import seldom
from hone.core.errors import HoneError, Refused
from hone.core.permissions import Action, Request
from hone.core.permit import Effect
from hone.core.secrets import redact_rows
from hone.core.tool import Outcome, Tool, ToolKind, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.visible import amend
from hone.core.visible import find as seen
from hone.core.waiting import uninterrupted
from hone.core.work import FileLabels, Work
from hone.files.opening import Place, find_path
from hone.tools.define import tool

FILE_ERRORS = (OSError, ValueError, HoneError)

LARGEST = 64 * 2**20
WIDEST = 2_000
"""The most characters of a line to show."""
ROWS = 80
"""The most lines of a diff to show."""
AROUND = 2
"""Lines of a diff around each change."""
Positive = Annotated[int, msgspec.Meta(ge=1)]


def file_tools(folder: Path, work: Work) -> list[Tool]:
    """Return the file tools. Relative paths start at `folder`."""
    return [_read_tool(folder, work), _write_tool(folder, work), _patch_tool(folder, work)]


def _read_tool(folder: Path, work: Work) -> Tool:
    @tool(effects={Effect.READ}, readonly=True, kind=ToolKind.FILE)
    async def read_file(
        context: ToolContext,
        path: str,
        offset: Annotated[Positive, "first line"] = 1,
        limit: Positive = 2_000,
    ) -> Outcome:
        """Read a text file or a range of its lines."""
        try:
            with find_path(folder, path) as place:
                await permit(context, "read_file", Action.READ, place)
                data = await load(place, work.labels)
                excerpt = _excerpt(decoded(data), offset, limit)
                return await _labeled(excerpt, work, place, data)
        except FILE_ERRORS as error:
            return failure("read", located(folder, path), error)

    return read_file


def _write_tool(folder: Path, work: Work) -> Tool:
    @tool(effects={Effect.WRITE}, kind=ToolKind.FILE)
    async def write_file(context: ToolContext, path: str, content: str) -> Outcome:
        """Create or overwrite a text file and its folders. For small changes use patch."""
        if path.endswith("/"):
            return refused(f"{shown(path)} was not written: it names a folder.")
        data = content.encode()
        try:
            with find_path(folder, path) as place:
                before = await load(place, work.labels) if place.exists else None
                await permit(context, "write_file", Action.WRITE, place, _change(before, content))
                await _store(place, before, data, work, context)
        except FILE_ERRORS as error:
            return failure("written", located(folder, path), error)
        size = f"{len(data):,} bytes"
        verb, was = ("Created", "") if before is None else ("Overwrote", f"; it had {len(before):,}")
        return Outcome(f"{verb} {shown(path)} ({size}{was}).", trust=Trust.AGENT)

    return write_file


def _patch_tool(folder: Path, work: Work) -> Tool:
    @tool(effects={Effect.READ, Effect.WRITE}, kind=ToolKind.FILE)
    async def patch(
        context: ToolContext,
        path: str,
        find: Annotated[str, "exact text; must occur once unless all is set"],
        replace: str,
        all: bool = False,
    ) -> Outcome:
        """Replace text in a file. Returns the diff."""
        try:
            with find_path(folder, path) as place:
                await permit(context, "patch", Action.READ, place)
                data = await load(place, work.labels)
                before, trust = decoded(data), await _label(work, place, data)
                after = _patched(before, find, replace, everywhere=all)
                if isinstance(after, Outcome):
                    return await _labeled(after, work, place, data)
                difference = _difference(_lines(before), _lines(after))
                await permit(context, "patch", Action.WRITE, place, difference)
                await _store(place, data, after.encode(), work, context)
        except FILE_ERRORS as error:
            return failure("patched", located(folder, path), error)
        return Outcome(f"Patched {shown(path)}.\n{difference}", trust=trust)

    return patch


async def permit(context: ToolContext, name: str, action: Action, place: Place, detail: str = "") -> None:
    """Raise Refused with the reason unless this is permitted."""
    shown_detail = f"{place.path}\n{detail}" if detail else str(place.path)
    no = await context.refusal(Request(name, action, str(place.path), shown_detail))
    if no:
        raise Refused(no)


def _change(before: bytes | None, content: str) -> str:
    """Return what the owner is shown before a file is written."""
    try:
        old = decoded(before) if before is not None else ""
    except ValueError:
        return content
    return _difference(_lines(old), _lines(content)) if old else content


async def load(place: Place, labels: FileLabels) -> bytes:
    """Return the content of a file. Raises OSError; for a missing file it suggests similar names."""
    if not place.exists:
        raise Absent(place, labels)
    return await asyncio.to_thread(place.read, LARGEST)


async def _label(work: Work, place: Place, data: bytes) -> Trust:
    return await asyncio.to_thread(work.labels.of_file, place.path, data)


async def _labeled(outcome: Outcome, work: Work, place: Place, data: bytes) -> Outcome:
    """Label output that quotes a file like the file. Other output is in our own words."""
    if outcome.trust is Trust.AGENT:
        return outcome
    return Outcome(outcome.text, outcome.failed, await _label(work, place, data))


async def _store(place: Place, before: bytes | None, data: bytes, work: Work, context: ToolContext) -> None:
    await work.before_write(place.path, before, context)
    await uninterrupted(asyncio.to_thread(place.write, data))
    await work.after_write(place.path, data, context)


class Absent(FileNotFoundError):
    """There is no such file. `near` are similar names in its folder, `trust` is the label of names there."""

    def __init__(self, place: Place, labels: FileLabels) -> None:
        super().__init__(errno.ENOENT, os.strerror(errno.ENOENT), str(place.path))
        self.near: list[str] = []
        with contextlib.suppress(OSError):
            names = [] if place.missing else place.neighbors()
            self.near = seldom.difflib.get_close_matches(place.name, names, n=3)
        self.trust = labels.of_folder(place.path.parent) if self.near else Trust.AGENT


def located(folder: Path, path: str) -> Path:
    return folder / os.path.expanduser(path)


def shown(path: str | Path) -> str:
    """Return a name on one line, with nothing hidden in it."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(path)
    )


def failure(done: str, path: Path, error: OSError | ValueError | HoneError) -> Outcome:
    """Say in our own words why an operation failed."""
    trust = Trust.AGENT
    match error:
        case HoneError():
            return refused(f"{shown(path)} was not {done}. {error}")
        case Absent():
            close = f"; similar names: {', '.join(map(shown, error.near))}" if error.near else ""
            reason, trust = f"there is no such file{close}", error.trust
        case FileNotFoundError():
            reason = "there is no such file"
        case FileExistsError() | NotADirectoryError():
            reason = "part of its path is a file, not a folder"
        case OSError():
            reason = (error.strerror or str(error)).lower()
        case UnicodeDecodeError():
            reason = f"it is not UTF-8 text (byte {error.start:,})"
        case _:
            reason = str(error)
    return Outcome(f"{shown(path)} was not {done}: {reason}.", failed=True, trust=trust)


def decoded(data: bytes) -> str:
    if b"\0" in data[:8192]:
        raise ValueError(f"it is binary ({len(data):,} bytes)")
    return data.decode()


def _lines(text: str) -> list[str]:
    """Split into lines as editors do: only a line feed ends a line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _excerpt(text: str, offset: int, limit: int) -> Outcome:
    lines = _lines(text.removeprefix("\ufeff"))
    if not lines:
        return Outcome("[the file is empty]", trust=Trust.AGENT)
    if offset > len(lines):
        return refused(f"There is no line {offset:,}: the file has {len(lines):,} lines.")
    last = min(len(lines), offset - 1 + limit)
    rows = [_clipped(line.removesuffix("\r")) for line in redact_rows(lines, offset - 1, last)]
    if last < len(lines):
        rows.append(f"[{len(lines) - last:,} more lines; continue with offset={last + 1}]")
    return Outcome("\n".join(rows))


def _clipped(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[:WIDEST]} [{len(line) - WIDEST:,} more characters]"


def _patched(text: str, find: str, replace: str, *, everywhere: bool) -> str | Outcome:
    if not find:
        return refused("Not patched: the text to find is empty.")
    unix, dos = find.replace("\r\n", "\n"), find.replace("\r\n", "\n").replace("\n", "\r\n")
    found = next((form for form in (find, dos, unix) if form in text), None)
    escaped = [] if found else seen(text, find)
    starts = list(islice(_positions(text, found), 1_000)) if found else [start for start, _ in escaped]
    if not starts:
        reason = "Not patched: the text to find is not in the file."
        closest = _closest(text, unix)
        return Outcome(f"{reason}{closest}", failed=True) if closest else refused(reason)
    if len(starts) > 1 and not everywhere:
        return Outcome(_ambiguous(text, starts[:1_000]), failed=True)
    new = _ended(replace, like=found if found and "\n" in found else text)
    after = text.replace(found, new) if found else _rewritten(text, escaped, new)
    return refused("Not patched: nothing would change.") if after == text else after


def _rewritten(text: str, spans: list[tuple[int, int]], new: str) -> str:
    """Translate text that was shown with escapes: hidden characters of the file stay as they are."""
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
    """Return the text with the line endings that most lines of `like` have."""
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
        "Add surrounding lines to make it unique, or set all."
    )


def _closest(text: str, find: str) -> str:
    """Return the lines most similar to the first line to be found."""
    wanted = next((line.strip() for line in find.split("\n") if line.strip()), "")[:200]
    whole = _lines(text)[:20_000]
    lines: dict[str, str] = {}
    for number, (line, safe) in enumerate(zip(whole, redact_rows(whole, 0, len(whole)), strict=True), 1):
        lines.setdefault(line.strip()[:200], f"\n{number}: {_clipped(safe.rstrip())}")
    near = seldom.difflib.get_close_matches(wanted, lines, n=3)
    return "".join(["\nClosest lines:" if near else "", *(lines[line] for line in near)])


def _difference(before: list[str], after: list[str]) -> str:
    """Return a unified diff, without secrets. Common lines at the start and end are skipped, since comparing
    many lines is slow."""
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
    """Yield the hunks of a diff. Lines are compared as they are, and shown in their `safe` form."""
    left, right = safe
    for group in seldom.difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(AROUND):
        (_, first, _, second, _), (_, _, last, _, end) = group[0], group[-1]
        yield f"@@ -{start + first + 1},{last - first} +{start + second + 1},{end - second} @@"
        for tag, *(a, b, c, d) in group:
            if tag == "equal":
                yield from (f" {line}" for line in left[a:b])
            else:
                yield from (f"-{line}" for line in left[a:b])
                yield from (f"+{line}" for line in right[c:d])
