"""`/remember`: save the owner's own words in the journal immediately."""

from hone.cli.slash import ChatState
from hone.core.errors import Refused
from hone.core.screen import screen
from hone.core.visible import one_line, text_to_path
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.sections import section, targets


async def remember(state: ChatState, argument: str) -> str:
    """Save the text after the command. A leading `user:` or `project:` names another part of the journal."""
    part, text = parse_part(argument)
    if not text:
        raise Refused("What should I remember? Try: /remember The tests run with make check.")
    known = targets(text_to_path(state.session.header.folder))
    [entry] = await state.keeper.note([(known[part], Add(text))], OWNER)
    now = await section(state.keeper, known[part])
    warnings = [f"Note that {flag}." for flag in screen(text).flags]
    saved = f"Saved in {part} ({now.room}): {one_line(text, 100)}"
    return "\n".join(
        (*warnings, saved, f"It counts from your next message on. Undo it with: /undo {entry.id}")
    )


def parse_part(argument: str) -> tuple[str, str]:
    """Return which part of the journal a text is for, and the text."""
    name, colon, rest = argument.partition(":")
    if colon and name.strip().lower() in ("user", "project", "memory"):
        return name.strip().lower(), rest.strip()
    return "memory", argument.strip()
