"""A result too large for the history goes to a file; if there can be no file, it is cut all the same."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import ToolCall
from hone.core.tool import Outcome
from hone.files.documents import FileDocuments
from hone.tools.wrappers import Capped, cut
from tests.tools.calls import EMPTY, Puppet


def result(capped: Capped) -> Outcome:
    return asyncio.run(capped.run(ToolCall("1", "puppet", "{}"), EMPTY))


def saying(text: str, *, failed: bool = False, name: str = "puppet") -> Puppet:
    return Puppet(lambda _: Outcome(text, failed), name)


def test_where_no_file_can_be_written_the_result_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        outcome = result(Capped(saying("x" * 5_000, failed=True), FileDocuments(folder), folder, 500))
        assert outcome.failed
        assert len(outcome.text) <= 500
        assert "characters left out; the rest could not be saved (" in outcome.text
    assert os.listdir(tmp_path) == ["file"]


def test_a_result_within_the_limit_passes_and_makes_no_folder(tmp_path: Path) -> None:
    puppet = saying("x" * 500, failed=True)
    assert result(Capped(puppet, FileDocuments(tmp_path), tmp_path, 500)) == Outcome("x" * 500, failed=True)
    assert not (tmp_path / "spill").exists()


@pytest.mark.parametrize("failed", [True, False])
def test_an_oversized_result_is_kept_whole_in_a_private_file(tmp_path: Path, failed: bool) -> None:
    text = "".join(f"line {number} é\n" for number in range(5_000))
    folder = tmp_path / "new" / "spill"
    outcome = result(Capped(saying(text, failed=failed), FileDocuments(folder.parent), folder.parent))
    (path,) = folder.iterdir()
    assert path.read_text() == text
    assert path.name.startswith("puppet-")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert outcome.failed is failed
    assert len(outcome.text) <= 20_000
    assert f"characters left out; full result in {path} …" in outcome.text
    assert outcome.text.startswith("line 0 é\nline 1 é\n")
    assert outcome.text.endswith("line 4999 é\n")


def test_the_same_result_is_kept_once_and_another_one_beside_it(tmp_path: Path) -> None:
    assert result(Capped(saying("x" * 900), FileDocuments(tmp_path), tmp_path, 500)) == result(
        Capped(saying("x" * 900), FileDocuments(tmp_path), tmp_path, 500)
    )
    assert len(os.listdir(tmp_path / "spill")) == 1
    result(Capped(saying("y" * 900), FileDocuments(tmp_path), tmp_path, 500))
    assert len(os.listdir(tmp_path / "spill")) == 2


def test_a_name_of_a_tool_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    result(Capped(saying("x" * 900, name="../../up/" + "n" * 300), FileDocuments(tmp_path), tmp_path, 500))
    assert os.listdir(tmp_path) == ["spill"]
    (name,) = os.listdir(tmp_path / "spill")
    assert name.startswith("______up_nnn")


def test_letters_that_no_file_can_hold_do_no_harm(tmp_path: Path) -> None:
    capped = Capped(saying("\ud800" * 900), FileDocuments(tmp_path), tmp_path, 500)
    assert "full result in" in result(capped).text


@given(st.text(min_size=1, max_size=3_000), st.text(max_size=80), st.integers(1, 2_000))
def test_head_note_and_tail_stay_within_the_limit(text: str, where: str, limit: int) -> None:
    if len(text) > limit:
        short = cut(text, where, limit)
        assert len(short) <= limit
        head, note, tail = short.partition("\n… ")
        if note and limit > 200 and "\n… " not in text:
            left_out = int(tail.split()[0].replace(",", ""))
            tail = tail.partition(f"{where} …\n")[2]
            assert text.startswith(head)
            assert text.endswith(tail)
            assert len(head) + left_out + len(tail) == len(text)


def test_an_exception_of_the_tool_passes_and_the_surface_is_the_tools(tmp_path: Path) -> None:
    def fail(call: ToolCall) -> Outcome:
        raise OSError("broken")

    capped = Capped(Puppet(fail), FileDocuments(tmp_path), tmp_path)
    with pytest.raises(OSError, match="broken"):
        result(capped)
    assert capped.spec == Puppet(fail).spec
