"""Render events as text, with or without colors. The answer is kept apart from progress and notices."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TextIO

from msgspec import Struct

from hone.core.events import (
    CallEnded,
    CallStarted,
    Curated,
    Event,
    Heard,
    Learned,
    Notice,
    ReviewFailed,
    Spent,
    Steered,
    TurnEnded,
)
from hone.core.messages import ToolCall
from hone.core.model import Restart, TextPiece, ThinkingPiece, Usage, total
from hone.core.tool import Outcome
from hone.core.turn import Stop, Turn
from hone.core.visible import one_line, visible

WIDE = 100
Fit = Callable[[str], Sequence[str]]
"""Wraps a text for a screen."""
TELLING = ("path", "command", "pattern", "query", "url", "name", "glob")
"""Arguments that say most about a call, best first."""


class Paint(Struct, frozen=True):
    """Each method returns the text unchanged unless `colour` is on. Texts are made visible before."""

    colour: bool = False

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def red(self, text: str) -> str:
        return self._in("31", text)

    def green(self, text: str) -> str:
        return self._in("32", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def paint_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Paint:
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    return Paint(stream.isatty() and not plain)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text unchanged, for a pipe."""
    return text.split("\n")


class Shown(Struct, frozen=True):
    """`aside` consists of full lines; `answer` ends its line before an aside comes."""

    answer: str = ""
    aside: str = ""


class Renderer:
    """Renders one turn after the other. It remembers whether the answer is in the middle of a line, and which
    call the last line is about."""

    def __init__(self, paint: Paint, fit: Fit = split_lines) -> None:
        self._paint = paint
        self._fit = fit
        self._midline = False
        self._held = ""
        self._spoken = False
        self._thinking = False
        self._begun = ""

    def show(self, event: Event) -> Shown:
        match event:
            case TextPiece(text):
                return self._say(text)
            case ThinkingPiece():
                return self._think()
            case CallStarted(call):
                self._spoken = self._thinking = False
                shown, self._begun = self._note(f"→ {describe(call)}"), call.id
                return shown
            case CallEnded(call, outcome, seconds):
                return self._end(call, outcome, seconds)
            case Restart(reason, delay):
                self._spoken = self._thinking = False
                return self._note(f"↻ {visible(reason)} {again(delay)}", self._paint.dim)
            case Notice(text):
                return self._note(visible(text), self._paint.dim)
            case Spent():
                self._thinking = False
                return Shown()
            case Heard():
                return Shown()
            case Steered(text):
                return self._note(f"> {visible(text)}")
            case Learned() | ReviewFailed() | Curated():
                return Shown()  # it belongs to no turn; see `learned`
            case TurnEnded(turn):
                return self._close(turn)

    def pause(self) -> str:
        """End the current line, so that other text gets its own line."""
        return self._break()

    def _say(self, text: str) -> Shown:
        # Half a line ending at the end of a piece: the next piece shows what it is.
        whole, self._held = self._held + text, ""
        if whole.endswith("\r"):
            whole, self._held = whole[:-1], "\r"
        if not whole:
            return Shown()
        self._spoken = True
        self._midline = not whole.endswith("\n")
        return Shown(answer=visible(whole))

    def _think(self) -> Shown:
        if self._thinking:
            return Shown()
        self._thinking = True
        return self._note("… thinking", self._paint.dim)

    def _end(self, call: ToolCall, outcome: Outcome, seconds: float) -> Shown:
        # Parallel calls end in any order: a result that is not below its call names it.
        named = "" if self._begun == call.id else f"{describe(call)}: "
        if outcome.failed:
            return self._note(f"  ✗ {named}{first_line(outcome.text)}", self._mark)
        return self._note(f"  ✓ {named}{extent(outcome.text)}, {seconds:.1f} s", self._mark)

    def _mark(self, row: str) -> str:
        """Color the mark that a row begins with."""
        for mark, color in (("✗", self._paint.red), ("✓", self._paint.green)):
            if row.lstrip().startswith(mark):
                return row.replace(mark, color(mark), 1)
        return row

    def _close(self, turn: Turn) -> Shown:
        unsaid = turn.stop in (Stop.ANSWERED, Stop.BUDGET, Stop.STUCK) and not self._spoken
        rest = self._say(turn.text) if unsaid else Shown()
        dim, ended = self._paint.dim, ""
        if turn.stop is Stop.FAILED:
            ended = self._rows(f"✗ {visible(turn.error)}", self._mark)
        elif turn.stop is Stop.INTERRUPTED:
            ended = self._rows("Stopped. What was said so far is kept.", dim)
        elif turn.error:
            ended = self._rows(visible(turn.error), dim)
        spent = self._rows(f"  {account(turn.usage)}", dim) if turn.usage else ""
        self._begun, self._held, self._spoken, self._thinking = "", "", False, False
        return Shown(rest.answer + self._break(), ended + spent)

    def _note(self, text: str, color: Callable[[str], str] = str) -> Shown:
        self._begun = ""
        return Shown(self._break(), self._rows(text, color))

    def _rows(self, text: str, color: Callable[[str], str]) -> str:
        return "".join(f"{color(row)}\n" for row in self._fit(text))

    def _break(self) -> str:
        ended, self._midline = "\n" if self._midline else "", False
        return ended


def describe(call: ToolCall) -> str:
    """Return a call on one line: its name and its most informative argument."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = {}
    pairs = arguments.items() if isinstance(arguments, dict) else ()
    texts = {key: value for key, value in pairs if isinstance(value, str) and value}
    ordered = [texts[key] for key in TELLING if key in texts] or list(texts.values())[:1]
    return one_line(" ".join([call.name, *ordered[:2]]), WIDE)


def first_line(text: str) -> str:
    return one_line(text.strip().partition("\n")[0], WIDE) or "(nothing was said)"


def extent(text: str) -> str:
    """Return a short result unchanged, or the size of a long one."""
    lines = text.strip("\n").split("\n")
    if len(lines) > 1:
        return f"{len(lines):,} lines"
    return (
        one_line(lines[0], WIDE).removesuffix(".") if 0 < len(lines[0]) <= 60 else f"{len(text):,} characters"
    )


def account(usages: Iterable[Usage]) -> str:
    """Return what was spent, on one line."""
    each = list(usages)
    spent = total(each)
    calls = "1 call" if len(each) == 1 else f"{len(each):,} calls"
    cached = f" ({share(spent)} cached)" if spent.cached else ""
    return f"{calls} · {spent.input:,} tokens in{cached} · {spent.output:,} out · {price(spent.cost)}"


def share(usage: Usage) -> str:
    return f"{100 * usage.cached // usage.input if usage.input else 0}%"


def price(cost: float | None) -> str:
    if cost is None:
        return "cost unknown"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def again(delay: float) -> str:
    return f"Starting over in {delay:.0f} s." if delay >= 1 else "Starting over."
