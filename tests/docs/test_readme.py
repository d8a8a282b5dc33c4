"""I2: the examples run as they stand, and the documents name only what is there."""

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from hone.cli.main import cli
from hone.core.messages import Message, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, echo
from hone.settings import read
from tests.docs.pages import PAGES, ROOT, anchors, blocks, commands, links, name

README, LIBRARY = ROOT / "README.md", ROOT / "docs" / "library.md"
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PRINTED = {
    README: [
        ["A tool found: README.md"],
        [r"heard: Which of it is generated\?"],
    ],
    LIBRARY: [
        ["A tool found: README.md", "answered after 2 model calls"],
        ["There is a README.", "2 requests, the last with 3 messages"],
        [
            r"\[search_files\]\nA tool found: README.md\nanswered",
            r"heard: And which of them are generated\?",
            r"kept as \w{10}",
        ],
        ["^README.md 8$"],
        ["A tool found: 5 words"],
        [
            r"plan: A scripted model heard: How would you tidy up this folder\?",
            r"Change this file\? It is outside the working folder\.\n/.+other\.txt\nwords",
            r"The user said no: stay in the folder\. \(1 asked\)",
        ],
        [r"heard: What should be remembered\?\n\w+ 4 Suggest a name for a boat\.\n\w+ 4 Suggest"],
        ["answered"],
        [r"^User prefers short answers\. 1$"],
    ],
}
"""Patterns of what each example must print: one without a line here is one that nobody checks."""

EXAMPLES = [
    pytest.param(code, printed, id=f"{name(page)}-{number}")
    for page, expected in PRINTED.items()
    for number, (code, printed) in enumerate(zip(blocks(page, "python"), expected, strict=True), 1)
]


def speak(messages: Sequence[Message]) -> Message:
    """Does what the examples ask for, and tells what the tools said."""
    last = messages[-1]
    if last.result:
        return assistant(f"A tool found: {last.result.text}")
    if "look back over this conversation" in last.text:
        note, said = "User prefers short answers.", "I prefer short answers."
        return assistant(call("memory", action="add", target="user", text=note, evidence=[said]))
    if "names the license" in last.text:
        return assistant('{"file": "README.md", "number": 7}')
    if "Go ahead" in last.text:
        return assistant(call("write_file", path="../other.txt", content="words"))
    if "How many words" in last.text:
        return assistant(call("count_words", path="README.md"))
    if "What is in" in last.text or "Which files are here" in last.text:
        return assistant(call("search_files", glob="*.md"))
    return echo(messages)


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
async def test_an_example_runs_and_prints_what_it_says(
    code: str, printed: list[str], tmp_path: Path, home: Path
) -> None:
    (tmp_path / "README.md").write_text("five words are in here\n", "utf-8")
    async with FakeProvider(speak) as stage:
        environment = os.environ | {
            "HOME": str(tmp_path),
            "HONE_MODEL": "openai/scripted",
            "OPENAI_API_KEY": "test",
            "OPENAI_BASE_URL": f"{stage.url}/v1",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-W", "error", "-c", code),
            cwd=tmp_path,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, err.decode()) == (0, "")
    assert [words for words in printed if not re.search(words, out.decode(), re.MULTILINE)] == [], (
        out.decode()
    )
    assert stage.invalid == []
    assert (home / "hone.db").exists()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading_in_it(page: Path) -> None:
    wrong = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_a_page_names_is_one_that_hone_takes(page: Path) -> None:
    for arguments in commands(page, "hone"):
        assert objection(arguments) == "", f"hone {' '.join(arguments)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_target_a_page_names_is_in_the_makefile(page: Path) -> None:
    for arguments in commands(page, "make"):
        targets = [each for each in arguments if "=" not in each]
        assert [each for each in targets if f"\n{each}:" not in MAKEFILE] == []


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name)
def test_every_settings_file_a_page_shows_can_be_read(page: Path, tmp_path: Path) -> None:
    for text in blocks(page, "toml"):
        (tmp_path / "hone.toml").write_text(text, "utf-8")
        read(tmp_path, {})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sessions list -n 5 --json", ""),
        ("--home /tmp -c", ""),
        ("sessions rename", ""),
        ("sessions frobnicate", "No such command 'frobnicate'"),
        ("--frob", "No such option '--frob'"),
        ("run --frob hi", "No such option '--frob'"),
        ("sessions list extra", "unexpected extra argument"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str, reason: str) -> None:
    assert reason in objection(line.split())
    assert bool(reason) == bool(objection(line.split()))


def objection(arguments: Sequence[str]) -> str:
    """What click has against these arguments. A missing one is fine: a page may name a command alone."""
    command: click.Command = cli
    context = click.Context(cli, info_name="hone")
    left = list(arguments)
    while isinstance(command, click.Group):
        try:
            left = _after_options(command, left)
        except click.NoSuchOption as error:
            return str(error)
        if not left:
            return ""
        inner = command.get_command(context, left.pop(0))
        if inner is None and command is cli and " " in arguments[-len(left) - 1]:
            return ""  # a task in quotes
        if inner is None:
            return f"No such command {arguments[-len(left) - 1]!r}"
        command = inner
    try:
        command.make_context("hone", left)
    except click.MissingParameter:
        return ""
    except click.UsageError as error:
        return str(error)
    return ""


def _after_options(group: click.Group, arguments: list[str]) -> list[str]:
    """What is left for the sub-command, once the group's own options are taken."""
    options = {spelling: each for each in group.params for spelling in each.opts}
    while arguments and arguments[0].startswith("-"):
        option = options.get(arguments[0])
        if option is None and arguments[0] not in ("-h", "--help"):
            raise click.NoSuchOption(arguments[0])
        takes_value = isinstance(option, click.Option) and not option.is_flag
        arguments = arguments[2 if takes_value else 1 :]
    return arguments
