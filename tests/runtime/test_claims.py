"""E2: a claim is a kernel lock: one holder at a time, whoever it is, gone with the process, no file left."""

import os
import signal
import sys
import threading
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from hone.core.errors import StoreError
from hone.runtime.claims import FOLDER, claim, sweep

HOLD = """
import sys
from pathlib import Path
from hone.runtime.claims import claim
with claim(Path(sys.argv[1]), sys.argv[2]) as held:
    print("held" if held else "refused", flush=True)
    sys.stdin.readline()
"""
COUNT = """
import sys
from pathlib import Path
from hone.runtime.claims import claim
home, rounds = Path(sys.argv[1]), int(sys.argv[2])
while rounds:
    with claim(home, "tree") as held:
        if held:
            number = int((home / "number").read_text())
            (home / "number").write_text(str(number + 1))
            rounds -= 1
"""


async def started(home: Path, name: str) -> tuple[Process, str]:
    process = await create_subprocess_exec(
        sys.executable, "-c", HOLD, str(home), name, stdin=PIPE, stdout=PIPE
    )
    assert process.stdout
    return process, (await process.stdout.readline()).decode().strip()


def test_a_second_claim_is_refused_until_the_first_is_over(home: Path) -> None:
    with claim(home, "tree") as first:
        with claim(home, "tree") as second, claim(home, "other") as other:
            assert (first, second, other) == (True, False, True)
        with claim(home, "tree") as again:
            assert not again
    with claim(home, "tree") as after:
        assert after
    assert list((home / FOLDER).iterdir()) == []


def test_a_claim_is_given_back_when_its_holder_breaks_off(home: Path) -> None:
    with pytest.raises(RuntimeError), claim(home, "tree"):
        raise RuntimeError
    with claim(home, "tree") as held:
        assert held


async def test_another_process_is_refused_and_a_kill_frees(home: Path) -> None:
    first, said = await started(home, "tree")
    assert said == "held"
    second, said = await started(home, "tree")
    assert said == "refused"
    await second.communicate(b"\n")
    with claim(home, "tree") as held:
        assert not held
    first.send_signal(signal.SIGKILL)
    await first.wait()
    assert [path.name for path in (home / FOLDER).iterdir()] == ["tree.lock"]
    with claim(home, "tree") as held:
        assert held
    assert list((home / FOLDER).iterdir()) == []


async def test_what_a_killed_process_left_is_swept_and_what_is_held_or_wanted_is_not(home: Path) -> None:
    processes = [(await started(home, name))[0] for name in ("dead", "wanted", "held")]
    for process in processes[:2]:
        process.kill()
        await process.wait()
    sweep(home, {"wanted"})
    assert sorted(path.name for path in (home / FOLDER).iterdir()) == ["held.lock", "wanted.lock"]
    with claim(home, "held") as held:
        assert not held
    await processes[2].communicate(b"\n")
    sweep(home, ())
    assert list((home / FOLDER).iterdir()) == []


async def test_of_many_processes_and_threads_one_holds_it_at_a_time(home: Path) -> None:
    """Each adds one to a number in a file; with two holders at once, some would be lost."""
    (home / "number").write_text("0")
    commands = [(sys.executable, "-c", COUNT, str(home), "40") for _ in range(2)]
    processes = [await create_subprocess_exec(*command) for command in commands]

    def count() -> None:
        left = 20
        while left:
            with claim(home, "tree") as held:
                if held:
                    number = int((home / "number").read_text())
                    (home / "number").write_text(str(number + 1))
                    left -= 1

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    for process in processes:
        assert await process.wait() == 0
    for thread in threads:
        thread.join()
    assert (home / "number").read_text() == "120"
    assert list((home / FOLDER).iterdir()) == []


def test_a_home_that_takes_no_lock_is_a_sentence(home: Path) -> None:
    (home / FOLDER).write_text("in the way")
    with pytest.raises(StoreError, match="cannot be used"), claim(home, "tree"):
        pytest.fail("it was claimed")


def test_a_file_that_cannot_be_taken_away_is_no_trouble(home: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with claim(home, "tree"):
        (home / FOLDER / "tree.lock").unlink()
        (home / FOLDER).rmdir()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_link_in_the_place_of_the_file_is_not_followed(home: Path, tmp_path: Path) -> None:
    (home / FOLDER).mkdir()
    (home / FOLDER / "tree.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError), claim(home, "tree"):
        pytest.fail("it was claimed")
    assert not (tmp_path / "elsewhere").exists()
