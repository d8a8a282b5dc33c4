"""Ask the owner questions that take one key to answer. Anything but a clear yes counts as no."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from textwrap import wrap
from typing import TypeVar

from hone.cli.render import Paint
from hone.cli.terminal.keyboard import forget_typed, pressed, unechoed
from hone.cli.trust import MEANING
from hone.cli.trust import shown as shown_file
from hone.core.permissions import Answer, Question
from hone.core.visible import one_line, visible
from hone.runtime.instructions import FoundInstructions

Choice = TypeVar("Choice")
Press = Callable[[float | None], Awaitable[str]]
Pause = Callable[[], AbstractContextManager[None]]

QUIET = 0.3
"""Seconds without a key before and after one that says yes: words typed for the prompt are no consent."""
ENTER = ("\r", "\n")
LEAVING = frozenset({"\x03", "\x04"})
"""Ctrl-C and Ctrl-D."""
NO = frozenset({"n", "q", "\x1b", *ENTER})


class Asking:
    """Asks one question at a time. `pause` holds the screen still meanwhile; the screen sets it."""

    def __init__(self, paint: Paint) -> None:
        self.pause: Pause = nullcontext
        self._paint = paint
        self._turn = asyncio.Lock()

    async def __call__(self, question: Question) -> Answer:
        async with self._turn:
            with self.pause():
                # Without a pattern there is nothing that a longer yes could be tied to.
                longer = {"s": Answer.SESSION, "a": Answer.ALWAYS} if question.pattern else {}
                lines = shown(question, self._paint)
                answer = await choice(lines, {"y": Answer.ONCE, **longer}, Answer.NO)
                print(self._paint.dim(f"  → {answer}"))
        return answer


def shown(question: Question, paint: Paint) -> Iterator[str]:
    """The question, to the letter what it is about, and the keys."""
    detail = visible(question.detail).split("\n")
    yield f"{paint.bold('?')} {paint.bold(visible(question.text))}"
    yield from (f"    {line}" for line in detail)
    if len(detail) > shutil.get_terminal_size().lines - 4:
        yield paint.red(f"  These are {len(detail):,} lines: scroll up to see them all.")
    longer = f", s for this session, a always: {visible(question.pattern)}" if question.pattern else ""
    yield paint.dim(f"  y once{longer}")
    yield paint.dim("  n no, as do Enter, Esc and Ctrl-C")


async def ask_trust(folder: Path, found: FoundInstructions | None, paint: Paint) -> bool:
    """Whether what is in this folder counts as the owner's own from now on, its instructions included."""
    trusted = await choice(trust_shown(folder, found, paint), {"y": True}, False)
    print(paint.dim(f"  → {'trusted' if trusted else 'not trusted'}"))
    return trusted


def trust_shown(folder: Path, found: FoundInstructions | None, paint: Paint) -> Iterator[str]:
    size = shutil.get_terminal_size()
    width = min(100, size.columns) - 4
    file = shown_file(found) if found else []
    yield from file
    if len(file) > size.lines - 10:
        yield paint.red("  That is more than fits here: scroll up to see it all.")
    yield f"{paint.bold('?')} {paint.bold('Do you trust this folder?')}"
    yield f"    {one_line(str(folder), 500)}"
    yield from (paint.dim(f"    {line}") for line in wrap(" ".join(MEANING.split()), width))
    if found:
        yield f"    With a yes, its {found.name} (above) is read by the model and followed as it is now."
    yield paint.dim("  y yes, n not now, as do Enter, Esc and Ctrl-C")


async def choice(lines: Iterable[str], yes: Mapping[str, Choice], no: Choice) -> Choice:
    """What the key says that follows these lines; keys pressed before them count for nothing."""
    with unechoed(signals=False):
        forget_typed()
        print("\n".join(lines), flush=True)
        try:
            return await decide(pressed, yes, no)
        except EOFError:
            return no


async def decide(press: Press, yes: Mapping[str, Choice], no: Choice) -> Choice:
    """A key for no counts at once. One for yes counts alone or with Enter after it; among others it is part
    of a word that somebody is typing."""
    typed = ""
    while True:
        more = await press(QUIET if typed else None)
        typed += more.lower()
        word = typed.rstrip("\r\n")
        if word in yes and (not more or word != typed):
            return yes[word]
        if more.lower() in NO or typed.endswith(ENTER) or LEAVING & set(more):
            return no
        if not more:
            typed = ""
