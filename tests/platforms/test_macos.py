"""I1 on macOS, as far as that can be told from here: without what only Linux has."""

import os
from pathlib import Path

import pytest

from hone.models.fake_provider import FakeProvider
from hone.runtime.claims import hold_worker, stop_worker
from tests.cli.driving import environment, hone
from tests.story.test_cli_reviews import EAGER, LEARNED, RULE, learner, profile

LACKING = str(Path(__file__).parent / "macos")


async def test_a_conversation_is_had_reviewed_searched_and_undone_without_what_only_linux_has(
    home: Path, tmp_path: Path
) -> None:
    (home / "hone.toml").write_text(EAGER)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage, PYTHONPATH=LACKING)
        assert (await hone("run", "-q", RULE, env=env, folder=tmp_path)).out == "Yes.\n"
        assert LEARNED in (await hone("worker", "--once", env=env)).out
        assert profile(home) == f"- {RULE}\n"
        for command in (("sessions", "search", "one"), ("log",), ("undo", "1"), ("backup", "b")):
            done = await hone(*command, env=env, folder=tmp_path)
            assert (done.code, "Traceback" in done.err) == (0, False), done


async def test_commands_ask_where_there_is_no_sandbox(home: Path, tmp_path: Path) -> None:
    told = await hone("doctor", env=environment(home, PYTHONPATH=LACKING), folder=tmp_path)
    assert "every command asks first" in told.out, told.out


@pytest.mark.parametrize("command", ["status", "stop"])
async def test_a_worker_is_found_and_stopped(command: str, home: Path) -> None:
    told = await hone("worker", command, env=environment(home, PYTHONPATH=LACKING))
    assert (told.code, "No worker runs." in told.out) == (0, True), told.err


def test_the_worker_is_stopped_by_its_number_where_processes_have_no_handles(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda number, _: sent.append(number))
    with hold_worker(home):
        assert stop_worker(home) == os.getpid()
    assert sent == [os.getpid()]
