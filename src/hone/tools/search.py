"""Search files by content or by name. Skips binary files, large files, and files that a .gitignore lists."""

import asyncio
import os
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from itertools import chain, islice, product
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from hone.core.permit import Effect
from hone.core.regex import regex
from hone.core.secrets import redact_rows
from hone.core.tool import Outcome, Tool, ToolKind
from hone.tools.define import tool
from hone.tools.files import Positive, decoded, failure, load, located, shown

LARGEST = 2**20
WIDEST = 300
REACH = 2_000
"""Characters of a line that are searched: patterns that backtrack take long on long lines."""
IGNORED = frozenset((".git", ".hg", ".svn", ".tox", ".venv", "__pycache__", "node_modules"))
CACHE = regex(r"\.\w+_cache")
_NOTHING = regex(r"(?!)")
Glob = tuple[re.Pattern[str] | None, ...]
"""One pattern per part of a path; None stands for `**`, any number of parts."""


def search_tool(folder: Path) -> Tool:
    """Relative paths start at `folder`."""

    @tool(effects={Effect.READ}, readonly=True, kind=ToolKind.FILE)
    async def search_files(
        pattern: Annotated[str, "Python regex; empty: list files that fit glob"] = "",
        path: str = ".",
        glob: Annotated[str, "like *.py or src/**/*.ts"] = "",
        limit: Positive = 100,
    ) -> Outcome:
        """Search text files line by line, or list files. Leaves out what .gitignore names."""
        query = _query(pattern, glob)
        if isinstance(query, Outcome):
            return query
        try:
            return await asyncio.to_thread(_search, located(folder, path), path, query, limit)
        finally:
            query.stop.set()  # a cancelled task leaves its thread behind; this ends it

    return search_files


class Rule(Struct, frozen=True):
    """A line of the .gitignore in the folder `base`, which is given in parts."""

    base: tuple[str, ...]
    glob: Glob
    negated: bool
    folders: bool


@dataclass(slots=True)
class Search:
    """What is sought, and a count of what was left out."""

    regex: re.Pattern[str] | None
    globs: tuple[Glob, ...]
    stop: threading.Event = field(default_factory=threading.Event)
    searched: int = 0
    skipped: int = 0
    unreadable: int = 0
    clipped: int = 0

    def wants(self, parts: tuple[str, ...]) -> bool:
        return not self.globs or any(fits(glob, parts) for glob in self.globs)


def _query(pattern: str, glob: str) -> Search | Outcome:
    if not pattern and not glob:
        return Outcome("Nothing to search for: give a pattern, a glob, or both.", failed=True)
    risk = _risk(pattern)
    if risk:
        return Outcome(f"The pattern was not used: {risk}.", failed=True)
    try:
        with warnings.catch_warnings(action="ignore"):
            sought = re.compile(pattern) if pattern else None
    except (re.error, RecursionError, OverflowError) as error:
        return Outcome(f"The pattern is not a valid Python regex: {error}.", failed=True)
    return Search(sought, tuple(globbed(each) for each in _alternatives(glob)) if glob else ())


def _search(start: Path, named: str, query: Search, limit: int) -> Outcome:
    try:
        os.stat(start)
    except (OSError, ValueError) as error:
        return failure("searched", start, error)
    label = "" if os.path.normpath(named) == "." else f"{shown(named).rstrip('/')}/"
    files = ((path, f"{label}{shown('/'.join(parts))}".rstrip("/")) for path, parts in _files(start, query))
    rows = _matches(files, query.regex, query) if query.regex else (name for _, name in files)
    found = list(islice(rows, limit + 1))
    if len(found) > limit:
        found[limit:] = [f"[there is more: these are the first {limit}]"]
    nothing = f"No match in {query.searched:,} files." if query.regex else "No file fits."
    return Outcome("\n".join([*(found or [nothing]), *_remarks(query)]))


def _remarks(query: Search) -> Iterator[str]:
    if query.skipped:
        yield f"[{query.skipped:,} binary or large files were not searched]"
    if query.unreadable:
        yield f"[{query.unreadable:,} files or folders could not be read]"
    if query.clipped:
        yield f"[{query.clipped:,} long lines were searched in their first {REACH:,} characters only]"


def _matches(files: Iterator[tuple[Path, str]], regex: re.Pattern[str], query: Search) -> Iterator[str]:
    """Lines are matched as they are, and shown as they read in the redacted file."""
    for path, name in files:
        lines = _content(path, query)
        safe: Sequence[str] = ()
        for number, line in enumerate(lines):
            if query.stop.is_set():
                return
            query.clipped += len(line) > REACH
            if regex.search(line, 0, REACH):
                safe = safe or redact_rows(lines, 0, len(lines))
                cut = " […]" if len(safe[number]) > WIDEST else ""
                yield f"{name}:{number + 1}: {safe[number][:WIDEST]}{cut}"


def _content(path: Path, query: Search) -> list[str]:
    try:
        text = decoded(load(path)) if os.stat(path).st_size <= LARGEST else None
    except OSError:
        query.unreadable += 1
        return []
    except ValueError:
        text = None
    query.skipped += text is None
    if text is None:
        return []
    query.searched += 1
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _files(start: Path, query: Search) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Each file below `start` with its path in parts, in the order of names. Links are not followed."""
    if not start.is_dir():
        yield start, ()
        return
    above, rules = _inherited(start)
    waiting: list[tuple[tuple[str, ...], tuple[Rule, ...]]] = [((), rules)]
    while waiting and not query.stop.is_set():
        parts, rules = waiting.pop()
        entries = _listed(start.joinpath(*parts), query)
        if (".gitignore", False, True) in entries:
            rules += _rules(start.joinpath(*parts), (*above, *parts))
        inner = []
        for name, is_folder, is_file in entries:
            below = (*parts, name)
            if _ignored((*above, *below), is_folder, rules):
                continue
            if is_folder:
                inner.append((below, rules))
            elif is_file and query.wants(below):
                yield start.joinpath(*below), below
        waiting.extend(reversed(inner))


def _listed(folder: Path, query: Search) -> list[tuple[str, bool, bool]]:
    """Name, is it a folder, is it a file; neither for a link."""
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


def _inherited(start: Path) -> tuple[tuple[str, ...], tuple[Rule, ...]]:
    """Where `start` lies in its repository, and the rules that come from above it."""
    whole = start.resolve()
    top = next((each for each in (whole, *whole.parents) if (each / ".git").exists()), whole)
    above = whole.relative_to(top).parts
    rules: tuple[Rule, ...] = ()
    for depth in range(len(above)):
        rules += _rules(top.joinpath(*above[:depth]), above[:depth])
    return above, rules


def _rules(folder: Path, base: tuple[str, ...]) -> tuple[Rule, ...]:
    try:
        lines = decoded(load(folder / ".gitignore")).splitlines()
    except (OSError, ValueError):
        return ()
    return tuple(_rule(line.strip(), base) for line in lines if line.strip() and not line.startswith("#"))


def _rule(line: str, base: tuple[str, ...]) -> Rule:
    pattern = line.removeprefix("!")
    bare = pattern.removeprefix("\\").rstrip("/")
    return Rule(base, globbed(bare), negated=line.startswith("!"), folders=pattern.endswith("/"))


def _ignored(parts: tuple[str, ...], is_folder: bool, rules: tuple[Rule, ...]) -> bool:
    """The last rule that fits decides."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders) and fits(rule.glob, parts[len(rule.base) :]):
            return not rule.negated
    return False


def globbed(pattern: str) -> Glob:
    """A pattern without a slash is for names in any folder, one with a slash for paths from the top."""
    parts = pattern.strip("/").split("/")
    if "/" not in pattern:
        parts.insert(0, "**")
    return tuple(None if part == "**" else re.compile(translate(part)) for part in parts)


def fits(glob: Glob, parts: tuple[str, ...]) -> bool:
    """Of several `**` only the last one seen needs another try, so the work is bounded by the two lengths."""
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
    """`*.{js,ts}` is two patterns."""
    outside, inside = re.split(r"\{[^{}]*\}", glob), re.findall(r"\{([^{}]*)\}", glob)
    choices = [each.split(",") for each in inside]
    return [
        "".join(chain.from_iterable(zip(outside, (*chosen, ""), strict=True)))
        for chosen in islice(product(*choices), 1_000)
    ]


_TOKEN = regex(r"\\.|\[\^?\]?[^\]\\]*(?:\\.[^\]\\]*)*\]|\(\??|\)|[*+?|]|\{\d*,?\d*\}", re.DOTALL)
_REPEATED = regex(r"[*+]|\{\d*,\}|\{(?:\d*,)?\d{2,}\}")


def _risk(pattern: str) -> str:
    """Why a pattern might never come to an end. The matcher cannot be interrupted and the process would stand
    still with it, so a group that repeats must not hold anything that repeats or chooses."""
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
