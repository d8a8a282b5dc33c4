"""F5: the command lists what holds it, asks, erases and proves it, and says what it cannot reach."""

from pathlib import Path

import pytest

from tests.cli.owner import Owner

FACT = "Passport number Q4711-88"


@pytest.fixture
def owner(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Owner:
    return Owner(home, capsys, monkeypatch)


def test_what_holds_it_is_listed_and_asked_for_before_it_goes(owner: Owner) -> None:
    owner.does("memory", "add", FACT)
    owner.does("memory", "add", "Likes tea.")
    listed = owner.does("erase", "words", FACT, "--dry-run")
    assert "versions of journal and skills" in listed
    assert "MEMORY.md" in listed
    unasked = owner("erase", "words", FACT)
    assert (unasked.code, "Add --yes" in unasked.err) == (2, True)
    assert owner.said("memory") == [FACT, "Likes tea."]
    said = owner.does("erase", "words", "passport  NUMBER q4711-88", "--yes")
    assert "A search of every byte of this home finds nothing" in said
    assert "logs of model providers" in said
    assert owner.said("memory") == ["Likes tea."]
    assert owner.does("erase", "words", FACT, "--yes") == "Nothing holds it.\n"
    assert "erased for good" in owner.does("log")


def test_a_lesson_is_erased_by_the_number_of_its_change(owner: Owner) -> None:
    owner.does("memory", "add", FACT)
    owner.does("memory", "replace", FACT, f"{FACT}, until May")
    assert "finds nothing" in owner.does("erase", "lesson", "1", "--yes")
    assert owner.said("memory") == []
    assert FACT not in owner.does("log", "--json") + owner.does("show", "1") + owner.does("diff", "2")
    assert "says nothing that could be erased" in owner.fails("erase", "lesson", "1", "--yes")
    assert "is no change" in owner.fails("erase", "lesson", "one", "--yes")


def test_a_file_of_the_owners_is_named_and_left_alone(owner: Owner) -> None:
    settings = owner.home / "hone.toml"
    settings.write_text(f'search = "{FACT}"\n')
    owner.does("memory", "add", FACT)
    ended = owner("erase", "words", FACT, "--yes")
    assert (ended.code, "hone.toml is yours" in ended.out) == (1, True)
    assert FACT in settings.read_text()
    assert owner.said("memory") == []


def test_an_erase_that_was_cut_off_is_noticed_and_finished(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.does("memory", "add", FACT)
    owner.does("memory", "add", "Likes tea.")

    async def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hone.features.erasing.database.DatabaseEraser.settle", cut_off)
        assert owner("erase", "lesson", "1", "--yes").code == 130
    doctor = owner("doctor", "--deep")
    assert "erase: one was cut off" in doctor.out + doctor.err
    said = owner("erase", "words", "Likes tea.", "--yes")
    assert "An erase was cut off before" in said.out
    assert FACT not in (owner.home / "MEMORY.md").read_text()
