"""Search files by content or by name. Skips binary files, large files, and files that a .gitignore lists."""

import asyncio
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from itertools import chain, islice, product
from pathlib import Path
from typing import Annotated

from msgspec import Struct, field

from hone.core.permissions import Action
from hone.core.permit import Effect
from hone.core.regex import regex
from hone.core.secrets import redact_rows
from hone.core.tool import Outcome, Tool, ToolKind, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.work import FileLabels, Work
from hone.files.opening import Place, find_path, read_at
from hone.tools.define import tool
from hone.tools.files import FILE_ERRORS, Absent, Positive, decoded, failure, located, permit, shown

LARGEST = 2**20
WIDEST = 300
REACH = 2_000
"""The most characters of a line to search: patterns that backtrack are slow on long lines."""
DEEPEST = 100
"""The deepest nesting of folders."""
IGNORED = frozenset((".git", ".hg", ".svn", ".tox", ".venv", "__pycache__", "node_modules"))
CACHE = regex(r"\.\w+_cache")
_NOTHING = regex(r"(?!)")
Glob = tuple[re.Pattern[str] | None, ...]
"""One pattern per part of a path. None stands for `**`, any number of parts."""


def search_tool(folder: Path, work: Work) -> Tool:
    """Return the search tool. Relative paths start at `folder`."""

    @tool(effects={Effect.READ}, readonly=True, kind=ToolKind.FILE)
    async def search_files(
        context: ToolContext,
        pattern: Annotated[str, "Python regex; empty: list the files that match glob"] = "",
        path: str = ".",
        glob: Annotated[str, "such as *.py or src/**/*.ts"] = "",
        limit: Positive = 100,
    ) -> Outcome:
        """Search text files line by line, or list files. Skips what .gitignore lists."""
        query = _query(pattern, glob, context.permissions.reader(), work.labels)
        if isinstance(query, Outcome):
            return query
        try:
            with find_path(folder, path) as place:
                await permit(context, "search_files", Action.READ, place)
                if not place.exists:
                    raise Absent(place, work.labels)
                return await asyncio.to_thread(_search, place, path, query, limit)
        except FILE_ERRORS as error:
            return failure("searched", located(folder, path), error)
        finally:
            query.stop.set()  # a cancelled task leaves its thread behind; this stops the thread

    return search_files


class IgnoreRule(Struct, frozen=True):
    """A line of the .gitignore in the folder `base`, which is given in parts."""

    base: tuple[str, ...]
    glob: Glob
    negated: bool
    folders: bool


class Search(Struct):
    """A search: its pattern, counts of what was left out, and the label of what was found."""

    regex: re.Pattern[str] | None
    globs: tuple[Glob, ...]
    may_read: Callable[[Path], bool]
    labels: FileLabels
    trust: Trust = Trust.LOCAL
    stop: threading.Event = field(default_factory=threading.Event)
    searched: int = 0
    skipped: int = 0
    unreadable: int = 0
    closed: int = 0
    clipped: int = 0

    def wants(self, parts: tuple[str, ...]) -> bool:
        return not self.globs or any(fits(glob, parts) for glob in self.globs)


class SearchedFile(Struct, frozen=True):
    """A file in an open folder, with its real path and its path below the start, in parts."""

    folder: int
    path: Path
    parts: tuple[str, ...]


def _query(pattern: str, glob: str, may_read: Callable[[Path], bool], labels: FileLabels) -> Search | Outcome:
    if not pattern and not glob:
        return refused("Nothing to search for: give a pattern, a glob, or both.")
    risk = _risk(pattern)
    if risk:
        return refused(f"The pattern was not used: {risk}.")
    try:
        with warnings.catch_warnings(action="ignore"):
            sought = re.compile(pattern) if pattern else None
    except (re.error, RecursionError, OverflowError) as error:
        return refused(f"The pattern is not a valid Python regex: {error}.")
    globs = tuple(globbed(each) for each in _alternatives(glob)) if glob else ()
    return Search(sought, globs, may_read, labels)


def _search(place: Place, named: str, query: Search, limit: int) -> Outcome:
    query.trust = min(query.trust, query.labels.of_folder(place.path))
    label = "" if os.path.normpath(named) == "." else f"{shown(named).rstrip('/')}/"
    files = _files(place, query)
    rows = _matches(files, label, query) if query.regex else (_name(label, file) for file in files)
    found = list(islice(rows, limit + 1))
    if len(found) > limit:
        found[limit:] = [f"[there are more; these are the first {limit}]"]
    nothing = f"No match in {query.searched:,} files." if query.regex else "No file matches."
    trust = query.trust if found else Trust.AGENT
    return Outcome("\n".join([*(found or [nothing]), *_remarks(query)]), trust=trust)


def _name(label: str, file: SearchedFile) -> str:
    return f"{label}{shown('/'.join(file.parts))}".rstrip("/")


def _remarks(query: Search) -> Iterator[str]:
    if query.skipped:
        yield f"[{query.skipped:,} binary or large files were not searched]"
    if query.unreadable:
        yield f"[{query.unreadable:,} files or folders could not be read]"
    if query.closed:
        yield f"[{query.closed:,} files or folders may hold secrets and were skipped; read_file asks first]"
    if query.clipped:
        yield f"[{query.clipped:,} long lines were searched only in their first {REACH:,} characters]"


def _matches(files: Iterator[SearchedFile], label: str, query: Search) -> Iterator[str]:
    """Yield matching lines. They are matched as they are, and shown as in the redacted file."""
    for file in files:
        data = _content(file, query)
        lines = _lines(data, query)
        safe: Sequence[str] = ()
        for number, line in enumerate(lines):
            if query.stop.is_set():
                return
            query.clipped += len(line) > REACH
            if query.regex and query.regex.search(line, 0, REACH):
                if not safe:
                    query.trust = min(query.trust, query.labels.of_file(file.path, data or b""))
                    safe = redact_rows(lines, 0, len(lines))
                cut = " […]" if len(safe[number]) > WIDEST else ""
                yield f"{_name(label, file)}:{number + 1}: {safe[number][:WIDEST]}{cut}"


def _content(file: SearchedFile, query: Search) -> bytes | None:
    try:
        data = read_at(file.folder, file.path.name, LARGEST)
    except OSError:
        query.unreadable += 1
        return None
    query.skipped += data is None
    return data


def _lines(data: bytes | None, query: Search) -> list[str]:
    if data is None:
        return []
    try:
        text = decoded(data)
    except ValueError:
        query.skipped += 1
        return []
    query.searched += 1
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _files(place: Place, query: Search) -> Iterator[SearchedFile]:
    """Yield each file below a path, sorted by name. Links are not followed."""
    if not place.is_folder:
        yield SearchedFile(place.folder, place.path, ())
        return
    above, rules = _inherited(place.path)
    yield from _walk(place.scan(), place.path, (), above, rules, query)


def _walk(
    folder: int,
    path: Path,
    parts: tuple[str, ...],
    above: tuple[str, ...],
    rules: tuple[IgnoreRule, ...],
    query: Search,
) -> Iterator[SearchedFile]:
    """Walk an open folder, and close it."""
    try:
        entries = _listed(folder, query)
        if (".gitignore", False, True) in entries:
            rules += _rules(folder, (*above, *parts))
        kept = [each for each in entries if not _ignored((*above, *parts, each[0]), each[1], rules)]
        for name, _, is_file in kept:
            if query.stop.is_set():
                return
            below = (*parts, name)
            if is_file and query.wants(below) and _may_read(path / name, query):
                yield SearchedFile(folder, path / name, below)
        for name, is_folder, _ in kept:
            if is_folder and len(parts) < DEEPEST and _may_read(path / name, query):
                inner = _entered(folder, name, query)
                if inner is not None:
                    yield from _walk(inner, path / name, (*parts, name), above, rules, query)
    finally:
        os.close(folder)


def _may_read(path: Path, query: Search) -> bool:
    may = query.may_read(path)
    query.closed += not may
    return may


def _entered(folder: int, name: str, query: Search) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        query.unreadable += 1
        return None


def _listed(folder: int, query: Search) -> list[tuple[str, bool, bool]]:
    """Return the name of an entry, and whether it is a folder or a file; a link is neither."""
    try:
        with os.scandir(folder) as entries:
            return sorted(
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                for entry in entries
                if entry.name not in IGNORED and not CACHE.fullmatch(entry.name)
            )
    except OSError:
        query.unreadable += 1
        return []


def _inherited(start: Path) -> tuple[tuple[str, ...], tuple[IgnoreRule, ...]]:
    """Return the path of `start` inside its repository, and the rules from the folders above it."""
    top = next((each for each in (start, *start.parents) if (each / ".git").exists()), start)
    above = start.relative_to(top).parts
    rules: tuple[IgnoreRule, ...] = ()
    for depth in range(len(above)):
        folder = os.open(top.joinpath(*above[:depth]), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            rules += _rules(folder, above[:depth])
        finally:
            os.close(folder)
    return above, rules


def _rules(folder: int, base: tuple[str, ...]) -> tuple[IgnoreRule, ...]:
    try:
        lines = decoded(read_at(folder, ".gitignore", LARGEST) or b"").splitlines()
    except (OSError, ValueError):
        return ()
    return tuple(_rule(line.strip(), base) for line in lines if line.strip() and not line.startswith("#"))


def _rule(line: str, base: tuple[str, ...]) -> IgnoreRule:
    pattern = line.removeprefix("!")
    bare = pattern.removeprefix("\\").rstrip("/")
    return IgnoreRule(base, globbed(bare), negated=line.startswith("!"), folders=pattern.endswith("/"))


def _ignored(parts: tuple[str, ...], is_folder: bool, rules: tuple[IgnoreRule, ...]) -> bool:
    """Tell whether a path is ignored. The last matching rule decides."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders) and fits(rule.glob, parts[len(rule.base) :]):
            return not rule.negated
    return False


def globbed(pattern: str) -> Glob:
    """Parse a glob. A pattern without a slash is for names in any folder, one with a slash for paths from the
    top."""
    parts = pattern.strip("/").split("/")
    if "/" not in pattern:
        parts.insert(0, "**")
    return tuple(None if part == "**" else re.compile(translate(part)) for part in parts)


def fits(glob: Glob, parts: tuple[str, ...]) -> bool:
    """Tell whether a path matches. After a mismatch only the last `**` needs another try, so the work is
    bounded by the two lengths."""
    if len(glob) == 2 and glob[0] is None and glob[1]:
        return bool(parts and glob[1].match(parts[-1]))
    at = here = retry = 0
    star = -1
    while here < len(parts):
        part = glob[at] if at < len(glob) else _NOTHING
        if part is None:
            star, retry, at = at, here, at + 1
        elif part.match(parts[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            retry += 1
            at, here = star + 1, retry
        else:
            return False
    return all(part is None for part in glob[at:])


def _alternatives(glob: str) -> list[str]:
    """Expand braces: `*.{js,ts}` is two patterns."""
    outside, inside = re.split(r"\{[^{}]*\}", glob), re.findall(r"\{([^{}]*)\}", glob)
    choices = [each.split(",") for each in inside]
    return [
        "".join(chain.from_iterable(zip(outside, (*chosen, ""), strict=True)))
        for chosen in islice(product(*choices), 1_000)
    ]


_TOKEN = regex(r"\\.|\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*\]|\(\??|\)|[*+?|]|\{\d*,?\d*\}", re.DOTALL)
_REPEATED = regex(r"[*+]|\{\d*,\}|\{(?:\d*,)?\d{2,}\}")


def _risk(pattern: str) -> str:
    """Return why a pattern might never finish. The matcher cannot be interrupted and would block the process,
    so a group that repeats must not contain anything that repeats or chooses."""
    if len(pattern) > 1_000:
        return "it is longer than 1,000 characters"
    variable = [False]
    for token in _TOKEN.finditer(pattern):
        match token[0]:
            case "(" | "(?":
                variable.append(False)
            case ")" if len(variable) > 1:
                inner = variable.pop()
                if inner and _REPEATED.match(pattern, token.end()):
                    return "a repeated group holds another repetition, option or choice, which may never end"
                variable[-1] |= inner
            case "*" | "+" | "?" | "|":
                variable[-1] = True
            case repeat if repeat.startswith("{") and "," in repeat:
                variable[-1] = True
    return ""
