"""What is a command to the chat, and what is a message."""

import pytest

from hone.cli.slash import parse


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("/help", ("help", "")),
        ("/resume  3f2a ", ("resume", "3f2a")),
        ("/compact the tests\nand the docs", ("compact", "the tests\nand the docs")),
        ("/Quit", ("quit", "")),
        ("/etc/passwd has a strange line", None),
        ("/ hello", None),
        ("what does /help do?", None),
        ("/", None),
    ],
)
def test_a_command_is_a_slash_and_a_word(message: str, command: tuple[str, str] | None) -> None:
    assert parse(message) == command
