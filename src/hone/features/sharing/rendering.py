"""Make what another agent reads of a skill: its folder, or a section of an AGENTS.md."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from hone.core.errors import Refused
from hone.core.ledger import Target, copy, section
from hone.core.skill import DOCUMENT
from hone.core.visible import path_to_text
from hone.features.sharing.grants import strip_grants
from hone.knowledge.copies import TEXT
from hone.knowledge.skills.document import decode, parse
from hone.knowledge.skills.facts import split_facts

CLAUDE, CODEX, AGENTS_MD = "claude-code", "codex", "agents-md"
FILE = "AGENTS.md"
_MARK = "<!-- hone: "


def find_target(to: str, name: str, folder: Path, environ: Mapping[str, str] = os.environ) -> Target:
    """Return where another agent reads a skill of this name. Raises Refused for an unknown agent."""
    home = Path(environ.get("HOME") or Path.home())
    agent, _, path = to.partition(":")
    if agent == AGENTS_MD:
        place = Path(path or FILE).expanduser()
        place = folder / place
        return section(path_to_text((place / FILE if place.is_dir() else place).absolute()), name)
    if path:
        raise Refused(f"Only {AGENTS_MD} takes a path: {AGENTS_MD}:{path}.")
    if agent == CLAUDE:
        own = environ.get("CLAUDE_CONFIG_DIR")
        return copy(path_to_text(Path(own or home / ".claude").absolute() / "skills" / name))
    if agent == CODEX:
        return copy(path_to_text(home.absolute() / ".agents" / "skills" / name))
    raise Refused(f"{to!r} is none of {CLAUDE}, {CODEX} and {AGENTS_MD}[:PATH].")


def render_folder(files: Mapping[str, bytes], kept: Collection[str]) -> dict[str, bytes]:
    """Return a skill's files for another agent, without the grants that are not `kept`."""
    own = split_facts(files)[0]
    document = strip_grants(decode(DOCUMENT, own[DOCUMENT]), kept)
    parse(document)
    return {**own, DOCUMENT: document.encode()}


def render_section(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a section: the skill's purpose and its steps. Other files are left out."""
    document = parse(strip_grants(decode(DOCUMENT, files[DOCUMENT]), ()))
    if _MARK in document.body:
        raise Refused(f"The skill {document.name} holds a mark of Hone's own, so it cannot be a section.")
    text = f"## {document.name}\n\n{' '.join(document.description.split())}\n\n{document.body}\n"
    return {TEXT: text.encode()}
