"""`hone experiment`: what it refuses, and what was found as table, picture, data and beside the lesson."""

import asyncio
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hone import Hone
from hone.cli.main import perform
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.subjects import find
from hone.features.experiments.values import LessonKind
from hone.features.templates.part import TemplatesPart
from hone.features.templates.seeding import TemplateOptions
from hone.models.scripted import Scripted
from tests.features.test_experiment import HARMING, HELPING, WORK, recorded, stored, taught

NAMES = [
    "success rate",
    "errors in the first 30 turns",
    "turns to the first success",
    "seconds to the first success",
    "errors in all",
    "different tools",
    "tokens",
]


class Desk:
    """The command in this process."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.capsys = home, capsys

    def __call__(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        self.capsys.readouterr()
        assert perform(["--home", str(self.home), *arguments]) == code, self.capsys.readouterr().err
        ended = self.capsys.readouterr()
        return ended.out, ended.err

    def data(self, *arguments: str) -> Any:
        return json.loads(self("experiment", *arguments, "--json")[0])


@pytest.fixture
def context(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return Desk(home, capsys)


async def tried(home: Path, folder: Path) -> None:
    """A task, and a skill, an entry and a template that were tried on it."""
    async with Hone(home=home, folder=folder, model=Scripted(WORK)) as hone:
        noted, _ = await taught(hone)
        task = await recorded(hone, folder)
        await hone.part(TemplatesPart).create(task.session, TemplateOptions(name="rows"))
        for kind, name, outcomes in (
            (LessonKind.SKILL, "counting-rows", HARMING),
            (LessonKind.ENTRY, str(noted.id), HELPING),
            (LessonKind.TEMPLATE, "rows", HELPING[:3]),
        ):
            stored(hone.part(ExperimentsPart).studies, await find(hone, folder, kind, name), outcomes)


def test_what_cannot_be_done_says_why(context: Desk) -> None:
    assert context("experiment", "list")[0].startswith("There are no experiments yet.")
    for arguments, code, why in (
        (("run", "rows", "--skill", "x"), 1, "There is no experiment rows. See hone experiment list."),
        (("run", "rows"), 2, "Name the lesson"),
        (("run", "rows", "--skill", "x", "--entry", "y"), 2, "One lesson at a time"),
        (("report", "rows"), 1, "There is no experiment rows."),
        (("show", "../rows"), 1, "cannot be the name of an experiment"),
        (("delete", "rows"), 1, "There is no experiment rows."),
        (("new", "--from", "3f2a"), 1, "A task needs a check"),
        (("new", "--from", "3f2a", "--expect-text", "x"), 1, "There is no session whose name starts with"),
        (("new", "--from", "3f2a", "--expect-text", "x", "--name", "A b"), 1, "cannot be the name"),
    ):
        out, err = context("experiment", *arguments, code=code)
        assert out == "", arguments
        assert why in err


def test_what_was_found_is_reported_and_shown_beside_the_lesson(context: Desk, tmp_path: Path) -> None:
    asyncio.run(tried(context.home, tmp_path))
    _, err = context("experiment", "run", "rows", "--entry", "nowhere", code=1)
    assert "No entry has 'nowhere' in it." in err
    plot = tmp_path / "rows.svg"
    out, _ = context("experiment", "report", "rows", "--skill", "counting-rows", "--plot", str(plot))
    assert out.splitlines()[0] == ("rows with and without skill counting-rows, openai/m, 20 of 20 pairs")
    assert [name for name in NAMES if f"\n{name} " not in out] == []
    assert [line.split("  ")[-1].strip() for line in out.splitlines() if "success rate  " in line] == [
        "−80 to −35 points"
    ]
    assert "It harms: of the first 6 pairs, 0 succeeded only with it, 6 only without it." in out
    assert "It took 40 runs, 4,000 tokens, 40 s." in out
    picture = "".join(ElementTree.fromstring(plot.read_text()).itertext())
    assert "success rate: −60 points, −80 to −35 points." in picture
    assert "−60 (−80 to −35)" in picture

    [found] = context.data("report", "rows", "--entry", "counted from zero")
    assert [each["name"] for each in found["differences"]] == NAMES
    assert (found["verdict"], found["complete"], len(found["runs"])) == ("helps", True, 40)
    assert found["differences"][0]["difference"] == pytest.approx(0.6)
    assert {each["lesson"] for each in context.data("report", "rows")} == {"counting-rows", "memory", "rows"}
    [listed] = context.data("list")
    assert (listed["name"], listed["files"], len(listed["studies"])) == ("rows", ["a.txt"], 3)
    assert "an entry of memory: helps, success +60 points" in context("experiment", "list")[0]
    assert context.data("show", "rows")["check"]["text"] == "two rows"

    shown, _ = context("skills", "show", "counting-rows")
    assert "harms: experiment rows: success −60 points (−80 to −35), 20 of 20 pairs, openai/m" in shown
    assert "helps: experiment rows: success +60 points" in context("memory", "show")[0]
    assert "undecided: experiment rows: success +100 points" in context("templates", "show", "rows")[0]

    assert context("experiment", "delete", "rows")[0] == "Deleted experiment rows, with 86 runs.\n"
    assert "experiment rows" not in context("skills", "show", "counting-rows")[0]


def test_a_run_that_is_done_is_concluded_from_what_is_stored(context: Desk, tmp_path: Path) -> None:
    """No model is asked, and none is there."""
    asyncio.run(tried(context.home, tmp_path))
    (context.home / "hone.toml").write_text('model = "openai/m"\n')
    out, _ = context("experiment", "run", "rows", "--skill", "counting-rows")
    assert "Putting it away waits for you: hone approve 5 " in out
    assert (
        "Putting it away waits for you: hone approve 5 "
        in context("experiment", "run", "rows", "--skill", "counting-rows")[0]
    )
    waiting, _ = context("pending")
    assert "by experiment" in waiting
    assert "reason: experiment rows: success −60 points" in waiting
    assert "unconfirmed" in context("memory", "show")[0]
    out, _ = context("experiment", "run", "rows", "--entry", "1")
    assert "Change 1 is confirmed by change 6." in out
    assert "unconfirmed" not in context("memory", "show")[0]
    assert "(confirmed by 6)" in context("log")[0]
    assert len(context("log", "--actor", "experiment")[0].splitlines()) == 3, "a heading, and these two"


def test_the_gate_says_what_it_does_and_what_it_lacks(context: Desk, tmp_path: Path) -> None:
    assert "The gate is off" in context("experiment", "gate")[0]
    asyncio.run(tried(context.home, tmp_path))
    context("config", "set", "learning.gate", "all")
    said = context("experiment", "gate", "--run")[0]
    assert "The gate is on: all. 1 task is recorded" in said
    assert 'entry "Rows are counted from zero." (change 1): unconfirmed: ' in said
    assert "At least 3 held-out tasks are needed. Record more: hone experiment new" in said
    found = context.data("gate")
    assert (found["gate"], found["tasks"], len(found["lessons"])) == ("all", 1, 2)
