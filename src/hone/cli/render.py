"""Render events as text, with or without colors. The answer is kept apart from progress and notices."""

import json
import os
from collections.abc import Iterable, Mapping
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
    TurnEnded,
)
from hone.core.messages import ToolCall
from hone.core.model import Restart, TextPiece, ThinkingPiece, Usage, total
from hone.core.tool import Outcome
from hone.core.turn import Stop, Turn
from hone.core.visible import one_line, visible

WIDE = 100
TELLING = ("path", "command", "pattern", "query", "url", "name", "glob")
"""Arguments that tell most about a call, best first."""


class Paint(Struct, frozen=True):
    """Each method gives the text back as it is unless `colour` is on. Texts are made visible before."""

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


class Shown(Struct, frozen=True):
    """`aside` is made of whole lines; `answer` ends the line it is on before an aside comes."""

    answer: str = ""
    aside: str = ""


class Renderer:
    """One turn after the other. Remembers whether the answer stands in the middle of a line, and which call
    the last line is about."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
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
                return self._note(self._paint.dim(f"↻ {visible(reason)} {again(delay)}"))
            case Notice(text):
                return self._note(self._paint.dim(visible(text)))
            case Spent():
                self._thinking = False
                return Shown()
            case Heard():
                return Shown()
            case Learned() | ReviewFailed() | Curated():
                return Shown()  # it belongs to no turn; see `learned`
            case TurnEnded(turn):
                return self._close(turn)

    def pause(self) -> str:
        """What ends the line, for somebody else's words to stand on one of their own."""
        return self._break()

    def _say(self, text: str) -> Shown:
        # Half a line ending at the end of a piece: the next piece tells what it is.
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
        return self._note(self._paint.dim("… thinking"))

    def _end(self, call: ToolCall, outcome: Outcome, seconds: float) -> Shown:
        # Calls that ran together end in any order: a result that does not stand below its call names it.
        named = "" if self._begun == call.id else f"{describe(call)}: "
        if outcome.failed:
            line = f"  {self._paint.red('✗')} {named}{first_line(outcome.text)}"
        else:
            line = f"  {self._paint.green('✓')} {named}{extent(outcome.text)}, {seconds:.1f} s"
        return self._note(line)

    def _close(self, turn: Turn) -> Shown:
        unsaid = turn.stop in (Stop.ANSWERED, Stop.BUDGET, Stop.STUCK) and not self._spoken
        rest = self._say(turn.text) if unsaid else Shown()
        paint = self._paint
        lines = [paint.dim(f"  {account(turn.usage)}")] if turn.usage else []
        if turn.stop is Stop.FAILED:
            lines.insert(0, f"{paint.red('✗')} {visible(turn.error)}")
        elif turn.stop is Stop.INTERRUPTED:
            lines.insert(0, paint.dim("Stopped. What was said so far is kept."))
        elif turn.error:
            lines.insert(0, paint.dim(visible(turn.error)))
        shown = self._note("\n".join(lines)) if lines else Shown(self._break())
        self._held, self._spoken, self._thinking = "", False, False
        return Shown(rest.answer + shown.answer, shown.aside)

    def _note(self, line: str) -> Shown:
        self._begun = ""
        return Shown(self._break(), f"{line}\n")

    def _break(self) -> str:
        ended, self._midline = "\n" if self._midline else "", False
        return ended


def describe(call: ToolCall) -> str:
    """A call on one line: its name and the argument that tells most."""
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
    """A short result as it is, a long one by its size."""
    lines = text.strip("\n").split("\n")
    if len(lines) > 1:
        return f"{len(lines):,} lines"
    return (
        one_line(lines[0], WIDE).removesuffix(".") if 0 < len(lines[0]) <= 60 else f"{len(text):,} characters"
    )


def account(usages: Iterable[Usage]) -> str:
    """What was spent, on one line."""
    each = list(usages)
    spent = total(each)
    calls = "1 call" if len(each) == 1 else f"{len(each):,} calls"
    cached = f" ({share(spent)} cached)" if spent.cached else ""
    return f"{calls} · {spent.input:,} tokens in{cached} · {spent.output:,} out · {price(spent.cost)}"


def share(usage: Usage) -> str:
    return f"{100 * usage.cached // usage.input if usage.input else 0} %"


def price(cost: float | None) -> str:
    if cost is None:
        return "cost unknown"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def again(delay: float) -> str:
    return f"Starting over in {delay:.0f} s." if delay >= 1 else "Starting over."
