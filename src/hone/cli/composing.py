"""Compose a message from the typed text, the files it names and the outputs kept for it."""

import sys
from collections.abc import Callable
from pathlib import Path

from hone.app import Hone
from hone.cli.context import Interrupts
from hone.cli.own_command import run_own
from hone.cli.render import Paint
from hone.cli.terminal.asking import ask_yes
from hone.core.errors import HoneError
from hone.core.messages import Attachment, Message, user
from hone.core.regex import regex
from hone.core.trust import Trust
from hone.core.visible import text_to_path, visible
from hone.runtime.attaching import find_files, read_files
from hone.runtime.pictures import attach, find_pictures
from hone.runtime.session import Session

Composed = tuple[str | Message, Trust | None]
ADD = "Add this output to the conversation?"
_RESOURCE = regex(r"(?<!\S)@[\w-]+:\S")


class Composer:
    """`say` prints a line outside the conversation."""

    def __init__(self, hone: Hone, interrupts: Interrupts, paint: Paint, say: Callable[[str], None]) -> None:
        self._hone = hone
        self._interrupts = interrupts
        self._paint = paint
        self._say = say
        self._outputs: list[Attachment] = []

    async def compose(self, words: str, session: Session) -> Composed:
        """Return what to send, and its label if that is not the owner's. Raises Refused for a file that
        cannot be attached; in that case the kept outputs stay."""
        folder = text_to_path(session.header.folder)
        pictures, files = find_pictures(words, folder), find_files(words, folder)
        named = await self._ask_parts(words, folder)
        if not (pictures or files or named or self._outputs):
            return words, None
        message: Message = user(words)
        voice: Trust | None = None
        if pictures:
            message, voice = await attach(words, pictures, session.agent.prefix.model, self._hone)
            names = ", ".join(visible(file.name) for file in pictures)
            self._say(f"with {names} (metadata removed)")
        attached = [*await read_files(files, folder, self._hone.provenance), *named]
        for each in attached:
            self._say(f"with {each.name}, {len(each.text):,} characters, as {each.label} text")
        outputs, self._outputs = self._outputs, []
        return user(*message.parts, *attached, *outputs), voice

    async def _ask_parts(self, words: str, folder: Path) -> list[Attachment]:
        """Return what features attach to the words, such as a resource of a server."""
        if "@" not in words:
            return []
        parts = self._hone.parts("attach", folder)
        return [each for part in parts for each in await part.attach(words, folder)]

    def attaches(self, words: str, session: Session) -> bool:
        """Tell whether a message names files or images, or would include kept outputs."""
        folder = text_to_path(session.header.folder)
        try:
            found = self._outputs or find_files(words, folder) or find_pictures(words, folder)
            return bool(found or _RESOURCE.search(words))
        except HoneError:  # a missing image is reported when the message is sent
            return True

    async def run(self, command: str, session: Session) -> None:
        """Run a command of the owner's, and keep its output for the next message if they want that."""
        folder = text_to_path(session.header.folder)
        try:
            ended = await run_own(command, folder, self._interrupts, _show)
        except OSError as error:
            raise HoneError(f"The command cannot be started: {error.strerror}.") from error
        if ended.text and not ended.text.endswith("\n"):
            print()
        if ended.code or not ended.text:
            self._say(f"exit code {ended.code}")
        if ended.text.strip() and await ask_yes(ADD, "send it with your next message", self._paint):
            self._outputs.append(ended.attach())


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
