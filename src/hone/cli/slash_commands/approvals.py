"""`/permissions`: the rules of this folder, numbered, so that they can be removed."""

from collections.abc import Sequence

from hone.cli.output import columns, lay_out
from hone.cli.slash import ChatState
from hone.core.errors import Refused
from hone.core.visible import text_to_path, visible
from hone.runtime.permissions.factory import SourcedRule

HOW = "/permissions remove N removes a rule. Rules of a file are changed in that file."
NONE = "No rule is stored. Answer a question with “always” to add one, or use: hone permissions allow"
PLACES = {"everywhere": "", "this folder": "."}
"""Where the owner's answers are stored, by their displayed names."""


async def permissions(state: ChatState, argument: str) -> str:
    folder = state.session.header.folder
    found = [*state.hone.permissions.sources(text_to_path(folder))]
    words = argument.split()
    if not words:
        return "\n".join(list_rules(found, columns()))
    if words[0] not in ("remove", "rm") or len(words) != 2:
        raise Refused("Use /permissions to list the rules, or /permissions remove 2 to remove the second.")
    each = select(found, words[1])
    key = folder if PLACES[each.source] else ""
    if not state.hone.permissions.rules.remove(key, each.rule):
        raise Refused("That rule is already gone. /permissions lists those that are left.")
    return f"Removed: {each.kind} {visible(str(each.rule))}. The next such call asks you again."


def list_rules(found: Sequence[SourcedRule], width: int) -> list[str]:
    if not found:
        return [NONE]
    rows = [
        (f"{number}", each.kind, _source(each), visible(str(each.rule)))
        for number, each in enumerate(found, 1)
    ]
    return [*lay_out(("", "", "where", "rule"), rows, width), HOW]


def _source(each: SourcedRule) -> str:
    return each.source if each.counts else f"{each.source} (not approved)"


def select(found: Sequence[SourcedRule], word: str) -> SourcedRule:
    """Return the rule with this number. Raises Refused for one that cannot be removed here."""
    number = int(word) if word.isascii() and word.isdigit() and len(word) < 6 else 0
    if not 0 < number <= len(found):
        raise Refused(f"There is no rule {visible(word)}. /permissions lists them with their numbers.")
    each = found[number - 1]
    if each.source not in PLACES:
        raise Refused(f"That rule is written in {each.source}. Change it there.")
    return each
