"""Ask the owner questions that take one key to answer. Anything but a clear yes counts as no."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeVar

from hone.cli.output import wrap_cells
from hone.cli.render import Paint
from hone.cli.terminal.keyboard import forget_typed, line, pressed, unechoed
from hone.cli.trust import IN_SHORT, ShownFile
from hone.core.permissions import Answer, Mode, Question
from hone.core.visible import one_line, visible

Choice = TypeVar("Choice")
Press = Callable[[float | None], Awaitable[str]]
Pause = Callable[[], AbstractContextManager[None]]

QUIET = 0.3
"""Seconds without a key before and after a key that means yes: words typed for the prompt are no consent."""
ENTER = ("\r", "\n")
LEAVING = frozenset({"\x03", "\x04"})
"""Ctrl-C and Ctrl-D."""
NO = frozenset({"n", "q", "\x1b", *ENTER})


KEYS = {"once": "y", "session": "s", "any-host": "h", "always": "a", "no": "n"}
MEANINGS = {
    "once": "yes",
    "session": "yes, for this session",
    "any-host": "yes, and any host for this session",
    "always": "always",
    "no": "no",
}
BECAUSE = Answer("no", "?")
"""A no whose reason still has to be typed."""


class Asking:
    """Asks one question at a time. `pause`, which the screen sets, holds the screen still for that time."""

    def __init__(self, paint: Paint) -> None:
        self.pause: Pause = nullcontext
        self._paint = paint
        self._turn = asyncio.Lock()

    async def __call__(self, question: Question) -> Answer:
        async with self._turn:
            with self.pause():
                yes = {KEYS[each]: Answer(each) for each in question.choices if each != "no"}
                answer = await choice(shown(question, self._paint), {**yes, "r": BECAUSE}, Answer.NO)
                if answer is BECAUSE:
                    answer = Answer("no", await line("  Why not? "))
                elif question.wanted and answer.is_yes:
                    answer = Answer(answer.choice, await line(f"  {one_line(question.wanted, 60)}: "))
                refuses = answer.reason and not answer.is_yes
                said = f"no: {visible(answer.reason)}" if refuses else MEANINGS[answer.choice]
                print(self._paint.dim(f"  → {said}"))
        return answer


def shown(question: Question, paint: Paint) -> Iterator[str]:
    """Yield the question, its exact subject, and the keys."""
    detail = visible(question.detail).split("\n")
    width = max(20, shutil.get_terminal_size().columns - 2)
    for number, each in enumerate(wrap_cells(visible(question.text), width) or [""]):
        yield f"{' ' if number else paint.bold('?')} {paint.bold(each)}"
    yield from _detail(detail, width - 2, paint)
    if len(detail) > shutil.get_terminal_size().lines - 9:
        yield paint.red(f"  These are {len(detail):,} lines: scroll up to see them all.")
    for each in question.choices:
        if each == "always":
            yield from _always(question.pattern, paint)
        else:
            yield paint.dim(f"  [{KEYS[each]}] {MEANINGS[each]}{' (default)' if each == 'no' else ''}")
    yield paint.dim("  [r] no, and say why")


def _detail(lines: Sequence[str], width: int, paint: Paint) -> Iterator[str]:
    """Yield exactly what will be done: a long line continues below, indented by two columns. The lines of a
    diff are colored."""
    is_diff = any(each.startswith("@@ ") for each in lines)
    colors = {"+": paint.green, "-": paint.red, "@": paint.dim} if is_diff else {}
    for each in lines:
        color = colors.get(each[:1], str)
        for number, row in enumerate(break_line(each, width - 2)):
            yield f"    {'  ' if number else ''}{color(row)}"


def break_line(line: str, width: int) -> list[str]:
    """Break a line, between words if possible. Joined, the rows are the line again."""
    rows = []
    while len(line) > width:
        at = line.rfind(" ", 1, width) + 1 or width
        rows.append(line[:at])
        line = line[at:]
    return [*rows, line]


def _always(pattern: str, paint: Paint) -> Iterator[str]:
    """Yield the rules that the answer "always" would add."""
    rules = visible(pattern).split("\n")
    width = max(20, shutil.get_terminal_size().columns - 8)
    if len(rules) == 1 and len(rules[0]) + 8 <= width:
        yield paint.dim(f"  [a] always: {rules[0]}")
        return
    yield paint.dim("  [a] always, by these rules:" if len(rules) > 1 else "  [a] always, by this rule:")
    yield from (paint.dim(f"        {row}") for rule in rules for row in break_line(rule, width))


async def ask_plan(paint: Paint) -> Mode | None:
    """Return the mode in which to carry out the plan that was just given; None to keep planning."""
    lines = (
        f"{paint.bold('?')} {paint.bold('Carry out this plan?')}",
        paint.dim("  [y] work in auto mode"),
        paint.dim("  [a] ask before each change"),
        paint.dim("  [n] keep planning (default)"),
    )
    mode = await choice(lines, {"y": Mode.AUTO, "a": Mode.ASK}, None)
    print(paint.dim(f"  → mode {mode}" if mode else "  → keep planning"))
    return mode


async def ask_yes(question: str, meaning: str, paint: Paint) -> bool:
    """Ask a plain question. Anything but y is a no."""
    lines = (
        f"{paint.bold('?')} {paint.bold(question)}",
        paint.dim(f"  [y] {meaning}"),
        paint.dim("  [n] no (default)"),
    )
    answer = await choice(lines, {"y": True}, False)
    print(paint.dim(f"  → {'yes' if answer else 'no'}"))
    return answer


async def ask_trust(folder: Path, lessons: Sequence[str], files: Sequence[ShownFile], paint: Paint) -> bool:
    """Tell whether the content of this folder counts as the owner's own from now on, these files included.
    `lessons` wait for that."""
    trusted = await choice(trust_shown(folder, lessons, files, paint), {"y": True}, False)
    print(paint.dim(f"  → {'trusted' if trusted else 'not trusted; to trust it later: hone trust'}"))
    return trusted


def trust_shown(
    folder: Path, lessons: Sequence[str], files: Sequence[ShownFile], paint: Paint
) -> Iterator[str]:
    size = shutil.get_terminal_size()
    width = min(100, size.columns) - 4
    lines = [line for file in files for line in file.lines()]
    yield from lines
    if len(lines) > size.lines - 10:
        yield paint.red("  That is more than fits here: scroll up to see it all.")
    yield f"{paint.bold('?')} {paint.bold('Do you trust this folder?')}"
    yield f"    {one_line(str(folder), 500)}"
    wait = "This lesson comes" if len(lessons) == 1 else f"These {len(lessons)} lessons come"
    yield f"    {wait} from what Hone read here, and {'waits' if len(lessons) == 1 else 'wait'} for it:"
    yield from (f"    {row}" for lesson in lessons for row in wrap_cells(f"• {visible(lesson)}", width))
    yield from (paint.dim(f"    {line}") for line in wrap_cells(IN_SHORT, width))
    yield from (f"    With a yes, its {file.name} (above) {file.effect}." for file in files)
    yield paint.dim("  [y] trust this folder, and use the lessons")
    yield paint.dim("  [n] no, and do not ask again (default)")


async def choice(lines: Iterable[str], yes: Mapping[str, Choice], no: Choice) -> Choice:
    """Return the choice of the next key; keys pressed before these lines appeared do not count."""
    with unechoed(signals=False):
        forget_typed()
        print("\n".join(lines), flush=True)
        try:
            return await decide(pressed, yes, no)
        except EOFError:
            return no


async def decide(press: Press, yes: Mapping[str, Choice], no: Choice) -> Choice:
    """Decide about keys. A key for no counts at once. One for yes counts alone or with Enter after it; among
    others it is part of a word that somebody is typing."""
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
