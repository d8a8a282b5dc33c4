"""The prompt: several lines, history, completion, a status line. The event loop runs on while it waits."""

import sys
from collections.abc import Callable, Iterator

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from hone.cli.paint import paint_for
from hone.cli.terminal.completion import is_eager, offers
from hone.cli.terminal.history import KeptHistory
from hone.cli.terminal.screen import LEAVING, Surroundings
from hone.cli.terminal.status import status_line

PAINTED = {"prompt": "bold", "bottom-toolbar": "noreverse dim"}
UNPAINTED = {"bottom-toolbar": "noreverse"}


class Editor:
    """`ready` is called once, when the first prompt stands."""

    def __init__(self, surroundings: Surroundings, ready: Callable[[], None]) -> None:
        self._surroundings = surroundings
        self._ready: Callable[[], None] | None = ready
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", "> ")],
            multiline=True,
            key_bindings=bindings(),
            history=KeptHistory(surroundings.home / "history", surroundings.complain),
            completer=Offering(surroundings),
            complete_in_thread=True,
            complete_while_typing=Condition(_is_eager),
            prompt_continuation="  ",
            bottom_toolbar=self._toolbar,
            style=Style.from_dict(PAINTED if paint_for(sys.stdout).colour else UNPAINTED),
        )
        self._session.app.after_render += self._rendered

    async def read(self) -> str:
        """Raises EOFError when Ctrl-D is pressed on an empty line."""
        return await self._session.prompt_async(handle_sigint=False)

    def tell(self, text: str) -> bool:
        """Above the prompt, if it waits: then it is drawn again below, with what was typed so far."""
        if self._session.app.is_running:
            run_in_terminal(lambda: print(text))
        return self._session.app.is_running

    def _rendered(self, _: object) -> None:
        ready, self._ready = self._ready, None
        if ready:
            ready()

    def _toolbar(self) -> str:
        return status_line(self._surroundings.status(), get_app().output.get_size().columns)


def bindings() -> KeyBindings:
    keys = KeyBindings()
    keys.add("enter")(_send)
    keys.add("escape", "enter")(_break_line)
    keys.add("c-c")(_drop)
    return keys


def _send(event: KeyPressEvent) -> None:
    """Enter first takes what is chosen from a menu, unless that is a command."""
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
