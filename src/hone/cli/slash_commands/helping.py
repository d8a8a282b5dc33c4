"""`/help`: list the commands by subject, and the keys."""

from collections.abc import Iterator, Mapping

from hone.cli.output import columns, wrap_cells
from hone.cli.slash import COMMANDS, ChatState, Command

SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "Conversation": (
        *("new", "clear", "retry", "edit", "rewind", "diff", "sessions", "resume", "compact", "export"),
        *("copy", "output", "verbose"),
    ),
    "Model and rights": ("model", "mode", "permissions", "context", "cost", "doctor"),
    "What Hone knows": (
        *("remember", "memory", "skills", "skill", "pending", "approve", "reject", "log", "undo"),
        *("reviews", "review"),
    ),
}
OTHERS = "Other"
KEYS = {
    "Enter": "Send. Alt-Enter, or a \\ at the end of a line, begins another line.",
    "Esc": "Stop the answer. So does Ctrl-C. What you type meanwhile reaches the model at its next step.",
    "Esc Esc": "At an empty prompt: go back to an earlier message.",
    "Tab": "Complete commands and file names.",
    "@path": "Attach a file or a picture. Its text counts as the file's, not as your words.",
    "!command": "Run a command yourself. You choose whether the model sees its output.",
    "/NAME": "Use the skill NAME.",
    "Ctrl-R": "Search what you typed before.",
    "Ctrl-G": "Write the message in your editor. So does Ctrl-X Ctrl-E.",
}
WIDEST = 27
"""The columns for a command with its argument; a wider one gets its own line."""


async def show_help(_: ChatState, __: str) -> str:
    return "\n".join(lay_out_help(COMMANDS, columns()))


def lay_out_help(commands: Mapping[str, Command], width: int) -> Iterator[str]:
    """Yield the help in lines that fit into the width."""
    listed = {name for names in SUBJECTS.values() for name in names}
    others = tuple(name for name in commands if name not in listed)
    for subject, names in {**SUBJECTS, OTHERS: others}.items():
        known = [name for name in names if name in commands]
        if known:
            yield f"{subject}:"
        for name in known:
            command = commands[name]
            yield from _row(f"/{name} {command.argument}".rstrip(), command.help, width)
    yield "Keys:"
    for key, text in KEYS.items():
        yield from _row(key, text, width)


def _row(name: str, text: str, width: int) -> Iterator[str]:
    """Yield a name with its meaning next to it, or below it if it is too long."""
    first, *further = wrap_cells(text, max(20, width - WIDEST - 1)) or [""]
    if len(name) + 4 > WIDEST:
        yield f"  {name}"
        name = ""
    yield f"  {name}".ljust(WIDEST) + first
    yield from (" " * WIDEST + line for line in further)
