"""A turn on the screen: whenever it is drawn, the same lines stay, each of them once."""

import io
import os
from collections.abc import Iterable, Sequence

import pyte
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from hone.cli.terminal.drawing import Live
from hone.cli.terminal.markdown import BOLD, CODE, DIM, EMPHASES, STYLES, TITLE
from hone.cli.terminal.view import GREEN, RED, Frame, View
from hone.core.events import CallEnded, CallStarted, Event, Notice, Spent, TurnEnded
from hone.core.messages import ToolCall
from hone.core.model import Restart, TextPiece, ThinkingPiece, Usage
from hone.core.tool import Outcome
from hone.core.turn import Stop
from hone.core.visible import visible
from tests.cli.terminal.marked import LINES, TEXTS
from tests.cli.test_render import LOOK, READ, ended

WIDE = os.terminal_size((80, 24))
SCREENS = st.tuples(st.integers(20, 90), st.integers(2, 12)).map(os.terminal_size)
CALLS = [ToolCall(f"c{number}", "read_file", f'{{"path":"{number}.md"}}') for number in range(9)]
# A restart is not among them: what is on the screen by then stays there, and what is not is never drawn.
EVENTS = st.one_of(
    TEXTS.map(TextPiece),
    LINES.map(lambda line: TextPiece(f"{line}\n")),
    st.builds(ThinkingPiece, st.text()),
    st.builds(Notice, st.text()),
    st.just(Spent(Usage())),
    st.sampled_from(CALLS).map(CallStarted),
    st.builds(
        lambda call, text, failed: CallEnded(call, Outcome(text, failed), 0.5),
        st.sampled_from(CALLS),
        st.one_of(st.text(), st.lists(LINES).map("\n".join)),
        st.booleans(),
    ),
)
ENDS = st.builds(ended, st.text(), st.sampled_from(Stop), st.text(), st.just((Usage(1, 0, 0, 1),)))


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def plain(lines: Iterable[Text]) -> list[str]:
    return [line.plain for line in lines]


def played(events: Sequence[Event], *, size: os.terminal_size = WIDE, verbose: bool = False) -> list[str]:
    """What is left of a turn that nobody looked at on the way."""
    view = View(lambda: size, verbose=verbose)
    for event in events:
        view.show(event)
    return plain(view.close().done)


def test_a_turn_looks_like_this() -> None:
    usage = Usage(1200, 900, 0, 34, 0.0021)
    events: list[Event] = [
        ThinkingPiece("hm"),
        TextPiece("Let me **look**"),
        TextPiece(" there.\n"),
        Spent(usage),
        CallStarted(READ),
        CallStarted(LOOK),
        CallEnded(LOOK, Outcome("the path src is missing", failed=True), 75.0),
        CallEnded(READ, Outcome("\n\n".join(f"line {n}" for n in range(9))), 0.12),
        Restart("The connection broke off.", 2.0),
        TextPiece("All `fine`:\n```sh\nls\n```"),
        Notice("The answer was cut."),
        ended("All fine.", usage=(usage, usage)),
    ]
    assert played(events) == [
        "",
        "Let me look there.",
        "",
        "✓ read_file README.md · 0.1 s",
        "  line 0",
        "  line 1",
        "  line 2",
        "  line 3",
        "  line 4",
        "  … 4 more lines · /output shows them",
        "✗ search_files src TODO · the path src is missing · 1 min 15 s",
        "↻ The connection broke off. Starting over in 2 s.",
        "",
        "All fine:",
        "ls",
        "",
        "The answer was cut.",
        "2 calls · 2,400 tokens in (75% cached) · 68 out · $0.0042",
    ]


def test_results_are_whole_for_whoever_wants_them_so() -> None:
    text = "\n".join(f"line {number} {'x' * 100}" for number in range(99))
    shown = played([CallStarted(READ), CallEnded(READ, Outcome(text), 0.1)], verbose=True)
    assert shown[2:] == [f"  {line}" for line in text.split("\n")]


def test_who_is_waited_for_is_shown_with_the_time_it_takes() -> None:
    clock = Clock()
    view = View(lambda: WIDE, now=clock)

    def live(*events: Event) -> list[str]:
        for event in events:
            view.show(event)
        clock.time += 2
        return [line[2:] for line in plain(view.frame().live) if line]

    assert live() == ["waiting 2.0 s · Ctrl-C stops"]
    assert live(ThinkingPiece("hm")) == ["thinking 2.0 s · Ctrl-C stops"]
    assert live(CallStarted(READ)) == ["read_file README.md · 2.0 s"]
    assert live(CallStarted(LOOK)) == ["read_file README.md · 4.0 s", "search_files src TODO · 2.0 s"]
    assert live(CallEnded(LOOK, Outcome("x"), 0.1))[1:] == ["search_files src TODO · x · 0.1 s"]
    many = live(*map(CallStarted, CALLS))
    assert len(many) == 7
    assert many[-1] == "… 5 more"


def test_half_an_answer_is_shown_as_it_comes_and_a_void_one_vanishes() -> None:
    view = View(lambda: WIDE)
    view.show(TextPiece("First.\n\nSecond\n**bo"))
    frame = view.frame()
    assert plain(frame.done) == ["", "First."]
    assert plain(frame.live)[:3] == ["", "Second", "**bo"]
    view.show(TextPiece("ld**"))
    assert plain(view.frame().live)[:3] == ["", "Second", "bold"]
    view.show(Restart("Broken."))
    frame = view.frame()
    assert "Second" not in "".join(plain((*frame.done, *frame.live)))


def test_a_long_fence_scrolls_by_while_it_comes() -> None:
    view = View(lambda: os.terminal_size((80, 10)))
    code = [f"line{number} = {number}" for number in range(100)]
    seen: list[str] = []
    view.show(TextPiece("```python\n"))
    for line in code:
        view.show(TextPiece(f"{line}\n"))
        frame = view.frame()
        seen += plain(frame.done)
        assert line in plain(frame.live)
        assert len(frame.live) < 10
    assert len(seen) > 90
    assert [*seen, *plain(view.close().done)] == ["", *code]


@given(st.lists(EVENTS, max_size=12), ENDS, SCREENS, st.lists(st.booleans(), min_size=1), st.booleans())
def test_the_same_lines_stay_whenever_they_are_drawn_and_each_once(
    events: list[Event], end: TurnEnded, size: os.terminal_size, drawn: list[bool], verbose: bool
) -> None:
    view, stayed = View(lambda: size, verbose=verbose), list[str]()
    for index, event in enumerate([*events, end]):
        view.show(event)
        if drawn[index % len(drawn)]:
            frame = view.frame()
            stayed += plain(frame.done)
            assert len(frame.live) < max(2, size.lines)
            assert all(cell_len(line) < size.columns for line in plain(frame.live))
            assert all(line == visible(line) for line in plain(frame.live))
    stayed += plain(view.close().done)
    assert stayed == played([*events, end], size=size, verbose=verbose)
    assert all(line == visible(line) and "\n" not in line for line in stayed)


ROWS = st.lists(st.text("ab日本 ", max_size=9).map(lambda text: Text(text.rstrip(), "bold")), max_size=6)


@given(st.lists(st.tuples(ROWS, ROWS), max_size=8), ROWS, st.booleans())
def test_a_terminal_shows_each_finished_line_once_and_the_last_live_ones(
    frames: list[tuple[list[Text], list[Text]]], last: list[Text], colour: bool
) -> None:
    size = os.terminal_size((20, 8))
    screen = pyte.HistoryScreen(*size, history=1_000, ratio=0.5)
    terminal, out = pyte.Stream(screen), io.StringIO()
    live = Live(out, lambda: size, colour=colour)
    expected: list[str] = []
    for done, moving in [*frames, (last, [])]:
        live.draw(Frame(done, moving))
        terminal.feed(out.getvalue().replace("\n", "\r\n"))
        out.seek(0)
        out.truncate()
        expected += plain(done)
        rows = [
            *("".join(row[at].data for at in range(size.columns)) for row in screen.history.top),
            *screen.display,
        ]
        wanted = [*expected, *(plain(moving) or [""])]
        assert [row.rstrip() for row in rows[: len(wanted)]] == wanted
        assert not "".join(rows[len(wanted) :]).strip()
        assert len(screen.history.top) + screen.cursor.y == len(wanted) - 1


def test_colors_suit_light_and_dark_backgrounds() -> None:
    """Only the terminal's own colors, without white, black and yellow, which vanish on some backgrounds."""
    styles = (*STYLES.values(), *EMPHASES.values(), DIM, BOLD, CODE, TITLE, RED, GREEN)
    named = {style.color.name for style in styles if style.color}
    assert named <= {"red", "green", "blue", "magenta", "cyan"}
    assert not any(style.bgcolor for style in styles)
