"""Find what in a skill would permit another agent something, and remove it.

Claude Code lets a skill use the tools in its front matter without asking, runs its hooks, and runs the
commands in its text marked as !`command` before the model reads it.
"""

import re
from collections.abc import Collection

from msgspec import Struct

from hone.core.regex import regex
from hone.knowledge.skills.document import FENCE, FIELDS, parse

HARMLESS = frozenset(FIELDS) - {"allowed-tools"}
_INLINE = regex(r"!(`[^`\n]+`)")
_BLOCK = regex(r"^([ \t]*(?:```+|~~~+))!", re.MULTILINE)
_COMMANDS = regex(r"^[ \t]*(```+|~~~+)!.*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)


class Grant(Struct, frozen=True):
    """`key` names it on the command line, `text` is its wording."""

    key: str
    text: str
    effect: str


def find_grants(document: str) -> list[Grant]:
    """Return what a SKILL.md would permit, in the order of the text."""
    extra = parse(document).extra
    found = [
        Grant(key, str(value), "lets the other agent use it without asking")
        for key, value in extra.items()
        if key not in HARMLESS
    ]
    inline = [each[0] for each in _INLINE.finditer(document)]
    inline += [document[each.start() :][: _end(document, each.start())] for each in _BLOCK.finditer(document)]
    runs = "runs this command before the other agent reads the skill"
    return [*found, *(Grant(f"command-{number}", text, runs) for number, text in enumerate(inline, 1))]


def _end(document: str, start: int) -> int:
    """Return the length of the block of commands that starts there."""
    found = _COMMANDS.match(document, start)
    return len(found[0]) if found else len(document)


def strip_grants(document: str, kept: Collection[str]) -> str:
    """Return a SKILL.md without the grants, except for those that are `kept`."""
    number = 0

    def plain(found: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return found[0] if f"command-{number}" in kept else found[1]

    stripped = _BLOCK.sub(plain, _INLINE.sub(plain, document))
    head, front, body = stripped.split(FENCE, 2)
    for grant in find_grants(document):
        if not grant.key.startswith("command-") and grant.key not in kept:
            front = _without(front, grant.key)
    return FENCE.join((head, front, body))


def _without(front: str, key: str) -> str:
    """Return front matter without a field and its lines."""
    field = rf"^(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')\s*:.*\n(?:[ \t-].*\n|[ \t]*\n)*"
    return re.sub(field, "", front, count=1, flags=re.MULTILINE)
