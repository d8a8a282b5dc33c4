"""The chat on a full terminal: a multi-line prompt with history, completion and a status line."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from hone.cli.render import paint_for
from hone.cli.terminal.ahead import TypeAhead
from hone.cli.terminal.completion import is_eager, offers
from hone.cli.terminal.keyboard import LEAVING
from hone.cli.terminal.screen import DRAWING, Status, Surroundings, TurnDrawing, draw, status_line
from hone.core.events import Emit
from hone.core.loading import import_object
from hone.files.atomic import append

PAINTED = {"prompt": "bold", "bottom-toolbar": "noreverse dim"}
UNPAINTED = {"bottom-toolbar": "noreverse"}
REWIND = "/rewind"
"""Stands for Esc Esc."""
REACH = 256 * 1024
"""The most bytes to read back, from the end."""


class DrawnScreen:
    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._drawing: TurnDrawing | None = None
        self._warm = False
        self._shown: tuple[Status, int, str] | None = None
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", "> ")],
            multiline=True,
            key_bindings=bindings(),
            history=KeptHistory(surroundings.home / "history", surroundings.complain),
            completer=Offering(surroundings),
            complete_in_thread=True,
            enable_open_in_editor=True,
            tempfile_suffix=".md",
            complete_while_typing=Condition(_is_eager),
            prompt_continuation="  ",
            bottom_toolbar=self._toolbar,
            style=Style.from_dict(PAINTED if paint_for(sys.stdout).colour else UNPAINTED),
        )
        self._session.app.after_render += self._rendered

    async def read(self, draft: str = "") -> str:
        """Return the next message. Raises EOFError when Ctrl-D is pressed on an empty line."""
        return await self._session.prompt_async(handle_sigint=False, default=draft)

    def tell(self, text: str) -> bool:
        """Print above the prompt, if it waits: it is then drawn again below, with what was typed so far."""
        if self._session.app.is_running:
            run_in_terminal(lambda: print(text))
        return self._session.app.is_running

    @asynccontextmanager
    async def working(self, *, verbose: bool = False, ahead: TypeAhead | None = None) -> AsyncIterator[Emit]:
        self._drawing = draw(verbose=verbose, ahead=ahead)
        try:
            async with self._drawing.running() as emit:
                yield emit
        finally:
            self._drawing = None

    def pause(self) -> AbstractContextManager[None]:
        return self._drawing.paused() if self._drawing else nullcontext()

    def _rendered(self, _: object) -> None:
        """Import what draws an answer, while the user types, once the first prompt is shown."""
        if not self._warm:
            self._warm = True
            asyncio.get_running_loop().run_in_executor(None, import_object, DRAWING)

    def _toolbar(self) -> str:
        """Return the toolbar, cached until something changes: each key asks for it."""
        status, width = self._surroundings.status(), get_app().output.get_size().columns
        if self._shown is None or self._shown[0] is not status or self._shown[1] != width:
            self._shown = status, width, status_line(status, width)
        return self._shown[2]


def bindings() -> KeyBindings:
    keys = KeyBindings()
    typing = ~is_searching
    keys.add("enter", filter=typing)(_send)
    keys.add("escape", "enter", filter=typing)(_break_line)
    keys.add("c-c", filter=typing)(_drop)
    keys.add("c-g", filter=typing)(_edit)
    keys.add("escape", "escape", filter=typing)(_go_back)
    return keys


def _send(event: KeyPressEvent) -> None:
    """Handle Enter. It first accepts the selection of a menu, unless that is a command."""
    buffer = event.current_buffer
    menu = buffer.complete_state
    if menu and menu.current_completion and not buffer.text.startswith("/"):
        buffer.complete_state = None
    elif buffer.document.text_before_cursor.endswith("\\") and buffer.document.is_cursor_at_the_end_of_line:
        buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)
    elif buffer.text.strip():
        buffer.validate_and_handle()


def _break_line(event: KeyPressEvent) -> None:
    event.current_buffer.newline(copy_margin=False)


def _edit(event: KeyPressEvent) -> None:
    """Open the message in $VISUAL or $EDITOR, as Ctrl-X Ctrl-E does alone."""
    event.current_buffer.open_in_editor()


def _go_back(event: KeyPressEvent) -> None:
    """At an empty prompt, offer earlier messages to go back to; otherwise drop what was typed."""
    if event.current_buffer.text:
        event.current_buffer.reset()
    else:
        event.app.exit(result=REWIND)


def _drop(event: KeyPressEvent) -> None:
    if event.current_buffer.text:
        event.current_buffer.reset()
    else:
        run_in_terminal(lambda: print(LEAVING))


def _is_eager() -> bool:
    return is_eager(get_app().current_buffer.document.text_before_cursor)


class Offering(Completer):
    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before, around = document.text_before_cursor, self._surroundings
        if complete_event.completion_requested or is_eager(before):
            for offer in offers(before, around.folder(), around.commands):
                yield Completion(
                    offer.text, -offer.length, display=offer.label, display_meta=offer.about or None
                )


class KeptHistory(History):
    """A history that several processes may extend: each line is added with one write. Lines that begin with a
    space or repeat the last line are not kept. `complain` hears once why the file cannot be used."""

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._complain: Callable[[str], None] | None = complain

    def append_string(self, string: str) -> None:
        if not string.startswith(" ") and string not in self._loaded_strings[:1]:
            super().append_string(string)

    def load_history_strings(self) -> Iterator[str]:
        """Yield the history, newest first. A damaged line is skipped."""
        try:
            kept = read_end(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            self._tell(error)
            return
        for line in reversed(kept.splitlines()):
            text = decoded(line)
            if text:
                yield text

    def store_string(self, string: str) -> None:
        try:
            append(self._path, f"{json.dumps(string)}\n".encode())
        except OSError as error:
            self._tell(error)

    def _tell(self, error: OSError) -> None:
        complain, self._complain = self._complain, None
        if complain:
            complain(f"What you type is not kept for the arrow keys: {self._path}: {error.strerror}.")


def read_end(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - REACH))
        return file.read()


def decoded(line: bytes) -> str:
    try:
        text = json.loads(line)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""
