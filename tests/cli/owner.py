"""Somebody with a home who types commands in a folder: the command itself, without a process around it."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from hone.cli.main import perform
from tests.cli.driving import Ended


class Owner:
    def __init__(self, home: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.home = home
        self._capture = capture
        self._patch = patch
        for name in ("EDITOR", "VISUAL"):
            patch.delenv(name, raising=False)

    def __call__(self, *arguments: str) -> Ended:
        code = perform(arguments)
        return Ended(code, *self._capture.readouterr())

    def does(self, *arguments: str) -> str:
        """What must go well, and what it prints."""
        ended = self(*arguments)
        assert (ended.code, ended.err) == (0, ""), ended
        return ended.out

    def fails(self, *arguments: str) -> str:
        """What must not, and why."""
        ended = self(*arguments)
        assert ended.code == 1, ended
        assert "Traceback" not in ended.err
        return ended.err

    def memory(self, *arguments: str) -> Ended:
        return self("memory", *arguments)

    def shown(self, *arguments: str) -> dict[str, Any]:
        parts = json.loads(self.memory("show", "--json", *arguments).out)
        return {each["part"]: each for each in parts}

    def said(self, part: str, *arguments: str) -> list[str]:
        return [each["text"] for each in self.shown(*arguments)[part]["entries"]]

    def logged(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self("log", "--json", *arguments).out)
        return found

    def move(self, folder: Path) -> None:
        self._patch.chdir(folder)

    def edits(self, code: str) -> None:
        self._patch.setenv("EDITOR", editor(code))


def editor(code: str) -> str:
    """A program that gets the file to edit as `file`."""
    program = f"import pathlib, sys; file = pathlib.Path(sys.argv[1]); {code}"
    return shlex.join([sys.executable, "-S", "-c", program])
