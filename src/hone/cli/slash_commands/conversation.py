"""Commands about the conversation itself: begin another, repeat or change a message, copy text from it."""

import os
import sys
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from hone.app import Hone
from hone.cli.output import create, number_of
from hone.cli.render import Paint, describe, paint_for
from hone.cli.sessions import exported
from hone.cli.slash import ChatState, SlashDraft, SlashRequest
from hone.cli.terminal.screen import can_draw
from hone.core.errors import Refused
from hone.core.messages import Message, Reminder, Role, SystemNote
from hone.core.transcript import Node
from hone.core.visible import one_line, text_to_path, visible
from hone.files.exports import note_export
from hone.runtime.session import Session

WIPE = "\x1b[H\x1b[2J\x1b[3J"
"""Clears the screen and its scrollback."""
CLIPBOARD = 70_000
"""The most bytes that terminals accept for the clipboard."""
NOTHING_SAID = "You have not said anything in this conversation yet."


async def begin(state: ChatState, _: str) -> str:
    old = state.session
    if not len(old.transcript):
        return "This conversation is already new."
    await go_back(state, 0)
    return f"A new conversation begins. The last one is kept: /resume {old.id}"


async def clear(state: ChatState, argument: str) -> str:
    said = await begin(state, argument)
    return f"{WIPE}{said}" if can_draw() else said


async def retry(state: ChatState, _: str) -> SlashRequest:
    count, node = find_last(state.session.transcript.nodes)
    await go_back(state, count)
    return SlashRequest(node.message.text, message=own_parts(node.message), voice=node.trust)


async def edit(state: ChatState, _: str) -> SlashDraft:
    old = state.session
    count, node = find_last(old.transcript.nodes)
    await go_back(state, count)
    said = f"Change your message, then press Enter. The old conversation is kept: /resume {old.id}"
    return SlashDraft(node.message.text, said)


def find_last(nodes: Sequence[Node]) -> tuple[int, Node]:
    """Return the message that began the last turn, and how many precede it. Raises Refused if there is
    none."""
    begun = find_begun(nodes)
    if not begun:
        raise Refused(NOTHING_SAID)
    return begun[-1]


def find_begun(nodes: Sequence[Node]) -> list[tuple[int, Node]]:
    """Return the user's messages that began turns, each with how many precede it. A message sent while the
    agent worked did not begin a turn."""
    return [
        (count, node)
        for count, node in enumerate(nodes)
        if node.message.role is Role.USER
        and not node.message.template
        and (count == 0 or nodes[count - 1].message.role is Role.ASSISTANT)
    ]


def own_parts(message: Message) -> Message:
    """Return a message as the user sent it, without what Hone added."""
    parts = tuple(part for part in message.parts if not isinstance(part, SystemNote | Reminder))
    return Message(message.role, parts)


async def go_back(state: ChatState, count: int) -> None:
    """Continue in a new conversation with the first `count` messages of this one, which is kept."""
    hone, old = state.hone, state.session
    state.session = await _branch(hone, old, count)
    state.session.set_mode(old.mode)


async def _branch(hone: Hone, old: Session, count: int) -> Session:
    if count:
        return await hone.resume(await hone.branch(old.id, count))
    wanted = old.opening.wanted if old.opening else ""
    return await hone.session(old.agent.prefix.model, wanted)


async def export(state: ChatState, argument: str) -> str:
    session = state.session
    if not len(session.transcript):
        raise Refused(NOTHING_SAID)
    file = _place(text_to_path(session.header.folder), argument or f"hone-{session.id}.md")
    form = "json" if file.suffix.lower() == ".json" else "markdown"
    create(file, exported(await state.hone.sessions.load(session.id), form))
    note_export(state.hone.home, file)
    return f"Wrote {one_line(str(file), 200)}. Secrets are left out."


def _place(folder: Path, name: str) -> Path:
    return folder / os.path.expanduser(name)


async def copy(state: ChatState, _: str) -> str:
    said = (node.message.text for node in reversed(state.session.transcript.nodes) if _is_answer(node))
    text = next(said, "")
    if not text:
        raise Refused("There is no answer to copy yet.")
    if not can_draw():
        raise Refused("This terminal has no way to reach the clipboard. Use /export instead.")
    if len(text.encode()) > CLIPBOARD:
        raise Refused(f"The answer is longer than the {CLIPBOARD:,} bytes terminals accept. Use /export.")
    sys.stdout.write(to_clipboard(text))
    count = number_of(len(text), "character")
    return f"Sent {count} to your terminal's clipboard (OSC 52). Some terminals ignore it."


def to_clipboard(text: str) -> str:
    """Return the bytes with which a terminal puts a text on its clipboard."""
    return f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07"


def _is_answer(node: Node) -> bool:
    return node.message.role is Role.ASSISTANT and bool(node.message.text)


async def show_output(state: ChatState, argument: str) -> str:
    """Show the last result, or an earlier one, counted from the end."""
    number = argument or "1"
    if not (number.isascii() and number.isdigit() and len(number) < 6 and int(number)):
        raise Refused("Which result? /output shows the last one, /output 2 the one before it.")
    nodes = state.session.transcript.nodes
    results = [node.message.result for node in nodes if node.message.result]
    if int(number) > len(results):
        raise Refused(
            f"There are only {number_of(len(results), 'result')}." if results else "No tool has run."
        )
    result = results[-int(number)]
    calls = {call.id: call for node in nodes for call in node.message.calls}
    call, paint = calls.get(result.call), paint_for(sys.stdout)
    heading = paint.bold(describe(call)) if call else ""
    return "\n".join(filter(None, (heading, *color_diff(visible(result.text).split("\n"), paint))))


def color_diff(lines: Sequence[str], paint: Paint) -> list[str]:
    """Color the lines of a diff; other text stays as it is."""
    if not any(line.startswith("@@ ") for line in lines):
        return list(lines)
    colors = {"+": paint.green, "-": paint.red, "@": paint.dim}
    return [colors.get(line[:1], str)(line) for line in lines]
