"""Turn events into screen frames. Finished lines are drawn once, live lines again in each frame.

The view knows only the size of the terminal, not the terminal itself.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from msgspec import Struct
from rich.style import Style
from rich.text import Text

from hone.cli.render import account, again, describe
from hone.cli.terminal.blocks import Blocks, MarkdownBlock
from hone.cli.terminal.markdown import DIM, lines, set_text
from hone.core.events import CallEnded, CallStarted, Event, Notice, Spent, Steered, TurnEnded
from hone.core.messages import ToolCall
from hone.core.model import Restart, TextPiece, ThinkingPiece
from hone.core.tool import Outcome
from hone.core.turn import Stop, Turn
from hone.core.visible import visible

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ABREAST = 6
"""How many running calls to show one by one."""
RED, GREEN = Style(color="red"), Style(color="green")
SHORT = 60
"""A one-line result of at most this many letters is shown next to its call."""
FIRST, SPARE = 5, 2
"""How many lines of a longer result to show, and how many more it may have without being cut."""
FENCES = ("```", "~~~")


class RowKind(Enum):
    """The type of a line. An empty line separates two types."""

    QUESTION = auto()
    ANSWER = auto()
    ASIDE = auto()


class Frame(Struct, frozen=True):
    """`done` stays on the screen; the next frame draws over `live`."""

    done: Sequence[Text] = ()
    live: Sequence[Text] = ()


@dataclass(slots=True)
class CallRow:
    call: ToolCall
    since: float
    result: Sequence[Text] = ()

    def line(self, sign: str, now: float) -> Text:
        if self.result:
            return self.result[0]
        return Text.assemble((f"{sign} ", DIM), describe(self.call), (f" · {elapsed(now - self.since)}", DIM))


class View:
    """One turn. `show` events, `frame` as often as the screen likes, `close` for the rest. `typed` returns
    the lines typed in the meantime, for a width, if any can be typed."""

    def __init__(
        self,
        size: Callable[[], os.terminal_size],
        *,
        verbose: bool = False,
        now: Callable[[], float] = time.monotonic,
        typed: Callable[[int], Sequence[str]] | None = None,
    ) -> None:
        self._size = size
        self._typed = typed
        self._verbose = verbose
        self._now = now
        self._answer = AnswerLines()
        self._spoken = False
        self._done: list[Text] = []
        self._last = RowKind.QUESTION
        self._calls: dict[str, CallRow] = {}
        self._doing, self._since = "waiting", now()

    def show(self, event: Event) -> None:
        match event:
            case TextPiece(text):
                self._spoken = True
                self._do("answering")
                self._answer.feed(text)
            case ThinkingPiece():
                self._do("thinking")
            case CallStarted(call):
                self._spoken = False
                self._finish()
                self._calls[call.id] = CallRow(call, self._now())
            case CallEnded(call, outcome, seconds):
                width = self._size().columns
                ended = self._calls.setdefault(call.id, CallRow(call, self._now()))
                ended.result = list(result(call, outcome, seconds, width, whole=self._verbose))
                self._put_results()
                self._do("waiting")
            case Restart(reason, delay):
                self._spoken = False
                self._answer = AnswerLines()
                self._note(Text(f"↻ {visible(reason)} {again(delay)}", DIM))
                self._do("waiting")
            case Notice(text):
                self._note(Text(visible(text), DIM))
            case Steered(text):
                self._finish()
                self._put(set_text(Text(f"> {text}"), self._size().columns), RowKind.QUESTION)
            case Spent():
                self._finish()
                self._do("waiting")
            case TurnEnded(turn):
                self._end(turn)

    def frame(self) -> Frame:
        width, height = self._size()
        working = [*self._working(), *map(Text, self._typed(width - 1) if self._typed else ())]
        room = max(1, height - len(working) - 3)
        self._put(self._answer.take(width, room), RowKind.ANSWER)
        said = self._answer.open(width)[-room:]
        before = [Text()] if said and self._last is not RowKind.ANSWER else []
        after = [Text()] if said or self._last is not RowKind.ASIDE else []
        live = [fit(line, width) for line in (*before, *said, *after, *working)]
        return Frame(self._given(), live[-max(1, height - 1) :])

    def close(self) -> Frame:
        """Finish: nothing is live any more."""
        self._finish()
        return Frame(self._given())

    def _given(self) -> list[Text]:
        done, self._done = self._done, []
        return done

    def _do(self, what: str) -> None:
        if what != self._doing:
            self._doing, self._since = what, self._now()

    def _working(self) -> list[Text]:
        """Return what the turn is waiting for, and for how long."""
        now = self._now()
        sign = SPINNER[int(now * len(SPINNER)) % len(SPINNER)]
        if not self._calls:
            stops = "Ctrl-C stops" if self._typed is None else "Esc stops"
            return [Text(f"{sign} {self._doing} {elapsed(now - self._since)} · {stops}", DIM)]
        lines = [call.line(sign, now) for call in self._calls.values()]
        more = len(lines) - ABREAST
        return lines if more <= 0 else [*lines[:ABREAST], Text(f"  … {more} more", DIM)]

    def _put_results(self) -> None:
        """Show results in the order of the calls: one that ended early waits for those before it."""
        while self._calls and (first := next(iter(self._calls.values()))).result:
            self._aside(first.result)
            del self._calls[first.call.id]

    def _end(self, turn: Turn) -> None:
        if turn.stop in (Stop.ANSWERED, Stop.BUDGET, Stop.STUCK) and not self._spoken:
            self._answer.feed(turn.text)
        self._calls = {id: call for id, call in self._calls.items() if call.result}
        self._put_results()
        if turn.stop is Stop.FAILED:
            self._note(Text.assemble(("✗ ", RED), visible(turn.error)))
        elif turn.stop is Stop.INTERRUPTED:
            self._note(Text("Stopped. What was said so far is kept.", DIM))
        elif turn.error:
            self._note(Text(visible(turn.error), DIM))
        if turn.usage:
            self._note(Text(account(turn.usage), DIM))
        self._finish()

    def _note(self, words: Text) -> None:
        self._aside(set_text(words, self._size().columns))

    def _aside(self, drawn: Iterable[Text]) -> None:
        self._finish()
        self._put(drawn, RowKind.ASIDE)

    def _finish(self) -> None:
        """Finish what was said so far."""
        self._put(self._answer.close(self._size().columns), RowKind.ANSWER)

    def _put(self, drawn: Iterable[Text], kind: RowKind) -> None:
        for line in drawn:
            if self._last is not kind:
                self._done.append(Text())
            self._done.append(line)
            self._last = kind


def result(call: ToolCall, outcome: Outcome, seconds: float, width: int, *, whole: bool) -> Iterator[Text]:
    """Yield the lines of a call that has ended: its name, its duration, and the beginning of its result."""
    mark = ("✗ ", RED) if outcome.failed else ("✓ ", GREEN)
    said = visible(outcome.text).strip()
    short = "\n" not in said and len(said) <= SHORT
    beside = f" · {said.removesuffix('.')}" if said and short else ""
    heading = Text.assemble(mark, describe(call), (f"{beside} · {elapsed(seconds)}", DIM))
    yield from set_text(heading, width)
    if not short:
        lines = visible(outcome.text).strip("\n").split("\n")
        yield from _whole(lines) if whole else _folded(lines, width)


def _whole(lines: Sequence[str]) -> Iterator[Text]:
    is_diff = any(line.startswith("@@ ") for line in lines)
    for line in lines:
        colour = {"+": GREEN, "-": RED}.get(line[:1], DIM) if is_diff else DIM
        yield Text(f"  {line}", colour)


def _folded(lines: Sequence[str], width: int) -> Iterator[Text]:
    """Yield lines without empty ones, none longer than a row."""
    told = [line for line in _whole(lines) if line.plain.strip()]
    kept = len(told) if len(told) <= FIRST + SPARE else FIRST
    yield from (fit(line, width) for line in told[:kept])
    if kept < len(told):
        yield Text(f"  … {len(told) - kept:,} more lines · /output shows them", DIM)


def fit(line: Text, width: int) -> Text:
    """Cut a line to less than a row, so that the cursor stays on it."""
    cut = line.copy()
    cut.expand_tabs(8)
    cut.truncate(width - 1, overflow="ellipsis")
    return cut


def elapsed(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


class AnswerLines:
    """An answer in progress: `take` the lines that are final by now, look at the `open` ones, `close`. Each
    line comes once and in order."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._gap = False
        self._given = 0
        """The lines of the open block that were taken already."""
        self._seen: tuple[int, list[tuple[MarkdownBlock, Sequence[Text]]]] | None = None

    def feed(self, piece: str) -> None:
        self._blocks.feed(piece)
        self._seen = None

    def take(self, width: int, room: int) -> list[Text]:
        """Return the finished blocks, and of a long fence what does not fit: its lines do not change."""
        final = self._lay(_drawn(self._blocks.take(), width))
        if final:
            self._seen = None
        for block, drawn in self._tail(width)[:1]:
            end = len(drawn) - room
            if end > self._given and block.text.lstrip().startswith(FENCES):
                final += self._apart(drawn[self._given : end])
                self._given = end
        return final

    def open(self, width: int) -> list[Text]:
        kept = self._gap, self._given
        laid = self._lay(self._tail(width))
        self._gap, self._given = kept
        return laid

    def close(self, width: int) -> list[Text]:
        left = self._lay(_drawn(self._blocks.close(), width))
        self._gap, self._seen = False, None
        return left

    def _tail(self, width: int) -> list[tuple[MarkdownBlock, Sequence[Text]]]:
        """Return the open lines, drawn again only if text was added."""
        if self._seen is None or self._seen[0] != width:
            self._seen = width, _drawn(self._blocks.tail(), width)
        return self._seen[1]

    def _lay(self, drawn: Iterable[tuple[MarkdownBlock, Sequence[Text]]]) -> list[Text]:
        laid: list[Text] = []
        for block, block_lines in drawn:
            laid += self._apart(block_lines[self._given :])
            self._gap, self._given = block.gap, 0
        return laid

    def _apart(self, some: Sequence[Text]) -> Sequence[Text]:
        """Precede lines with an empty one, if the last block ended in one."""
        if not some or not self._gap:
            return some
        self._gap = False
        return [Text(), *some]


def _drawn(blocks: Iterable[MarkdownBlock], width: int) -> list[tuple[MarkdownBlock, Sequence[Text]]]:
    return [(block, lines(block, width)) for block in blocks]
