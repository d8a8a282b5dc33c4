"""J1, L6: what is read in advance about folders counts for a moment, and an own answer counts at once."""

import time
from pathlib import Path

import pytest

from hone.runtime import trust
from hone.runtime.trust import Folders
from tests.reference.documents import InMemoryDocuments


def test_answers_that_were_read_in_advance_count_for_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    documents = InMemoryDocuments()
    here, elsewhere = Folders.of(documents), Folders.of(documents)
    elsewhere.trust(tmp_path)
    here.look()
    elsewhere.decline(tmp_path)
    assert here.trusts(tmp_path)
    now += trust.FRESH
    assert not here.trusts(tmp_path)


@pytest.mark.parametrize("answer", [Folders.decline, Folders.forget])
def test_an_answer_given_here_counts_at_once(tmp_path: Path, answer: object) -> None:
    folders = Folders.of(InMemoryDocuments())
    folders.trust(tmp_path)
    folders.look()
    answer(folders, tmp_path)  # type: ignore[operator]
    assert not folders.trusts(tmp_path)
    folders.look()
    folders.trust(tmp_path)
    assert folders.trusts(tmp_path)
