"""What is a command to the chat, and what is a message."""

from pathlib import Path

import pytest

from hone import Hone
from hone.cli.slash import COMMANDS, ChatState, obey, parse
from hone.knowledge.skills.naming import check_name
from hone.models.scripted import Scripted, lines

FAILING = {
    "/mem": "There is no command /mem. Did you mean /memory? /help lists all commands.",
    "/zzz": "There is no command /zzz. /help lists all commands.",
    "/skill": "Which skill? Try /skill NAME and what to do. /skills lists them.",
    "/skill ../x": "There is no skill '../x'.",
    "/approve": "Which change? Give its number, as in: /approve 12. /pending lists them.",
    "/approve 1": "There is no change 1.",
    "/reject -1": "Which change? Give its number, as in: /reject 12. /pending lists them.",
    "/undo 99": "There is no change 99.",
    "/pending": "No lesson waits for your approval.",
    "/log": "Nothing has changed yet.",
    "/memory": "memory:\n  (nothing)\nuser:\n  (nothing)\nproject:\n  (nothing)",
}


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("/help", ("help", "")),
        ("/resume  3f2a ", ("resume", "3f2a")),
        ("/compact the tests\nand the docs", ("compact", "the tests\nand the docs")),
        ("/Quit", ("quit", "")),
        ("/tax-letters to my office", ("tax-letters", "to my office")),
        ("/3d-models\nof a cat", ("3d-models", "of a cat")),
        ("/2 of 3 tests fail", None),
        ("/-x", None),
        ("/etc/passwd has a strange line", None),
        ("/ hello", None),
        ("what does /help do?", None),
        ("/", None),
    ],
)
def test_a_command_is_a_slash_and_a_word(message: str, command: tuple[str, str] | None) -> None:
    assert parse(message) == command


def test_every_command_of_the_help_can_be_typed_and_has_a_name_of_its_own() -> None:
    assert all(parse(f"/{name}") == (name, "") and check_name(name) for name in COMMANDS)


async def test_a_command_that_fails_says_why_and_the_chat_goes_on(home: Path) -> None:
    async with Hone(home=home, model=Scripted(lines("hi"))) as hone:
        talk = ChatState(hone, await hone.session())
        said = {line: await obey(talk, *(parse(line) or ("", ""))) for line in FAILING}
    assert all(isinstance(words, str) and words.startswith(FAILING[line]) for line, words in said.items()), (
        said
    )
