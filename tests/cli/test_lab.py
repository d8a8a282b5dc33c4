"""`hone lab`: the table, the data and the picture, and a model of the user's within its budget."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import pytest

from hone.cli.main import perform
from hone.core.clock import ManualClock, SystemClock
from hone.core.messages import assistant
from hone.features.lab.dialect import HoneDialect
from hone.features.lab.learner import PROFILES, Learner
from hone.features.lab.provider import LearnerProvider
from hone.features.lab.pupil import open_pupil, scripted_settings
from hone.features.lab.world import build
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, rounds

SESSIONS = 6
SETTINGS = """
[providers.mine]
url = "{url}"
format = "openai"
local = false

[prices."mine/learner"]
input = 2.0
output = 10.0
"""


@contextmanager
def serve(seed: int) -> Iterator[LearnerProvider]:
    """A model at an address of its own, as a user has one. That it is scripted, nobody can see from here."""
    learner = Learner(build(seed, SESSIONS), PROFILES["perfect"], HoneDialect())
    loop, provider = asyncio.new_event_loop(), LearnerProvider(learner, SystemClock())
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(provider.__aenter__(), loop).result(30)
    try:
        yield provider
    finally:
        asyncio.run_coroutine_threadsafe(provider.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def test_the_lab_prints_a_table_or_data_and_draws_the_curves(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / "lab.svg"
    command = ["lab", "--learner", "perfect", "--worlds", "1", "--sessions", str(SESSIONS), "--workers", "1"]
    assert perform([*command, "--plot", str(drawn), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    on, off = told["arms"]
    assert [on["arm"], off["arm"]] == ["perfect, learning on", "perfect, learning off"]
    assert [len(each["points"]) for each in on["curves"]] == [SESSIONS] * 4
    root = ElementTree.fromstring(drawn.read_text("utf-8"))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    assert "success after the last session" in str(root.findtext("{http://www.w3.org/2000/svg}desc"))
    assert not (home / "hone.db").exists(), "the lab leaves the user's home alone"


def test_where_learning_is_off_for_all_processes_the_lab_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HONE_LEARNING", "off")
    assert perform(["lab"]) == 2
    assert "env -u HONE_LEARNING hone lab" in capsys.readouterr().err


def test_a_model_of_the_users_learns_in_the_lab_at_a_cost_that_is_said_before(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(1) as provider:
        home.mkdir(parents=True, exist_ok=True)
        (home / "hone.toml").write_text(SETTINGS.format(url=provider.url))
        command = ["--home", str(home), "lab", "--model", "mine/learner", "--sessions", str(SESSIONS)]
        assert perform(command) == 2
        assert "Add --yes" in capsys.readouterr().err
        assert provider.exchanges == [], "nothing is sent before the user agrees"
        assert perform([*command, "--yes", "--json"]) == 0
        ended = capsys.readouterr()
    before, after = ended.err.splitlines()[:2]
    assert before.startswith("22 sessions with mine/learner: about 132 calls")
    assert before.endswith("Hone stops at $1.00.")
    assert after.startswith(f"It took {len(provider.exchanges)} calls")
    on, off = json.loads(ended.out)["arms"]
    exams = [each["figures"][0]["point"]["mean"] for each in (on, off)]
    assert exams[0] > exams[1]


def test_the_lab_stops_at_the_budget(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(1) as provider:
        home.mkdir(parents=True, exist_ok=True)
        (home / "hone.toml").write_text(SETTINGS.format(url=provider.url))
        command = ["--home", str(home), "lab", "--model", "mine/learner", "--sessions", str(SESSIONS)]
        assert perform([*command, "--yes", "--budget", "0.02"]) == 1
        assert "The budget is spent" in capsys.readouterr().err
        usages = [each.usage for each in provider.exchanges]
        costs = [2e-6 * each.input + 1e-5 * each.output for each in usages]
    assert 0 < sum(costs) < 0.1


def test_the_owner_of_the_lab_agrees_to_nothing_but_the_pages_of_the_world(tmp_path: Path) -> None:
    """A real model could ask for anything, and nobody watches."""
    world = build(1)
    page = next(visit.page for visit in world.visits if visit.page)
    asked = rounds(
        assistant(
            call("web_fetch", url=page.url),
            call("web_fetch", url="http://elsewhere.example/"),
            call("write_file", path=".bashrc", content="echo hello"),
            call("write_file", path=str(tmp_path / "outside.txt"), content="hello"),
        ),
        "Done.",
    )

    async def try_all() -> list[str]:
        async with FakeProvider(asked) as fake:
            settings = scripted_settings(f"{fake.url}/v1")
            async with open_pupil(tmp_path, world, settings, ManualClock()) as pupil:
                talk = await pupil.open()
                await talk.send("Go.")
                nodes = talk.session.transcript.nodes
                return [each.message.result.text for each in nodes if each.message.result]

    allowed, *denied = asyncio.run(try_all())
    assert page.poison.said in allowed
    assert all("no page" not in each for each in denied), "it was refused before anybody looked for the page"
    assert not (tmp_path / "outside.txt").exists()
    assert not (tmp_path / "work" / ".bashrc").exists()
