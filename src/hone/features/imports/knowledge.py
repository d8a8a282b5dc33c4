"""Gather what another agent was taught: memories, instructions, skills, servers and rules, as proposals."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hone.core.errors import HoneError, Refused
from hone.core.ledger import USER, Target, project
from hone.core.messages import digest
from hone.core.regex import regex
from hone.core.visible import one_line
from hone.features.imports import claude, codex, hermes
from hone.features.imports.proposals import (
    LARGEST,
    Gathered,
    ImportProposal,
    find_folders,
    gather,
    read_skill,
)
from hone.features.imports.rules_elsewhere import RuleProposal, read_claude_rules, read_codex_rules
from hone.features.imports.servers_elsewhere import (
    ServerProposal,
    read_json_servers,
    read_toml_servers,
    read_yaml_servers,
)
from hone.features.imports.sources import opened
from hone.knowledge import journal

T = TypeVar("T")
LONGEST = 500
"""The most characters of an instruction that becomes an entry of the journal."""
_ITEM = regex(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
_SKIPPED = regex(r"\s*(?:#|<!--|@|\||---+\s*$|===+\s*$)")
_FENCE = regex(r"\s*(?:```|~~~)")
HEAD = 50
"""How many lines of a session file to search for its folder."""


@dataclass(slots=True)
class Moved:
    """What would be imported. `problems` list what cannot be."""

    learned: Gathered = field(default_factory=Gathered)
    servers: list[ServerProposal] = field(default_factory=list)
    rules: list[RuleProposal] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return self.learned.problems


def gather_knowledge(source: str, path: Path) -> Moved:
    """Read the folder of an agent. Nothing in it is changed. Raises HoneError if it is not there."""
    if not path.is_dir():
        raise HoneError(f"{one_line(str(path), 200)} is not there.")
    moved = Moved()
    {claude.NAME: _claude, codex.NAME: _codex, hermes.NAME: _hermes}[source](path, moved)
    seen: dict[RuleProposal, None] = dict.fromkeys(moved.rules)
    moved.rules = list(seen)
    return moved


def _claude(path: Path, moved: Moved) -> None:
    _instructions(path / "CLAUDE.md", USER, moved)
    for memory in sorted(path.glob("projects/*/memory/MEMORY.md")):
        folder = _find_folder(memory.parents[1])
        if folder:
            _instructions(memory, project(folder), moved)
        else:
            moved.problems.append(f"{one_line(str(memory), 200)}: nothing says which folder it is about.")
    _skills(path / "skills", "Claude Code's skills", moved)
    for name in ("settings.json", "settings.local.json"):
        moved.rules += _each(path / name, read_claude_rules, moved)
    for file in (path / ".claude.json", path.with_name(".claude.json")):
        moved.servers += _each(file, read_json_servers, moved)


def _codex(path: Path, moved: Moved) -> None:
    for name in ("AGENTS.md", "AGENTS.override.md"):
        _instructions(path / name, USER, moved)
    _skills(path / "skills", "Codex' skills", moved)
    _skills(path.with_name(".agents") / "skills", "Codex' skills", moved)
    for file in sorted((path / "rules").glob("*.rules")):
        moved.rules += _each(file, read_codex_rules, moved)
    moved.servers += _each(path / "config.toml", read_toml_servers, moved)


def _hermes(path: Path, moved: Moved) -> None:
    moved.learned = gather(path)
    _instructions(path / "SOUL.md", USER, moved)
    moved.servers += _each(path / "config.yaml", read_yaml_servers, moved)


def _each(file: Path, read: Callable[[bytes, str, list[str]], Iterator[T]], moved: Moved) -> list[T]:
    data = _load(file, moved)
    return list(read(data, file.name, moved.problems)) if data is not None else []


def _load(file: Path, moved: Moved) -> bytes | None:
    """Return the bytes of a file; None if there is none. An unreadable file is reported."""
    try:
        with opened(file) as found:
            data = found.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        moved.problems.append(f"{one_line(str(file), 200)} cannot be read: {error.strerror}.")
        return None
    if len(data) > LARGEST:
        moved.problems.append(f"{one_line(str(file), 200)} has more than {LARGEST:,} bytes.")
        return None
    return data


def _instructions(file: Path, target: Target, moved: Moved) -> None:
    data = _load(file, moved)
    if data is None:
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        moved.problems.append(f"{one_line(str(file), 200)} is not text in UTF-8.")
        return
    for entry in split_instructions(text):
        if len(entry) > LONGEST:
            moved.problems.append(f"{file.name}: too long for an entry of the journal: {one_line(entry, 80)}")
            continue
        mark = digest(entry.encode("utf-8", "replace"))
        moved.learned.proposals.append(ImportProposal(target, journal.Add(entry), mark, file.name))


def split_instructions(text: str) -> list[str]:
    """Return each item and each paragraph of a Markdown text once, without headings, comments and code."""
    found: list[list[str]] = [[]]
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            continue
        elif not line.strip() or _SKIPPED.match(line):
            found.append([])
        elif item := _ITEM.match(line):
            found.append([line[item.end() :].strip()])
        else:
            found[-1].append(line.strip())
    return list(dict.fromkeys(entry for lines in found if (entry := " ".join(lines).strip())))


def _skills(top: Path, source: str, moved: Moved) -> None:
    for folder in find_folders(top):
        try:
            moved.learned.proposals.append(read_skill(folder, source))
        except (Refused, ValueError) as error:
            moved.problems.append(f"{one_line(str(folder), 200)}: {one_line(str(error), 300)}")


def _find_folder(place: Path) -> str:
    """Return the folder that the neighboring sessions were about."""
    for file in sorted(place.glob("*.jsonl")):
        try:
            with opened(file) as found:
                lines: Sequence[bytes] = [found.readline(1 << 20) for _ in range(HEAD)]
        except OSError:
            continue
        for line in lines:
            match = re.search(rb'"cwd":\s*("(?:[^"\\]|\\.)*")', line)
            if match:
                return str(json.loads(match[1]))
    return ""
