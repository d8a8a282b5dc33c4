"""F3: a working folder whose name is not UTF-8 is a folder like any other, shown with visible escapes."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.messages import assistant
from hone.core.turn import Stop
from hone.core.visible import path_to_text, text_to_path, visible
from hone.models.scripted import Scripted, call, rounds
from tests.golden import Ended, environment, hone
from tests.provider import Provider, Say

NAME = os.fsdecode(b"caf\xe9 \xff dir")
SHOWN = r"caf\xe9 \xff dir"
TEXT = st.binary().filter(lambda data: b"\0" not in data) | st.text(r"\x5ce9/é ", max_size=12).map(
    os.fsencode
)


@given(TEXT)
def test_every_name_has_a_text_of_its_own_that_leads_back_to_it(name: bytes) -> None:
    path = Path(os.fsdecode(name))
    text = path_to_text(path)
    assert text_to_path(text) == path
    assert text.encode().decode() == text
    if "\\x" not in str(path) and text.encode() == os.fsencode(path):
        assert text == str(path)


@pytest.mark.parametrize("name", ["/srv/project", "/home/ann/Café", r"C:\new", "/tmp/a b", "."])
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert path_to_text(Path(name)) == name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / NAME
    place.mkdir()
    return place


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(Say("Hello."), Say("Hello again.")) as provider:
        yield provider


async def test_tools_work_in_such_a_folder_and_a_session_returns_to_it(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    whole = f"{path_to_text(folder)}/a.txt"
    script = rounds(
        assistant(call("write_file", path="a.txt", content="hello\n")),
        assistant(call("read_file", path=whole)),
        assistant(call("search_files", pattern="hello")),
        assistant(call("terminal", command="cat a.txt")),
        "Done.",
    )
    for _ in range(2):
        async with Hone(home=home, model=Scripted(script), folder=folder, mode="full") as opened:
            session = await opened.session()
            turn = await session.send("go")
            assert turn.stop is Stop.ANSWERED
            results = [node.message.result for node in turn.nodes if node.message.result]
            assert [result.failed for result in results] == [False] * 4
            assert SHOWN in session.agent.prefix.system
        async with Hone(home=home, model=Scripted(script), folder=tmp_path, mode="full") as opened:
            again = await opened.resume(session.id)
            assert (again.header.folder, opened.notices) == (path_to_text(folder), [])
            await again.send("go")
    assert os.listdir(os.fsencode(tmp_path)) == [os.fsencode(NAME)]
    assert (folder / "a.txt").read_text() == "hello\n"


COMMANDS = (
    ("sessions", "list", "--json"),
    ("sessions", "search", "canary"),
    ("trust", "--yes"),
    ("trust", "--list"),
    ("permissions",),
    ("permissions", "allow", "terminal: make test"),
    ("memory", "add", "Uses tabs.", "--to", "project"),
    ("memory", "show"),
    ("log",),
)


def test_every_command_works_in_such_a_folder(home: Path, folder: Path, provider: Provider) -> None:
    def run(*arguments: str) -> Ended:
        env = environment(home, provider, HONE_MODEL="anthropic/m")
        ended = hone(*arguments, env=env, folder=folder)
        assert "Traceback" not in ended.err, ended.err
        return ended

    session = json.loads(run("run", "--json", "canary").out)["session"]
    for command in COMMANDS:
        assert run(*command).code == 0, command
    listed = json.loads(run("sessions", "list", "--json").out)
    assert [each["folder"] for each in listed] == [path_to_text(folder)]
    assert f"{SHOWN} is trusted" in run("doctor").out
    assert SHOWN in run("sessions", "show", session).out
    for form in ("json", "markdown"):
        assert run("sessions", "export", session, "--format", form, "-o", f"out.{form}").code == 0
    assert run("run", "--resume", session, "and again").code == 0
    assert SHOWN in run("trust", "--forget").out


def test_a_message_shows_the_byte_that_is_no_text() -> None:
    assert visible(NAME) == SHOWN
