"""Keys without an editor: a line that is typed while the agent works, and a list to choose from."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.terminal.ahead import TypeAhead
from hone.cli.terminal.keyboard import split_keys
from hone.cli.terminal.picking import NONE, Picker

KEYS = [
    "a",
    "ä",
    " ",
    "\r",
    "\x7f",
    "\x1b[A",
    "\x1bOB",
    "\x1b[1;5C",
    "\x1b\r",
    "\x1b[200~x\ry\x1b[201~",
    "\x15",
]
MODELS = ["openai/gpt", "anthropic/claude", "local/small"]


class Heard:
    """Somebody who types, and what came of it."""

    def __init__(self, text: str = "") -> None:
        self.sent: list[str] = []
        self.stopped = 0
        self.line = TypeAhead(self.sent.append, self._stop, lambda: self.sent, text)

    def _stop(self) -> None:
        self.stopped += 1


@given(st.lists(st.sampled_from(KEYS)), st.sets(st.integers(0, 60)))
def test_keys_are_the_same_however_they_arrive(keys: list[str], cuts: set[int]) -> None:
    typed = "".join(keys)
    edges = [0, *sorted(cut for cut in cuts if cut < len(typed)), len(typed)]
    found: list[str] = []
    rest = ""
    for begin, end in pairwise(edges):
        more, rest = split_keys(rest + typed[begin:end])
        found += more
    assert (found, rest) == (keys, "")


@pytest.mark.parametrize(
    ("typed", "keys", "rest"),
    [
        ("\x1b", [], "\x1b"),
        ("\x1b\x1b", ["\x1b"], "\x1b"),
        ("\x1b[", [], "\x1b["),
        ("\x1b[200~ab", [], "\x1b[200~ab"),
    ],
)
def test_the_beginning_of_a_key_waits_for_its_end(typed: str, keys: list[str], rest: str) -> None:
    assert split_keys(typed) == (keys, rest)


@pytest.mark.parametrize(
    ("typed", "text", "sent"),
    [
        ("hello\r", "", ["hello"]),
        ("hellp\x7fo\r", "", ["hello"]),
        ("one two\x17three", "one" + "three", []),
        ("gone\x15kept", "kept", []),
        ("  \r", "", []),
        ("one\\\rtwo\r", "", ["one\ntwo"]),
        ("one\x1b\rtwo\r", "", ["one\ntwo"]),
        ("\x1b[200~a\rb\x1b[201~", "a\nb", []),
        ("a\x1b[A\x1b[Bb\x01\x00", "ab", []),
    ],
)
def test_a_line_is_typed_while_the_agent_works(typed: str, text: str, sent: list[str]) -> None:
    heard = Heard()
    heard.line.feed(typed)
    assert (heard.line.text, heard.sent, heard.stopped) == (text, sent, 0)


def test_escape_stops_and_the_beginning_of_a_key_does_not() -> None:
    heard = Heard("kept")
    heard.line.feed("\x1b")
    assert (heard.stopped, heard.line.is_open) == (0, True)
    heard.line.feed("[A")
    assert (heard.stopped, heard.line.is_open) == (0, False)
    heard.line.feed("\x1b")
    heard.line.close()
    assert (heard.stopped, heard.line.text) == (1, "kept")


@given(st.text(), st.integers(10, 200))
def test_what_is_typed_fits_the_screen_and_shows_its_end(text: str, width: int) -> None:
    lines = Heard(text).line.lines(width)
    assert all(len(line) <= width and "\n" not in line and "\x1b" not in line for line in lines)
    assert bool(lines) is bool(text)
    assert not lines or lines[-1].endswith("▏")


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (["\r"], 0),
        (["\x1b[B", "\r"], 1),
        (["\x1b[B", "\x1b[B", "\x1b[B", "\x1b[A", "\r"], 1),
        (["\x1b[A", "\r"], 0),
        ([*"small", "\r"], 2),
        ([*"a l", "\r"], 1),
        ([*"nothing", "\r"], None),
        ([*"nothing", *["\x7f"] * 7, "\r"], 0),
        (["\x1b[B", "o", "\r"], 0),
        (["\x1b"], NONE),
        (["\x03"], NONE),
    ],
)
def test_a_row_is_chosen_with_arrows_or_by_typing(keys: list[str], chosen: int | None) -> None:
    picker = Picker(MODELS)
    results = [picker.press(key) for key in keys]
    assert (results[-1], set(results[:-1]) - {None}) == (chosen, set())


@given(
    st.lists(st.text(max_size=300), min_size=1, max_size=60),
    st.integers(20, 200),
    st.integers(5, 60),
    st.data(),
)
def test_a_list_fits_the_screen_and_shows_the_marked_row(
    rows: list[str], width: int, height: int, data: st.DataObject
) -> None:
    picker = Picker([row.replace("\n", " ") for row in rows])
    for _ in range(data.draw(st.integers(0, 60))):
        picker.press("\x1b[B")
    lines = picker.lines("Which?", width, height)
    assert len(lines) < height
    assert all(line.cell_len < width for line in lines)
    assert sum(line.plain.startswith(">") for line in lines) == 1
