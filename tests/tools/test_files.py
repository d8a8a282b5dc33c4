"""Reading, writing and patching: first all that can go wrong, then the rest."""

import json
import os
import resource
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolKind
from hone.core.trust import Trust
from hone.core.visible import visible
from hone.tools import files
from hone.tools.files import file_tools
from hone.tools.search import search_tool
from hone.tools.todo import todo
from hone.tools.wrappers import SafeTool
from tests.allowed import WORK
from tests.tools.calls import perform

NOBODY = 65_534


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in file_tools(tmp_path, WORK)}


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder for somebody who is not root, whom no permission stops."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        remove(folder)


def remove(folder: Path) -> None:
    """Also what was closed in it, which stops everybody but root."""
    for place, names, _ in os.walk(folder):
        for path in (Path(place, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder)


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """No file can grow beyond `room` bytes: a write fails in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def make_odd_places(folder: Path) -> dict[str, str]:
    """Paths that are no text file, and the reason that must be told."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(".", os.O_RDONLY)
        os.chdir(folder)
        server.bind("socket")
        os.fchdir(here)
        os.close(here)
    (folder / "loop").symlink_to("loop")
    (folder / "file").write_text("text")
    return {
        "folder": "it is a folder",
        ".": "it is a folder",
        "": "it is a folder",
        "pipe": "it is a device, a pipe or a socket",
        "socket": "it is a device, a pipe or a socket",
        "/dev/zero": "it is a device, a pipe or a socket",
        "loop": "too many levels of symbolic links",
        "file/below": "part of its path is a file, not a folder",
        "nul\0l": "embedded null byte",
        "a" * 300: "file name too long",
    }


def test_what_is_no_text_file_is_neither_read_nor_written_nor_patched(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    places = make_odd_places(tmp_path)
    before = content(tmp_path)
    for path, reason in places.items():
        for outcome in (
            perform(tools["read_file"], path=path),
            perform(tools["write_file"], path=path, content="new"),
            perform(tools["patch"], path=path, find="a", replace="b"),
        ):
            assert outcome.failed, path
            assert reason in outcome.text
    assert content(tmp_path) == before


def test_a_missing_file_is_said_to_be_missing_with_names_that_come_close(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    (tmp_path / "settings.py").write_text("x")
    for outcome in (
        perform(tools["read_file"], path="setings.py"),
        perform(tools["patch"], path="setings.py", find="x", replace="y"),
    ):
        assert outcome.failed
        assert "there is no such file; similar names: settings.py" in outcome.text
    assert "there is no such file." in perform(tools["read_file"], path="no/such/folder/x").text


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"PNG\0\1\2", "it is binary (6 bytes)"), (b"caf\xe9", "it is not UTF-8 text (byte 3)")],
)
def test_bytes_that_are_no_text_are_not_read_and_not_patched(
    tools: dict[str, Tool], tmp_path: Path, data: bytes, reason: str
) -> None:
    (tmp_path / "x").write_bytes(data)
    for outcome in (
        perform(tools["read_file"], path="x"),
        perform(tools["patch"], path="x", find="P", replace="Q"),
        perform(tools["patch"], path="x", find="caf", replace="Q"),
    ):
        assert outcome.failed
        assert reason in outcome.text
    assert (tmp_path / "x").read_bytes() == data


def test_too_large_a_file_is_neither_loaded_nor_replaced(tools: dict[str, Tool], tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(files.LARGEST + 1)
    outcome = perform(tools["read_file"], path="huge")
    assert outcome.failed
    assert "67,108,865 bytes" in outcome.text
    outcome = perform(tools["write_file"], path="huge", content="small")
    assert "67,108,865 bytes" in outcome.text
    assert (tmp_path / "huge").stat().st_size == files.LARGEST + 1


@pytest.mark.rights
def test_without_permission_nothing_is_read_or_changed_and_that_is_said() -> None:
    with as_nobody() as folder:
        tools = {tool.spec.name: tool for tool in file_tools(folder, WORK)}
        (folder / "secret").write_text("old")
        (folder / "secret").chmod(0)
        (folder / "fixed").write_text("old")
        (folder / "fixed").chmod(0o444)
        (folder / "closed").mkdir()
        (folder / "closed").chmod(0o555)
        outcomes = [
            perform(tools["read_file"], path="secret"),
            perform(tools["write_file"], path="secret", content="new"),
            perform(tools["write_file"], path="fixed", content="new"),
            perform(tools["patch"], path="fixed", find="old", replace="new"),
            perform(tools["write_file"], path="closed/x", content="new"),
            perform(tools["write_file"], path="closed/deeper/x", content="new"),
        ]
        assert [outcome.failed for outcome in outcomes] == [True] * 6
        assert all("permission denied" in outcome.text for outcome in outcomes)
        (folder / "secret").chmod(0o600)
        assert content(folder) == {"secret": b"old", "fixed": b"old"}
        (folder / "closed").chmod(0o755)


@pytest.mark.rights
def test_a_folder_that_can_be_written_but_not_listed_will_do() -> None:
    with as_nobody() as folder:
        (folder / "drop").mkdir()
        (folder / "drop").chmod(0o300)
        outcome = perform(file_tools(folder, WORK)[1], path="drop/x", content="new")
        (folder / "drop").chmod(0o700)
        assert outcome == Outcome("Created drop/x (3 bytes).", trust=Trust.AGENT)
        assert content(folder) == {"drop/x": b"new"}


def test_on_a_full_disk_the_old_content_stays_and_no_debris_is_left(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    (tmp_path / "x").write_text("old")
    with full_disk(1_000):
        outcomes = [
            perform(tools["write_file"], path="x", content="new" * 1_000),
            perform(tools["patch"], path="x", find="old", replace="new" * 1_000),
            perform(tools["write_file"], path="y", content="new" * 1_000),
        ]
    assert all(outcome.failed and "file too large" in outcome.text for outcome in outcomes)
    assert content(tmp_path) == {"x": b"old"}


def test_a_name_with_hidden_letters_is_shown_with_escapes(tools: dict[str, Tool]) -> None:
    outcome = perform(tools["read_file"], path="a\n[all is well]\u202e\u200b\x1b[31m")
    assert outcome.failed
    assert "a\\n[all is well]\\u202e\\u200b\\x1b[31m was not read" in outcome.text
    assert "é家" in perform(tools["read_file"], path="é家").text


@pytest.mark.parametrize(
    ("find", "replace", "reason"),
    [
        ("", "x", "the text to find is empty"),
        ("absent", "x", "the text to find is not in the file."),
        ("two\n", "two\n", "nothing would change"),
        ("same", "x", "occurs 3 times (lines 3, 5, 6)"),
        ("aa", "x", "occurs 2 times (lines 7, 7)"),
        ("retrun value", "x", "Closest lines:\n4:   return value"),
        ("    two", "x", "Closest lines:\n2: two"),
    ],
)
def test_a_patch_that_does_not_fit_exactly_once_changes_nothing_and_says_why(
    tools: dict[str, Tool], tmp_path: Path, find: str, replace: str, reason: str
) -> None:
    text = "one\ntwo\nsame\n  return value\nsame\nsame\naaa\n"
    (tmp_path / "x").write_text(text)
    outcome = perform(tools["patch"], path="x", find=find, replace=replace)
    assert outcome.failed
    assert reason in outcome.text
    assert (tmp_path / "x").read_text() == text


def test_a_patch_with_very_many_matches_says_so_in_a_few_words(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    (tmp_path / "x").write_text("same\n" * 5_000)
    outcome = perform(tools["patch"], path="x", find="same", replace="x")
    assert "1,000 times or more (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)" in outcome.text


def test_a_patch_replaces_one_place_and_shows_the_difference(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    outcome = perform(tools["patch"], path="x", find="line 50\nline 51\n", replace="line fifty\n")
    assert outcome == Outcome(
        "Patched x.\n"
        "@@ -48,6 +48,5 @@\n line 48\n line 49\n-line 50\n-line 51\n+line fifty\n line 52\n line 53",
        trust=Trust.LOCAL,
    )
    assert (tmp_path / "x").read_text().splitlines()[47:52] == [
        "line 48",
        "line 49",
        "line fifty",
        "line 52",
        "line 53",
    ]


def test_a_patch_of_all_places_replaces_them_all(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "x").write_text(
        "".join(f"{'old' if number % 50 == 10 else 'line'} {number}\n" for number in range(100))
    )
    outcome = perform(tools["patch"], path="x", find="old", replace="new", all=True)
    assert [row for row in outcome.text.splitlines() if row[0] in "@-+"] == [
        *("@@ -9,5 +9,5 @@", "-old 10", "+new 10"),
        *("@@ -59,5 +59,5 @@", "-old 60", "+new 60"),
    ]
    assert "old" not in (tmp_path / "x").read_text()


def test_a_difference_of_a_great_many_lines_is_told_in_short(tools: dict[str, Tool], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a\n" * 100)
    outcome = perform(tools["patch"], path="x", find="a", replace="b", all=True)
    assert outcome.text.endswith("[121 more lines]")
    (tmp_path / "x").write_text("a\n" * 10_000)
    assert (
        "[lines 1 to 10,000 changed]"
        in perform(tools["patch"], path="x", find="a", replace="b", all=True).text
    )


@pytest.mark.parametrize(
    ("before", "find", "replace", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\nb\nc\n", "a\r\nb", "x\r\ny", b"x\ny\nc\n"),
        (b"a\nb\r\nc\r\nd\r\n", "a\nb", "x\ny", b"x\ny\r\nc\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"no end", "no end", "still\nnone", b"still\nnone"),
    ],
)
def test_a_patch_keeps_the_line_endings_of_the_file(
    tools: dict[str, Tool], tmp_path: Path, before: bytes, find: str, replace: str, after: bytes
) -> None:
    (tmp_path / "x").write_bytes(before)
    assert not perform(tools["patch"], path="x", find=find, replace=replace).failed
    assert (tmp_path / "x").read_bytes() == after


HIDING = "name = 'a\u200bb'\nsafe = '\u202egnp.exe'\u3164\nfa\u00e7ade = 'می\u200cخواهم'\n\x0clast = 1\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_patch_finds_text_that_was_shown_with_escapes_and_keeps_the_rest_of_the_file(
    tools: dict[str, Tool], tmp_path: Path, end: str
) -> None:
    text = HIDING.replace("\n", end)
    (tmp_path / "x").write_bytes(text.encode())
    seen = perform(SafeTool(tools["read_file"], str), path="x").text
    assert "\\u200b" in seen
    assert "\\u3164" in seen
    for line in seen.split("\n"):
        (tmp_path / "x").write_bytes(text.encode())
        assert not perform(tools["patch"], path="x", find=line, replace=f"{line} # seen").failed
        original = next(each for each in text.split(end) if visible(each) == line)
        assert (tmp_path / "x").read_bytes().decode() == text.replace(original, f"{original} # seen")
    (tmp_path / "x").write_bytes(text.encode())
    assert not perform(tools["patch"], path="x", find=seen, replace="whole").failed
    assert (tmp_path / "x").read_bytes() == f"whole{end}".encode()


def test_an_escape_that_stands_for_several_places_is_ambiguous_unless_all_are_meant(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    (tmp_path / "x").write_text("a\u200b\n\u200b\u200b\n")
    assert (
        "occurs 3 times (lines 1, 2, 2)" in perform(tools["patch"], path="x", find="\\u200b", replace="").text
    )
    assert "is not in the file" in perform(tools["patch"], path="x", find="200b", replace="").text
    assert not perform(tools["patch"], path="x", find="\\u200b", replace="-", all=True).failed
    assert (tmp_path / "x").read_text() == "a-\n--\n"


LINES = st.lists(st.text("ab \té", max_size=6), max_size=12)


@given(st.data(), LINES, st.sampled_from(["\n", "\r\n"]), st.text("ab\n é", max_size=9))
def test_a_patch_changes_exactly_what_was_found(
    data: st.DataObject, lines: list[str], end: str, replace: str
) -> None:
    text = end.join(lines)
    start = data.draw(st.integers(0, len(text)))
    find = text[start : data.draw(st.integers(start, len(text)))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x")
        path.write_bytes(text.encode())
        outcome = perform(file_tools(Path(folder), WORK)[2], path="x", find=find, replace=replace)
        now = path.read_bytes().decode()
    if outcome.failed:
        assert now == text
    else:
        assert text.count(find) == 1
        head, _, tail = text.partition(find)
        assert now[: len(head)] == head
        assert now[len(now) - len(tail) :] == tail
        assert now[len(head) : len(now) - len(tail)].replace("\r\n", "\n") == replace.replace("\r\n", "\n")


def test_writing_makes_folders_keeps_the_mode_and_says_what_it_did(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    assert perform(tools["write_file"], path="a/b/c.txt", content="é\n") == Outcome(
        "Created a/b/c.txt (3 bytes).", trust=Trust.AGENT
    )
    target = tmp_path / "a/b/c.txt"
    fresh = stat.S_IMODE(target.stat().st_mode)
    (tmp_path / "ordinary").touch()
    assert fresh == stat.S_IMODE((tmp_path / "ordinary").stat().st_mode)
    target.chmod(0o751)
    outcome = perform(tools["write_file"], path=str(target), content="")
    assert outcome == Outcome(f"Overwrote {target} (0 bytes; it had 3).", trust=Trust.AGENT)
    assert stat.S_IMODE(target.stat().st_mode) == 0o751
    assert content(tmp_path) == {"a/b/c.txt": b"", "ordinary": b""}


def test_a_path_that_ends_like_a_folder_is_not_written(tools: dict[str, Tool], tmp_path: Path) -> None:
    assert perform(tools["write_file"], path="notes/", content="x").failed
    assert list(tmp_path.iterdir()) == []


def test_writing_through_a_link_leaves_the_link_and_changes_its_target(
    tools: dict[str, Tool], tmp_path: Path
) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("born")
    perform(tools["write_file"], path="link", content="new")
    perform(tools["patch"], path="link", find="new", replace="newer")
    perform(tools["write_file"], path="dangling", content="born")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "dangling").is_symlink()
    assert content(tmp_path) == {"real": b"newer", "link": b"newer", "born": b"born", "dangling": b"born"}


def test_paths_start_at_the_folder_or_at_home_or_at_the_root(
    tools: dict[str, Tool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    perform(tools["write_file"], path="~/x", content="at home")
    assert perform(tools["read_file"], path="home/x").text == "at home"
    assert perform(tools["read_file"], path=str(tmp_path / "home" / "x")).text == "at home"
    assert perform(tools["read_file"], path="sub/../home/x").failed
    assert perform(tools["read_file"], path="~nobody-of-that-name/x").failed


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("", {}, Outcome("[the file is empty]")),
        ("a", {}, Outcome("a")),
        ("a\nb\n", {}, Outcome("a\nb")),
        ("a\r\nb\r\n", {}, Outcome("a\nb")),
        ("\ufeffa\n", {}, Outcome("a")),
        ("a\x0cb\u2028c\n", {}, Outcome("a\x0cb\u2028c")),
        ("a\nb\nc\n", {"limit": 2}, Outcome("a\nb\n[1 more lines; continue with offset=3]")),
        ("a\nb\nc\n", {"offset": 2, "limit": 1}, Outcome("b\n[1 more lines; continue with offset=3]")),
        ("a\nb\nc\n", {"offset": 3}, Outcome("c")),
        ("a\nb\nc\n", {"offset": 2, "limit": 10**30}, Outcome("b\nc")),
        ("a\nb\nc\n", {"offset": 4}, Outcome("There is no line 4: the file has 3 lines.", failed=True)),
        ("x" * 2_001, {}, Outcome("x" * 2_000 + " [1 more characters]")),
    ],
)
def test_reading_gives_lines_and_says_how_many_are_left(
    tools: dict[str, Tool], tmp_path: Path, text: str, arguments: dict[str, int], expected: Outcome
) -> None:
    (tmp_path / "x").write_bytes(text.encode())
    outcome = perform(tools["read_file"], path="x", **arguments)
    assert (outcome.text, outcome.failed) == (expected.text, expected.failed)


def test_what_the_tools_declare_is_what_they_do(tools: dict[str, Tool], tmp_path: Path) -> None:
    declared = {name: (set(tool.spec.effects), tool.spec.readonly) for name, tool in tools.items()}
    assert declared == {
        "read_file": ({Effect.READ}, True),
        "write_file": ({Effect.WRITE}, False),
        "patch": ({Effect.READ, Effect.WRITE}, False),
    }
    assert {tool.spec.kind for tool in (*tools.values(), search_tool(tmp_path, WORK))} == {ToolKind.FILE}


def test_the_first_five_schemas_are_small(tools: dict[str, Tool], tmp_path: Path) -> None:
    schemas = [tool.spec.schema for tool in (*tools.values(), search_tool(tmp_path, WORK), todo)]
    assert sum(len(schema.encode()) for schema in schemas) <= 3_500
    assert [json.loads(schema)["name"] for schema in schemas] == [
        *("read_file", "write_file", "patch"),
        *("search_files", "todo"),
    ]
