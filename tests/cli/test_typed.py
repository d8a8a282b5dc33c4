"""How lines become a message."""

from collections.abc import Callable

import pytest

from hone.cli.slash import parse
from hone.cli.typed import read_message


def typing(*lines: str) -> Callable[[str], str]:
    waiting = iter(lines)

    def read(_: str) -> str:
        line = next(waiting, None)
        if line is None:
            raise EOFError
        return line

    return read


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["hello"], "hello"),
        (["one \\", "two\\", "three"], "one \ntwo\nthree"),
        (['"""one', "", "  two", 'three"""'], "one\n\n  two\nthree"),
        (['"""', "def f():", '    """Doc."""  and more', '"""'], 'def f():\n    """Doc."""  and more'),
        (['"""all on one line"""'], "all on one line"),
        (['x = """', "next"], 'x = """'),
    ],
)
def test_a_message_may_take_several_lines(lines: list[str], message: str) -> None:
    assert read_message(typing(*lines)) == message


@pytest.mark.parametrize("lines", [[], ["more \\"], ['"""open', "still open"]])
def test_a_message_that_never_ends_is_none(lines: list[str]) -> None:
    with pytest.raises(EOFError):
        read_message(typing(*lines))


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("/help", ("help", "")),
        ("/resume  3f2a ", ("resume", "3f2a")),
        ("/Quit", ("quit", "")),
        ("/etc/passwd has a strange line", None),
        ("/ hello", None),
        ("what does /help do?", None),
        ("/", None),
    ],
)
def test_a_command_is_a_slash_and_a_word(message: str, command: tuple[str, str] | None) -> None:
    assert parse(message) == command
