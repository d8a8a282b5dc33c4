"""What the user sees of a turn, event by event."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.output import wrap_rows
from hone.cli.render import Paint, Renderer, account, describe, extent
from hone.core.events import CallEnded, CallStarted, Event, Notice, Spent, TurnEnded
from hone.core.messages import ToolCall, assistant
from hone.core.model import Restart, TextPiece, ThinkingPiece, Usage, total
from hone.core.tool import Outcome
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop, Turn
from hone.core.visible import visible

READ = ToolCall("1", "read_file", '{"path":"README.md"}')
LOOK = ToolCall("2", "search_files", '{"pattern":"TODO","path":"src"}')


def ended(
    text: str = "", stop: Stop = Stop.ANSWERED, error: str = "", usage: tuple[Usage, ...] = ()
) -> TurnEnded:
    node = Node.make("root", assistant(text), Trust.AGENT, datetime(2026, 1, 1, tzinfo=UTC))
    return TurnEnded(Turn(Origin.USER, (node,) if text else (), usage, stop, error))


def screen(events: Iterable[Event], *, colour: bool = False) -> str:
    renderer = Renderer(Paint(colour))
    return "".join(shown.answer + shown.aside for shown in map(renderer.show, events))


def test_a_turn_reads_like_this() -> None:
    usage = Usage(1200, 900, 0, 34, 0.0021)
    events: list[Event] = [
        ThinkingPiece("hm"),
        ThinkingPiece("hm hm"),
        TextPiece("Let me "),
        TextPiece("look."),
        Spent(usage),
        CallStarted(READ),
        CallEnded(READ, Outcome("a\nb\nc\n"), 0.12),
        Restart("The connection broke off.", 2.0),
        TextPiece("All "),
        TextPiece("fine."),
        Notice("The answer was cut."),
        ended("All fine.", usage=(usage, usage)),
    ]
    assert screen(events) == (
        "… thinking\n"
        "Let me look.\n"
        "→ read_file README.md\n"
        "  ✓ 3 lines, 0.1 s\n"
        "↻ The connection broke off. Starting over in 2 s.\n"
        "All fine.\n"
        "The answer was cut.\n"
        "  2 calls · 2,400 tokens in (75% cached) · 68 out · $0.0042\n"
    )


def test_results_of_calls_that_ran_together_name_their_call() -> None:
    events: list[Event] = [
        CallStarted(READ),
        CallStarted(LOOK),
        CallEnded(READ, Outcome("one\ntwo"), 1.0),
        CallEnded(LOOK, Outcome("the path src is missing\nmore", failed=True), 0.0),
    ]
    assert screen(events) == (
        "→ read_file README.md\n"
        "→ search_files src TODO\n"
        "  ✓ read_file README.md: 2 lines, 1.0 s\n"
        "  ✗ search_files src TODO: the path src is missing\n"
    )


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (ended(stop=Stop.FAILED, error="The key was refused."), "✗ The key was refused.\n"),
        (ended("half", Stop.INTERRUPTED, "interrupted"), "Stopped. What was said so far is kept.\n"),
        (ended("So far.", Stop.BUDGET, "The budget is spent."), "So far.\nThe budget is spent.\n"),
        (ended("never streamed"), "never streamed\n"),
    ],
)
def test_every_end_of_a_turn_says_how_it_ended(end: TurnEnded, shown: str) -> None:
    assert screen([end]) == shown


def test_an_answer_that_was_streamed_is_not_said_twice() -> None:
    assert screen([TextPiece("once"), ended("once")]) == "once\n"


def test_what_stands_beside_the_answer_is_broken_between_words_on_a_narrow_screen() -> None:
    failed = Outcome("read_file was not run: there is no such file; similar names: notes.txt", failed=True)
    renderer = Renderer(Paint(colour=True), lambda text: list(wrap_rows([text], 40)))
    shown = [renderer.show(event).aside for event in (CallStarted(READ), CallEnded(READ, failed, 0.1))]
    assert "".join(shown) == (
        "→ read_file README.md\n"
        "  \x1b[31m✗\x1b[0m read_file was not run: there is no\n"
        "    such file; similar names: notes.txt\n"
    )


def test_the_answer_is_kept_apart_from_what_stands_beside_it() -> None:
    renderer = Renderer(Paint())
    events: list[Event] = [
        TextPiece("Hm"),
        CallStarted(READ),
        CallEnded(READ, Outcome("x"), 0),
        TextPiece("Yes"),
    ]
    assert "".join(renderer.show(event).answer for event in events) == "Hm\nYes"


def test_a_line_ending_cut_in_two_is_still_one() -> None:
    assert screen([TextPiece("a\r"), TextPiece("\nb\r"), TextPiece("c"), ended("x")]) == "a\nb\\rc\n"


@given(
    st.lists(
        st.one_of(
            st.text().map(TextPiece),
            st.text().map(ThinkingPiece),
            st.text().map(Notice),
            st.builds(Restart, st.text()),
            st.builds(lambda name, text: CallStarted(ToolCall("1", name, text)), st.text(), st.text()),
            st.builds(
                lambda text, failed: CallEnded(READ, Outcome(text, failed), 0.0), st.text(), st.booleans()
            ),
            st.builds(lambda text: ended("x", Stop.FAILED, text), st.text()),
        )
    )
)
def test_no_event_brings_a_control_sequence_to_the_screen(events: list[Event]) -> None:
    shown = screen(events)
    assert shown == visible(shown)
    assert "\r" not in shown


def test_colour_is_the_only_thing_that_escapes() -> None:
    shown = screen([CallStarted(READ), CallEnded(READ, Outcome("\x1b[2J", failed=True), 0)], colour=True)
    assert shown == "→ read_file README.md\n  \x1b[31m✗\x1b[0m \\x1b[2J\n"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("{}", "todo"),
        ('{"items":[1]}', "todo"),
        ("not json", "todo"),
        ("[1]", "todo"),
        ('{"other":"x","more":"y"}', "todo x"),
        ('{"content":"long","path":"a.md"}', "todo a.md"),
        ('{"path":"a\\nb\\u001b[1m"}', "todo a b\\x1b[1m"),
        ('{"path":"' + "x" * 500 + '"}', "todo " + "x" * 94 + "…"),
    ],
)
def test_a_call_is_described_on_one_line(arguments: str, shown: str) -> None:
    assert describe(ToolCall("1", "todo", arguments)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "0 characters"),
        ("Created a.md.", "Created a.md"),
        ("x" * 61, "61 characters"),
        ("a\nb\n", "2 lines"),
    ],
)
def test_a_result_is_told_by_itself_or_by_its_size(text: str, shown: str) -> None:
    assert extent(text) == shown


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    known, unknown = Usage(10, 5, 0, 1, 0.5), Usage(10, 5, 0, 1, None)
    assert total([known, known]) == Usage(20, 10, 0, 2, 1.0)
    assert total([known, unknown]).cost is None
    assert account([known, unknown]).endswith("cost unknown")
    assert account([Usage(10, 0, 0, 1, 1.5)]) == "1 call · 10 tokens in · 1 out · $1.50"
