"""Tell the model the current permission mode, in a note with the user's next message. The prefix does not
change."""

from collections.abc import Iterable

from hone.core.messages import Message, Role
from hone.core.permissions import Mode

_HEADING = "# Permission mode: "
_NOTES = {
    Mode.PLAN: (
        "Do not change anything. You can read, search, and run commands that change nothing. Writes are "
        "refused, and the working folder is read-only for commands. When you know enough, answer with a "
        "plan: the steps in order, the files each step changes, and how to check the result. The user "
        "decides whether to carry it out."
    ),
    Mode.ASK: "The user is asked before each write and each command, and sees the diff or the command.",
    Mode.AUTO: "Work freely in the working folder and the sandbox. The user is asked about anything else.",
    Mode.FULL: "Nobody is asked. Your calls take effect at once. The user's deny rules still apply.",
}


def describe_mode(mode: Mode) -> str:
    return f"{_HEADING}{mode}\n{_NOTES[mode]}"


def find_mode(messages: Iterable[Message]) -> Mode | None:
    """Return the mode that a conversation was last told; None if it never was."""
    known = {f"{_HEADING}{mode}": mode for mode in Mode}
    notes = (message.note for message in messages if message.role is Role.USER and not message.template)
    lines = (line for note in notes if note for line in note.text.split("\n"))
    return next((known[line] for line in reversed([*lines]) if line in known), None)
