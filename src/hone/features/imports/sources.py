"""Find the files in which each agent stores its conversations. They are read one by one, never changed."""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from hone.core.errors import HoneError
from hone.core.regex import regex
from hone.core.visible import one_line
from hone.features.imports import claude, codex, hermes, openai, opencode
from hone.features.imports.conversation import REPEATED, Conversation, ImportReport, Row
from hone.features.imports.expansions import Find, find_for, label
from hone.features.imports.reading_sqlite import WAL
from hone.files.atomic import open_file

Reader = Callable[[Iterable[tuple[int, Row]], str, ImportReport], Iterator[Conversation]]
Content = Callable[[Path, ImportReport], Iterator[Conversation]]
LINES: Mapping[str, tuple[Reader, str, str]] = {
    claude.NAME: (claude.read, "projects", "*.jsonl"),
    openai.NAME: (openai.read, ".", "*.jsonl"),
    codex.NAME: (codex.read, "sessions", "rollout-*.jsonl"),
}
SOURCES = (*LINES, hermes.NAME, opencode.NAME)
STATE = "state.db"
LONGEST = 64 * 1024 * 1024
"""Bytes of a line."""
_UUID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")


class SourceFile(Struct, frozen=True):
    """A file with conversations. Its content may be read twice."""

    path: Path
    content: Content

    def read(self, report: ImportReport) -> Iterator[Conversation]:
        """Yield conversations. Raises OSError or StoreError if the file cannot be read to its end."""
        return self.content(self.path, report)

    @property
    def size(self) -> int:
        found = _stat(self.path)
        return found.st_size if found else 0

    @property
    def mark(self) -> tuple[int, ...]:
        """Return a mark that changes with the file: size and time, including SQLite's files next to it."""
        found = map(_stat, (self.path, self.path.with_name(f"{self.path.name}{WAL}")))
        return tuple(number for each in found if each for number in (each.st_size, each.st_mtime_ns))

    @property
    def at(self) -> datetime:
        found = _stat(self.path)
        return datetime.fromtimestamp(found.st_mtime, UTC) if found else datetime.now(UTC)


def source_files(source: str, path: Path) -> list[SourceFile]:
    """Return the files of an agent. Raises HoneError if there are none."""
    found, find_templates = _source_files(source, path), find_for(source, path)
    if find_templates is None:
        return found
    return [SourceFile(each.path, _labeled(each.content, find_templates)) for each in found]


def _labeled(content: Content, find_templates: Find) -> Content:
    return lambda path, report: label(content(path, report), find_templates)


def _source_files(source: str, path: Path) -> list[SourceFile]:
    if source == hermes.NAME:
        return _hermes(path)
    if source == opencode.NAME:
        return _opencode(path)
    reader, below, pattern = LINES[source]
    return [SourceFile(file, _lines(reader)) for file in find(path, below, pattern)]


def _lines(reader: Reader) -> Content:
    def content(path: Path, report: ImportReport) -> Iterator[Conversation]:
        with opened(path) as file:
            yield from reader(rows(file, path.name, report), path.stem, report)

    return content


def _hermes(home: Path) -> list[SourceFile]:
    """Return the database first, then, of the files that older versions wrote, those that it lacks."""
    seen: set[str] = set()

    def kept(path: Path, report: ImportReport) -> Iterator[Conversation]:
        for each in hermes.conversations(path, report):
            seen.add(each.own)
            yield each

    def others(content: Content) -> Content:
        def filtered(path: Path, report: ImportReport) -> Iterator[Conversation]:
            for each in content(path, report):
                if each.own in seen:
                    report.left[REPEATED] += len(each.messages)
                else:
                    yield each

        return filtered

    state = home if home.is_file() else home / STATE
    if not home.exists():
        raise HoneError(f"{one_line(str(home), 200)} is not there.")
    found = [SourceFile(state, kept)] if state.is_file() else []
    folder = home / "sessions"
    files = find(folder, ".", "*.json*") if home.is_dir() and folder.is_dir() else []
    for file in files:
        content = _lines(hermes.read_lines) if file.suffix == ".jsonl" else _object
        found.append(SourceFile(file, others(content)))
    return found


def _opencode(path: Path) -> list[SourceFile]:
    """Return the database of the stable channel, and those of other channels."""
    if not path.is_dir():
        return [SourceFile(each, opencode.conversations) for each in find(path, ".", "")]
    found = sorted(path.glob("opencode*.db"))
    if not found and (path / "storage").is_dir():
        raise HoneError(
            f"{one_line(str(path), 200)} has no {opencode.DATABASE}: it is from OpenCode before 1.2. Start a "
            "later OpenCode once; it moves your conversations into its database."
        )
    return [SourceFile(each, opencode.conversations) for each in found]


def _object(path: Path, report: ImportReport) -> Iterator[Conversation]:
    with opened(path) as file:
        data = file.read()
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        report.fault(path.name, "it is no JSON")
        return
    found = hermes.read_file(value, path.stem, report) if isinstance(value, dict) else None
    if found:
        yield found


def default_folder(source: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return an agent's default folder."""
    own = {
        claude.NAME: ("CLAUDE_CONFIG_DIR", ".claude"),
        codex.NAME: ("CODEX_HOME", ".codex"),
        hermes.NAME: ("HERMES_HOME", ".hermes"),
    }
    home = Path(environ.get("HOME") or Path.home())
    if source == opencode.NAME:
        return Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    variable, name = own[source]
    return Path(environ.get(variable) or home / name)


def recognize(path: Path) -> str:
    """Return the agent whose files are at a path, by their names. Raises HoneError."""
    if not path.exists():
        raise HoneError(f"{one_line(str(path), 200)} is not there.")
    folder = path if path.is_dir() else path.parent
    if path.name == STATE or (folder / STATE).is_file():
        return hermes.NAME
    if any(folder.glob("opencode*.db")):
        return opencode.NAME
    names = [each.name for each in find(path, ".", "*.jsonl")]
    if any(name.startswith("rollout-") for name in names):
        return codex.NAME
    if any(_UUID.fullmatch(name) for name in names):
        return claude.NAME
    if names:
        return openai.NAME
    raise HoneError(f"{one_line(str(path), 200)} holds no conversations of an agent that Hone knows.")


def find(path: Path, below: str, pattern: str) -> list[Path]:
    """Return the file, or those of a folder (preferably those `below` it, if that exists), oldest first.
    Raises HoneError if there is no such path."""
    if not path.is_dir():
        if not path.exists():
            raise HoneError(f"{one_line(str(path), 200)} is not there.")
        return [path]
    top = path / below if (path / below).is_dir() else path
    files = [(_stat(each), each) for each in top.rglob(pattern) if each.is_file()]
    return [path for _, path in sorted((found.st_mtime if found else 0.0, path) for found, path in files)]


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def opened(path: Path) -> BinaryIO:
    """Open a file. Raises OSError; a pipe or device is not waited for."""
    file = open_file(path, follow=True)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "it is no plain file", str(path))
    return file


def rows(file: BinaryIO, name: str, report: ImportReport) -> Iterator[tuple[int, Row]]:
    """Yield each line that is a JSON object, with its number. Count the others."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        whole = line.endswith(b"\n") or len(line) < LONGEST
        while not whole:
            rest = file.readline(LONGEST)
            whole = rest.endswith(b"\n") or len(rest) < LONGEST
            line = b""
        if not line:
            report.fault(f"{name}, line {number}", "it is too long")
        elif line.strip():
            try:
                value = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                report.fault(f"{name}, line {number}", "it is no JSON")
                continue
            if isinstance(value, dict):
                yield number, value
            else:
                report.fault(f"{name}, line {number}", "it is no object")
