"""E9, H4: an experiment as a user makes one: recorded, run, killed, resumed, shown with the lesson."""

import asyncio
import json
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hone.core.messages import Message, Role, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from tests.cli.driving import HONE, Ended, environment, hone
from tests.conftest import Figures, Tier
from tests.docs.pages import ROOT

ENTRY = "Rows are counted from zero."
REQUEST = "Count the rows."


class Counter:
    """Counts rows, in every other run without the entry wrongly. How it goes depends on how many runs are
    stored, so it goes the same way when a run is done again. `kill` is called in the middle of a run."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.kill_at = -1
        self.kill: Callable[[], None] | None = None
        self.asked: list[int] = []

    @property
    def stored(self) -> list[dict[str, Any]]:
        lines = [
            line
            for path in (self.home / "experiments").glob("*/*.jsonl")
            for line in path.read_text().split("\n")[1:-1]
        ]
        return [json.loads(line) for line in lines]

    def __call__(self, messages: Sequence[Message]) -> Message:
        said = [message for message in messages if message.role is Role.ASSISTANT]
        done = len(self.stored)
        if not said:
            self.asked.append(done)
            path = "gone.txt" if done % 3 else "a.txt"
            return assistant(call("read_file", path=path), call("search_files", pattern="row"))
        if self.kill and done == self.kill_at:
            self.kill_at = -1
            self.kill()
        return assistant("There is one row." if done % 4 == 1 else "There are two rows.")


class Desk:
    def __init__(self, home: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.txt").write_text("row one\nrow two\n")
        self.home, self.folder = home, folder
        self.counter = Counter(home)

    async def hone(self, stage: FakeProvider, *arguments: str) -> Ended:
        return await hone(*arguments, env=environment(self.home, stage), folder=self.folder)

    async def data(self, stage: FakeProvider, *arguments: str) -> Any:
        ended = await self.hone(stage, *arguments, "--json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    async def prepare(self, stage: FakeProvider) -> None:
        await self.hone(stage, "trust", ".")
        await self.hone(stage, "memory", "add", ENTRY)
        session = (await self.data(stage, "run", "-q", REQUEST))["session"]
        made = await self.hone(
            stage, "experiment", "new", "--from", session, "--name", "rows", "--expect-text", "two rows"
        )
        assert made.out.splitlines() == [
            f"rows, from session {session}",
            f"request: {REQUEST}",
            "files: a.txt",
            "check: the answer has 'two rows' in it",
            "Try a lesson on it: hone experiment run rows --skill NAME",
        ], made.err

    async def killed(self, stage: FakeProvider, at: int, *arguments: str) -> None:
        """In the middle of the run with this number."""
        process = await asyncio.create_subprocess_exec(
            *(*HONE, *arguments),
            env=environment(self.home, stage),
            cwd=self.folder,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        self.counter.kill_at, self.counter.kill = at, process.kill
        out, err = await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode == -signal.SIGKILL, (out, err)


def figures_of(report: dict[str, Any]) -> dict[str, Any]:
    """All that does not depend on how fast the machine is and when it was."""
    runs = [{name: value for name, value in run.items() if "seconds" not in name} for run in report["runs"]]
    apart = [each for each in report["differences"] if "seconds" not in each["name"]]
    return {name: report[name] for name in ("verdict", "pairs", "complete", "digest")} | {
        "runs": runs,
        "differences": apart,
    }


async def test_an_experiment_that_was_killed_goes_on_and_says_what_it_would_have_said(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    pairs = tier.size(short=4, full=20)
    reports = []
    for name in ("smooth", "killed"):
        context = Desk(home / name, tmp_path / "work")
        async with FakeProvider(context.counter) as stage:
            if name == "smooth":
                await context.prepare(stage)
                shutil.copytree(context.home, home / "killed")
            context.counter.asked.clear()
            order = ("experiment", "run", "rows", "--entry", "counted from zero", "--pairs", str(pairs))
            if name == "killed":
                await context.killed(stage, 3, *order)
                assert len(context.counter.stored) == 3
                scratch = Path((context.home / "experiments" / "rows" / ".scratch").read_text())
                assert scratch.is_dir()
            ended = await context.hone(stage, *order)
            assert ended.code == 0, ended.err
            assert f"{pairs} of {pairs} pairs" in ended.out
            if name == "killed":
                assert not scratch.exists()
                again = [run for run in context.counter.asked if run == 3]
                assert len(again) == 2, "the run that was broken off is done again"
                assert len(context.counter.asked) == 2 * pairs + 1, "and no other"
            places = [(run["pair"], run["arm"]) for run in context.counter.stored]
            assert len(places) == len(set(places)) == 2 * pairs
            [report] = await context.data(stage, "experiment", "report", "rows")
            assert report["verdict"] == ("helps" if pairs >= 20 else "undecided")
            shown = (await context.hone(stage, "memory", "show")).out
            assert f"{report['verdict']}: experiment rows: success " in shown
            reports.append(figures_of(report))
            assert stage.invalid == []
    assert reports[0] == reports[1]
    figures(f"{pairs} pairs, killed once: 0 of {2 * pairs} runs lost, 0 stored twice, the same report")


async def test_a_cold_start_is_measured_against_a_seeded_one_with_one_command(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    pairs, plot = tier.size(short=3, full=20), tmp_path / "demo.svg"
    ended = await hone(
        *("experiment", "demo", "--json", "--pairs", str(pairs), "--plot", str(plot)), env=environment(home)
    )
    assert (ended.code, ended.err) == (0, "")
    [report] = json.loads(ended.out)
    assert (report["kind"], report["complete"], len(report["runs"])) == ("template", True, 2 * pairs)
    found = {each["name"]: each for each in report["differences"]}
    assert found["errors in all"]["without"] == 2
    assert found["errors in all"]["with"] == 0
    assert found["turns to the first success"]["interval"] == [-2.0, -2.0]
    assert report["verdict"] == ("helps" if pairs >= 20 else "undecided")
    ElementTree.fromstring(plot.read_text())
    success = found["success rate"]
    if pairs == 20:
        told = await hone("experiment", "demo", env=environment(home))
        page = (ROOT / "docs" / "experiments.md").read_text("utf-8")
        varying = ("seconds", "tokens", "It took")
        lines = [line for line in told.out.splitlines() if not line.startswith(varying)]
        assert [line for line in lines if line.rstrip() not in page] == []
    figures(f"{pairs} pairs: {success['without']:.0%} cold, {success['with']:.0%} seeded")
    assert not (home / "hone.db").exists(), "the owner's home is not touched"
