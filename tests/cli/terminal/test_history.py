"""What was typed comes back in the next run, and in no other pair of eyes."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.terminal.editor import REACH, KeptHistory


def history(path: Path, complaints: list[str] | None = None) -> KeptHistory:
    return KeptHistory(path, (complaints if complaints is not None else []).append)


def test_what_was_typed_is_read_back_newest_first_and_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "history"
    first = history(path)
    for line in ("one", "two\nlines", " secret", "two\nlines", "日本 \x1b"):
        first.append_string(line)
    assert list(history(path).load_history_strings()) == ["日本 \x1b", "two\nlines", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_damage_costs_the_damaged_line_only(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history(path).append_string("kept")
    path.write_bytes(b'\xff\n"half\n7\n' + path.read_bytes())
    assert list(history(path).load_history_strings()) == ["kept"]


def test_a_long_history_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f'"line {number:07}"\n' for number in range(REACH // 8)))
    found = list(history(path).load_history_strings())
    assert found[0] == f"line {REACH // 8 - 1:07}"
    assert len(found) < REACH // 8


def test_a_history_that_cannot_be_kept_is_said_once_and_works_on(tmp_path: Path) -> None:
    complaints: list[str] = []
    kept = history(tmp_path / "missing" / "history", complaints)
    kept.append_string("one")
    kept.append_string("two")
    assert kept.get_strings() == ["one", "two"]
    path = tmp_path / "missing" / "history"
    assert complaints == [f"What you type is not kept for the arrow keys: {path}: No such file or directory."]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("history") / "history"
    kept = history(path)
    for line in lines:
        kept.append_string(line)
    assert list(reversed(list(history(path).load_history_strings()))) == kept.get_strings()
