"""What file tools cut out of a file is redacted with the whole file in view, and lines keep their numbers."""

from pathlib import Path

import pytest

from hone.core.tool import Tool
from hone.tools.files import file_tools
from hone.tools.search import search_tool
from tests.allowed import WORK
from tests.core.secret_shapes import CONFIG_FILES, KEY_FILES, Holder
from tests.tools.calls import perform

OPTIONS = "# mine\n[client]\nuser = me\npassword = swordfish\nhost = db\n"
"""Only the section says that the word is a password."""
PEM = KEY_FILES[0]
WALLET = next(holder for holder in CONFIG_FILES if holder.name == "wallet.txt")


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Tool]:
    (tmp_path / "options").write_text(OPTIONS)
    (tmp_path / "key").write_text(f"before\n{PEM.text}after\n")
    (tmp_path / "wallet").write_text(WALLET.text)
    return {tool.spec.name: tool for tool in (*file_tools(tmp_path, WORK), search_tool(tmp_path, WORK))}


def test_one_line_of_a_file_is_read_without_its_secret(tools: dict[str, Tool]) -> None:
    line = perform(tools["read_file"], path="options", offset=4, limit=1).text
    assert line.startswith("password = [redacted: password]\n[1 more lines")
    for number in range(1, 25):
        assert perform(tools["read_file"], path="wallet", offset=number, limit=1).text.count("redacted") == 1


def test_lines_keep_their_numbers_behind_a_secret_of_several_lines(tools: dict[str, Tool]) -> None:
    rows = perform(tools["read_file"], path="key").text.split("\n")
    count = len(PEM.text.split("\n")) - 1
    assert rows == ["before", *["[redacted: private key]"] * count, "after"]
    assert perform(tools["read_file"], path="key", offset=count + 2).text == "after"
    assert perform(tools["search_files"], pattern="^after", path="key").text == f"key:{count + 2}: after"


def test_a_line_that_matches_is_shown_without_its_secret(tools: dict[str, Tool]) -> None:
    found = perform(tools["search_files"], pattern="word|user", path="options").text
    assert found == "options:3: user = me\noptions:4: password = [redacted: password]"
    assert (
        perform(tools["search_files"], pattern="[A-Z]", path="key").text.count("[redacted: private key]") > 5
    )


@pytest.mark.parametrize(
    ("find", "replace"), [("# mine", "# ours"), ("user = me", "user = you"), ("host", "port")]
)
def test_a_diff_shows_no_secret_of_the_file_before_or_after(
    tools: dict[str, Tool], find: str, replace: str
) -> None:
    shown = perform(tools["patch"], path="options", find=find, replace=replace).text
    assert f"+{replace}" in shown
    assert "swordfish" not in shown


def test_a_secret_that_is_changed_is_a_change_without_it(tools: dict[str, Tool], tmp_path: Path) -> None:
    shown = perform(tools["patch"], path="options", find="swordfish", replace="trombone").text
    assert "-password = [redacted: password]\n+password = [redacted: password]" in shown
    assert "trombone" in (tmp_path / "options").read_text()


def test_the_closest_lines_of_a_text_that_is_not_there_hold_no_secret(tools: dict[str, Tool]) -> None:
    shown = perform(tools["patch"], path="options", find="password = swordfisch", replace="x")
    assert shown.failed
    assert "4: password = [redacted: password]" in shown.text


@pytest.mark.parametrize("holder", KEY_FILES, ids=[holder.name for holder in KEY_FILES])
def test_every_line_of_every_key_is_redacted_alone(holder: Holder, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(holder.text)
    read_file = file_tools(tmp_path, WORK)[0]
    for number in range(holder.text.count("\n")):
        line = perform(read_file, path="key", offset=number + 1, limit=1).text
        assert [secret for secret in holder.secrets if secret in line] == []
