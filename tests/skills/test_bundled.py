"""The skills that come with Hone hold to every rule that others must hold to."""

from importlib import import_module
from pathlib import Path

import pytest

from hone.core.errors import Refused
from hone.core.skill import DOCUMENT, SkillOrigin
from hone.core.visible import visible
from hone.knowledge.skills import bundled
from hone.knowledge.skills.document import validate
from hone.knowledge.skills.facts import Facts, facts
from hone.knowledge.skills.folder import Archive, apply
from hone.knowledge.skills.naming import check_class


def test_there_are_a_few_and_two_are_about_hone_itself() -> None:
    assert 3 <= len(bundled.names()) <= 5
    assert {"working-with-hone", "writing-skills"} <= set(bundled.names())
    assert [listed.name for listed in bundled.listed()] == list(bundled.names())
    assert bundled.files("no-such-skill") == {}


@pytest.mark.parametrize("name", bundled.names())
def test_each_is_valid_for_us_and_for_the_reference_validator(name: str, tmp_path: Path) -> None:
    files = bundled.files(name)
    assert validate(check_class(name), files).name == name
    assert facts(files) == Facts(SkillOrigin.BUNDLED)
    (tmp_path / name).mkdir()
    (tmp_path / name / DOCUMENT).write_bytes(files[DOCUMENT])
    assert import_module("skills_ref").validate(tmp_path / name) == []


@pytest.mark.parametrize("name", bundled.names())
def test_each_is_short_plain_and_names_only_files_it_has(name: str) -> None:
    files = bundled.files(name)
    text = files[DOCUMENT].decode()
    assert len(text.splitlines()) <= 80
    assert visible(text) == text
    for path in files:
        assert path.startswith("@") or path == DOCUMENT or path in text, f"{path} is mentioned nowhere"


def test_none_of_them_can_be_changed_in_place() -> None:
    name = bundled.names()[0]
    with pytest.raises(Refused, match="comes with Hone"):
        apply(name, bundled.files(name), Archive())
