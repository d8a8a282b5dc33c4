"""The public API: listed, complete, and loaded when it is used."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hone
from hone.cli.main import perform
from hone.models.http.client import Http
from hone.sandbox.choice import Sandbox

ROOT = Path(__file__).parent.parent


def test_every_public_name_is_listed_and_can_be_used() -> None:
    assert dir(hone) == sorted(hone.__all__)
    assert all(getattr(hone, name) is not None for name in hone.__all__)


def test_importing_hone_loads_nothing_else_of_it() -> None:
    code = "import hone, sys; print([name for name in sys.modules if name.startswith('hone.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


@pytest.mark.parametrize("page", ["library.md", "plugins.md", "coming-from.md"])
def test_programs_and_plugins_import_from_hone_alone(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    assert re.findall(r"^from hone\.\S+ import .+$", text, re.MULTILINE) == []
    names = {
        name
        for found in re.findall(r"^from hone import (.+)$", text, re.MULTILINE)
        for name in found.split(", ")
    }
    assert names <= set(dir(hone))


def test_taking_back_a_change_builds_no_client_no_sandbox_and_no_part(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert perform(["memory", "add", "Tea is served at four."]) == 0

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("undo needs none of this")

    monkeypatch.setattr(Http, "__init__", refuse)
    monkeypatch.setattr(Sandbox, "__init__", refuse)
    monkeypatch.setattr("hone.runtime.parts.Parts.get", refuse)
    assert perform(["undo", "1"]) == 0
    assert "Change 1 is undone by change 2" in capsys.readouterr().out
