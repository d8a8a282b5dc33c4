"""What Tab offers."""

from pathlib import Path

import pytest

from hone.cli.terminal.completion import is_eager, offers

COMMANDS = {"help": "A list.", "model": "Which model.", "sessions": "All."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("notes.txt", "no\x1b[2J.txt", "日本.md", ".hidden", "a b.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("/", ["/help", "/model", "/sessions"]),
        ("/M", ["/model"]),
        ("/x", []),
        ("word", []),
        ("", []),
        ("see @", ["a b.txt", "notes.txt", "src/", "日本.md"]),
        ("see @n", ["notes.txt"]),
        ("see @src/", ["main.py"]),
        ("see src/m", ["main.py"]),
        ("see ./n", ["notes.txt"]),
        ("see .h", [".hidden"]),
        ("see nothing/x", []),
        ("@\0", []),
    ],
)
def test_commands_and_files_are_offered_where_they_belong(
    folder: Path, before: str, offered: list[str]
) -> None:
    found = [offer for offer in offers(before, folder, COMMANDS) if not offer.text.startswith("/etc")]
    texts = [offer.text for offer in found]
    assert texts == offered or (before == "see /" and "etc/" in texts)
    assert all(
        offer.text.startswith(before[len(before) - offer.length :]) or before == "/M" for offer in found
    )


def test_an_absolute_path_and_the_home_are_read_from_where_they_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert [offer.text for offer in offers("~/n", Path("/"), {})] == ["notes.txt"]
    assert [offer.text for offer in offers(f"{folder}/src/m", Path("/"), {})] == ["main.py"]


@pytest.mark.parametrize(
    ("before", "eager"),
    [("/", True), ("/he", True), ("/etc/", False), ("see @", True), ("see src/", False), ("", False)],
)
def test_only_commands_and_marked_names_are_offered_unasked(before: str, eager: bool) -> None:
    assert is_eager(before) is eager
