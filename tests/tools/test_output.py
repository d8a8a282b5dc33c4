"""Of what a process says, the beginning and the end stay in memory, and the whole goes to a file."""

import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.sandbox.output import Output, Spill


def fed(spill: Spill, cap: int, *chunks: bytes) -> Output:
    output = Output(spill, cap)
    for chunk in chunks:
        output.feed(chunk)
    output.close()
    return output


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_what_fits_is_shown_whole_and_makes_no_file(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    output = fed(Spill(Path("/no/such/folder"), "none"), 800, *chunks)
    assert output.text() == whole.decode("utf-8", "replace")
    assert output.total == len(whole)


@given(
    text=st.text(min_size=41, max_size=300),
    cuts=st.lists(st.integers(1, 60), min_size=1),
    cap=st.integers(2, 40),
)
def test_head_and_tail_are_the_texts_own_and_the_file_has_it_all(
    tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int], cap: int
) -> None:
    data = text.encode("utf-8", "replace")
    chunks: list[bytes] = []
    rest = data
    while rest:
        size = cuts[len(chunks) % len(cuts)]
        chunks.append(rest[:size])
        rest = rest[size:]
    path = tmp_path_factory.mktemp("spill") / "whole"
    shown = fed(Spill(path, "the file"), cap, *chunks).text()
    head, left_out, tail = re.split(r"\n… ([\d,]+) bytes left out; whole output in the file …\n", shown)
    assert data.decode().startswith(head)
    assert data.decode().endswith(tail)
    assert len(head.encode()) + len(tail.encode()) <= len(data) - int(left_out.replace(",", "")) <= cap
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@given(st.integers(0, 60))
def test_a_word_that_the_cut_would_tear_is_left_out_with_the_middle(before: int) -> None:
    word = b"Ab1" * 10
    whole = (
        b"first\n"
        + b"x" * before
        + b" "
        + word
        + b" "
        + b"y\n" * 100
        + word
        + b" "
        + b"z" * before
        + b"\nlast"
    )
    shown = fed(Spill(Path("/no/such/folder"), "none"), 100, whole).text()
    assert shown.startswith("first\n")
    assert shown.endswith("\nlast")
    assert "Ab1" not in shown.replace(word.decode(), "")


def test_a_flood_takes_little_memory_and_no_more_disk_than_allowed(tmp_path: Path) -> None:
    output = Output(Spill(tmp_path / "flood", "the file", most=100_000), 10_000)
    for _ in range(1_000):
        output.feed(b"x" * 10_000)
        assert len(output._head) + len(output._tail) <= 25_000
    output.close()
    assert (tmp_path / "flood").stat().st_size == 100_000
    assert "… 9,990,000 bytes left out; its first 100,000 bytes in the file …" in output.text()


@pytest.mark.parametrize("kind", ["missing", "link", "there"])
def test_a_file_that_cannot_be_made_is_said_and_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    path, kept = tmp_path / "spill", tmp_path / "kept"
    kept.write_text("kept")
    if kind == "missing":
        path = tmp_path / "no" / "folder"
    elif kind == "link":
        path.symlink_to(kept)
    else:
        os.link(kept, path)
    text = fed(Spill(path, "the file"), 100, b"x" * 500).text()
    assert "400 bytes left out; the rest could not be saved (" in text
    assert kept.read_text() == "kept"


def test_colours_are_left_out_so_that_nothing_hides_behind_them(tmp_path: Path) -> None:
    output = Output(Spill(tmp_path / "spill", "spill"))
    output.feed(b"\x1b[32mghp_token\x1b[0m \x1b[1;38;5;9mred\x1b[m")
    assert output.text() == "ghp_token red"
