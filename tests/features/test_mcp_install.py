"""I4: `hone mcp install` adds one entry to another program's configuration, and `uninstall` takes it out."""

import json
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.options import Options
from hone.core.errors import HoneError
from hone.features.mcp.commands import mcp
from hone.features.mcp.server.config_text import Entry, JsonForm, TomlForm
from hone.features.mcp.server.programs import NAME, PROGRAMS
from tests.cli.driving import environment, hone
from tests.cli.driving import terminal as screen

ENTRY: Entry = {"command": "hone", "args": ["mcp"]}
ZED = """\
// Zed settings
{
  "theme": "One Dark", // "context_servers": {"hone": 1}
  /* servers { of mine */
  "context_servers": {
    "other": {"command": "x", "args": ["a // no comment", "}"]},
  },
  "font_size": 14,
}
"""
CODEX = """\
# my settings
model = "gpt-5" # the best

[mcp_servers.other] # mine
command = "x"

[mcp_servers.other.env]
KEY = "[mcp_servers.hone]"

[tui]
theme = "dark"
"""
TEXTS = {
    "claude-code": '{"numStartups": 3, "mcpServers": {}, "projects": {"/a": {"mcpServers": {"hone": {}}}}}',
    "codex": CODEX,
    "cursor": '{\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"url": "http://x"\n\t\t}\n\t}\n}\n',
    "zed": ZED,
}


def run(home: Path, *arguments: str) -> tuple[int, str]:
    """Run `hone mcp` here, with nobody to ask; the exit code and all that was printed."""
    done = CliRunner().invoke(mcp, arguments, obj=Options(), env={"HOME": str(home)}, standalone_mode=False)
    if isinstance(done.exception, click.ClickException):
        return 2, done.output + done.exception.message
    if done.exception:
        assert isinstance(done.exception, HoneError), done.exception
        return 1, done.output + str(done.exception)
    return done.return_value or 0, done.output


def find(name: str, text: str) -> Any:
    program = PROGRAMS[name]
    return program.form.find(text, program.table, NAME)


def path_of(home: Path, name: str) -> Path:
    program = PROGRAMS[name]
    return home / program.folder / program.file


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_entry_is_added_between_what_is_there_and_taken_out_to_the_byte(name: str, home: Path) -> None:
    path = path_of(home, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXTS[name])
    path.chmod(0o644)
    shown = run(home, "install", name, "--print")
    assert (shown[0], path.read_text()) == (0, TEXTS[name])
    alone = run(home, "install", name)
    assert (alone[0], "say --yes" in alone[1], path.read_text()) == (2, True, TEXTS[name])
    done = run(home, "install", name, "--yes")
    assert done[0] == 0, done[1]
    entry = find(name, path.read_text())
    assert entry["args"][-3:] == ["mcp", "--client", name]
    assert json.dumps(entry["command"])[1:-1] in shown[1]
    kept = [line for line in TEXTS[name].splitlines() if line.strip()]
    assert name == "claude-code" or all(line in path.read_text().splitlines() for line in kept)
    assert path.stat().st_mode & 0o777 == 0o644
    again = run(home, "install", name, "--yes")
    assert "there already" in again[1]
    gone = run(home, "uninstall", name, "--yes")
    assert (gone[0], path.read_text()) == (0, TEXTS[name])
    assert [each.name for each in path.parent.iterdir() if "before-hone" in each.name] == []
    missing = run(home, "uninstall", name, "--yes")
    assert (missing[0], "not set up" in missing[1]) == (1, True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_that_was_changed_since_loses_only_the_entry(name: str, home: Path) -> None:
    path = path_of(home, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXTS[name])
    run(home, "install", name, "--yes")
    later = {"codex": "\n# later\n[later]\nx = 1\n"}.get(name, "\n")
    path.write_text(path.read_text().replace('"font_size": 14', '"font_size": 15') + later)
    changed = path.read_text()
    assert run(home, "uninstall", name, "--yes")[0] == 0
    left = path.read_text()
    assert find(name, left) is None
    assert left != TEXTS[name]
    ours = set(changed.splitlines()) - set(TEXTS[name].splitlines()) - set(later.splitlines())
    assert set(changed.splitlines()) - set(left.splitlines()) <= ours | {""}
    assert name != "zed" or '"font_size": 15' in left


async def test_the_owner_is_asked_and_a_file_that_was_not_there_goes_again(
    home: Path, tmp_path: Path
) -> None:
    path = path_of(home, "cursor")
    for answer, there in ((b"n\r", False), (b"y\r", True)):
        async with screen("mcp", "install", "cursor", env=environment(home), folder=tmp_path) as terminal:
            await terminal.sees("Add these lines?")
            assert '"--client",' in terminal.text
            terminal.type(answer)
            await terminal.ended()
        assert path.exists() is there
    await hone("mcp", "uninstall", "cursor", "--yes", env=environment(home), folder=tmp_path)
    assert not path.exists()


@pytest.mark.parametrize("text", ["[1]", "{", '{"mcpServers": 3}', '{"a": 1} x', "\x00", "{" * 5_000])
def test_a_file_that_cannot_be_read_stays_as_it_is(text: str, home: Path) -> None:
    path = path_of(home, "cursor")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    code, told = run(home, "install", "cursor", "--yes")
    assert (code, path.read_text()) == (1, text)
    assert "cannot be changed safely" in told


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\/*{}[],: \n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"/,}', max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    others=st.dictionaries(st.text('xy"/{', max_size=4), json_values, max_size=3),
    servers=st.none() | st.dictionaries(st.text('ab"/', min_size=1, max_size=3), json_values, max_size=3),
    indent=st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    end=st.sampled_from(["", "\n", " // end", "\n/* end */\n"]),
)
def test_an_entry_put_into_any_json_and_taken_out_leaves_all_else(
    others: dict[str, Any], servers: dict[str, Any] | None, indent: Any, end: str
) -> None:
    values = {**others, **({"mcpServers": servers} if servers is not None else {})}
    text, form = json.dumps(values, indent=indent) + end, JsonForm()
    put = form.put(text, "mcpServers", NAME, ENTRY)
    assert form.find(put, "mcpServers", NAME) == ENTRY
    assert put.endswith(end)
    assert form.put(put, "mcpServers", NAME, ENTRY) == put
    taken = form.take(put, "mcpServers", NAME)
    assert form.find(taken, "mcpServers", NAME) is None
    for key, value in (servers or {}).items():
        assert form.find(taken, "mcpServers", key) == value


def test_toml_keeps_other_servers_and_their_tables() -> None:
    form = TomlForm()
    put = form.put(CODEX, "mcp_servers", NAME, ENTRY)
    assert tomllib.loads(put)["mcp_servers"] == {**tomllib.loads(CODEX)["mcp_servers"], NAME: ENTRY}
    assert tomllib.loads(form.take(put, "mcp_servers", NAME)) == tomllib.loads(CODEX)
    alone = form.put("", "mcp_servers", NAME, ENTRY)
    assert form.take(alone, "mcp_servers", NAME).strip() == ""
