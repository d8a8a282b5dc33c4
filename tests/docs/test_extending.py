"""docs/extending.md: each example, applied to a copy of the source, does what the page says."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import PIPE
from urllib.request import Request, urlopen

import pytest

from tests.docs.pages import ROOT
from tests.golden import environment, hone
from tests.provider import Call, Provider, Say

PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"This\s+example\s+touches\s+(\d+)\s+files?")


WIRE = {
    "Add a tool": "roll_dice",
    "Add a review topic": "the people the user works with",
    "Add a feature": "The user's motto: Measure twice, cut once.",
}
"""What an example adds to a request."""


def apply(section: str, root: Path) -> set[str]:
    """Make the files and changes of a section, and return the paths."""
    touched = set()
    for kind, path, text in BLOCK.findall(section):
        if not path:
            continue
        place = root / path
        touched.add(path)
        if kind == "diff":
            rows = text.splitlines()
            before = "\n".join(row[1:] for row in rows if row[0] in " -")
            after = "\n".join(row[1:] for row in rows if row[0] in " +")
            whole = place.read_text("utf-8")
            assert whole.count(before) == 1, f"{path} does not hold this once:\n{before}"
            place.write_text(whole.replace(before, after), "utf-8")
        else:
            assert not place.exists(), f"{path} exists already"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
    return touched


def commands(section: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield each command of a section with the lines it must print."""
    for kind, _, text in BLOCK.findall(section):
        if kind == "console":
            for command, said in re.findall(r"^\$ (.+)\n((?:[^$].*\n)*)", text, re.MULTILINE):
                yield shlex.split(command), said.splitlines()


def replies(title: str) -> list[Say]:
    """Return what the scripted provider says in a section."""
    match title:
        case "Add a tool":
            roll = Call.of("call_1", "roll_dice", count=3)
            return [Say(calls=[roll]), Say("You rolled 3 dice.")]
        case "Add a provider":
            return [Say("Hello from the provider.")]
        case "Add a review topic":
            return [Say("Noted."), Say("There is nothing to keep.")]
        case "Add a command with a page":
            return [Say("Hello.")]
        case "Add a feature":
            return [Say("Understood.")]
    raise AssertionError(f"{title} has no script")


def surroundings(title: str, root: Path, provider: Provider) -> dict[str, str]:
    if title == "Add a provider":
        keys = {"GROQ_API_KEY": "test", "GROQ_BASE_URL": f"{provider.url}/v1"}
        return {**environment(root / "home"), **keys, "PYTHONPATH": str(root / "src")}
    return environment(root / "home", provider, PYTHONPATH=str(root / "src"), HONE_MODEL="openai/scripted")


def assert_page(env: Mapping[str, str], root: Path) -> None:
    """The server answers what the new page asks for, and hands out its script."""
    command = [sys.executable, "-m", "hone", "serve", "--no-open", "--port", "0"]
    with subprocess.Popen(command, env=env, cwd=root / "work", stdout=PIPE, text=True) as server:
        assert server.stdout
        try:
            [address] = re.findall(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
            head = {"Authorization": f"Bearer {(root / 'home' / 'serve.key').read_text().strip()}"}
            with urlopen(Request(f"{address}/api/streak", headers=head)) as answer:
                assert json.load(answer) == {"days": 1}
            with urlopen(Request(f"{address}/static/streak.js", headers=head)) as answer:
                assert b"/api/streak" in answer.read()
        finally:
            server.terminate()


@pytest.mark.parametrize("title", SECTIONS)
def test_an_example_works_as_shown_and_touches_as_many_files_as_it_says(title: str, tmp_path: Path) -> None:
    section = SECTIONS[title]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    touched = apply(section, tmp_path)
    [number] = NUMBER.findall(section)
    assert len(touched) == int(number)
    (tmp_path / "work").mkdir()
    with Provider(*replies(title)) as provider:
        env = surroundings(title, tmp_path, provider)
        for [_, *arguments], expected in commands(section):
            ended = hone(*arguments, env=env, folder=tmp_path / "work")
            assert ended.code == 0, ended.err
            assert [line for line in expected if line not in ended.out.splitlines()] == []
        if title == "Add a command with a page":
            assert_page(env, tmp_path)
    sent = b"".join(provider.bodies).decode()
    assert WIRE.get(title, "") in sent
