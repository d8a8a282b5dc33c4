"""Recognize messages that another agent made from the template of a command: the owner typed only a part.

OpenCode and Codex store the result of a template without saying so. So the templates themselves are compared:
those of the agent's own folder, and those of the project.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from hone.core.messages import Role
from hone.core.regex import regex
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.imports import codex, opencode
from hone.features.imports.conversation import Conversation

LEAST = 12
"""The fewest letters of a template outside its placeholders. With fewer, nearly all of a message was
typed."""
LARGEST, MOST = 262_144, 500
"""The most bytes of a template's file, and the most files of a folder to read."""
Template = tuple[str, ...]
"""The texts between the placeholders of a template, in order."""
Find = Callable[[str], list[Template]]
"""Returns the templates that apply in a folder."""
_HOLE = regex(r"\$\d+|\$[A-Z][A-Z0-9_]*|!`[^`]*`|(?<!\S)@\S+")
_HEAD = regex(r"\A---\r?\n.*?^---\s*?$", re.MULTILINE | re.DOTALL)
_COMMANDS = ("command", "commands")


def label(conversations: Iterable[Conversation], find: Find) -> Iterator[Conversation]:
    """Yield conversations, with foreign labels on what a template wrote and on what the agent said to it."""
    for each in conversations:
        templates = find(each.folder)
        expanded = False
        for number, raw in enumerate(each.messages):
            if raw.message.role is Role.USER and raw.trust is Trust.OWNER:
                fits = any(is_expansion(raw.message.text, template) for template in templates)
                expanded = expanded or fits
                if fits:
                    each.messages[number] = replace(raw, trust=Trust.FOREIGN)
            elif expanded and raw.trust > Trust.FOREIGN:
                each.messages[number] = replace(raw, trust=Trust.FOREIGN)
        each.mixed = each.mixed or expanded
        yield each


def is_expansion(said: str, template: Template) -> bool:
    """Tell whether a message contains all texts of a template, in order, ignoring the space between them."""
    text, at = _squeeze(said), 0
    for piece in template:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def parse_template(text: str) -> Template:
    """Return the texts of a template; none if it has hardly any."""
    pieces = tuple(filter(None, map(_squeeze, _HOLE.split(_HEAD.sub("", text, 1)))))
    return pieces if sum(map(len, pieces)) >= LEAST else ()


def find_for(source: str, path: Path, environ: Mapping[str, str] = os.environ) -> Find | None:
    """Return a finder of an agent's templates, with conversations at a path; None if the agent marks them."""
    known: dict[str, list[Template]] = {}
    if source == codex.NAME:
        home = next((each for each in (path, *path.parents) if (each / "prompts").is_dir()), path)
        general = _read_folder(home / "prompts")
        return lambda _: general
    if source != opencode.NAME:
        return None
    above = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or Path.home()) / ".config"
    general = [*_read_settings(Path(above) / "opencode")]

    def find(folder: str) -> list[Template]:
        if folder not in known:
            own = _read_settings(Path(folder), Path(folder) / ".opencode") if folder else ()
            known[folder] = [*general, *own]
        return known[folder]

    return find


def _read_settings(*folders: Path) -> Iterator[Template]:
    """Yield the commands of OpenCode: a file each, or entries of its settings."""
    for folder in folders:
        for name in _COMMANDS:
            yield from _read_folder(folder / name)
        entries = _read_json(folder / "opencode.json").get("command")
        for entry in entries.values() if isinstance(entries, dict) else ():
            text = entry.get("template") if isinstance(entry, dict) else None
            if isinstance(text, str) and (template := parse_template(text)):
                yield template


def _read_folder(folder: Path) -> list[Template]:
    texts = map(_read, sorted(islice(folder.rglob("*.md"), MOST)) if folder.is_dir() else ())
    return [template for text in texts if (template := parse_template(text))]


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(_read(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> str:
    """Return the text of a file; nothing if there is none that can be read."""
    try:
        return path.read_text("utf-8") if path.is_file() and path.stat().st_size <= LARGEST else ""
    except (OSError, ValueError):
        return ""


def _squeeze(text: str) -> str:
    return " ".join(text.split())
