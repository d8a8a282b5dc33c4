"""A process beside the tests that has imported all it needs: for each line of its input it has a scenario
prepared, played under the tracer and inspected, each in a process of its own that is forked from here."""

import asyncio
import os
import pickle
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, json

from hone.core.errors import HoneError
from tests.faults.points.scenario import Scenario, Told
from tests.faults.points.scenarios import SCENARIOS
from tests.faults.points.tracer import Blow, Call, Watch, attach

T = TypeVar("T")
W = TypeVar("W", bound=Watch)

PATIENCE = 90
"""Seconds that a process may take for its part."""
BY_NAME: dict[str, Scenario] = {each.name: each for each in SCENARIOS}


class Order(Struct, frozen=True):
    """A blow of None rehearses: the calls are counted, and what the undisturbed end is like is kept."""

    scenario: str
    folder: str
    blow: Blow | None = None


class Report(Struct, frozen=True):
    """`struck` is false if the run was over before its blow. `wrong` begins each time with one word."""

    calls: list[Call]
    marks: list[int]
    struck: bool
    told: Told
    wrong: list[str]


def apart(deed: Callable[[], Coroutine[None, None, T]]) -> T:
    """What comes of it in a process of its own."""
    heard, mouth = os.pipe()
    if not (child := os.fork()):
        os.close(heard)
        os.dup2(mouth, 2)
        with open(mouth, "wb", buffering=0) as answer:
            _end(lambda: answer.write(pickle.dumps(asyncio.run(deed()))))
    os.close(mouth)
    with open(heard, "rb") as answer:
        said = answer.read()
    if os.waitpid(child, 0)[1]:
        raise ChildProcessError(said.decode(errors="replace"))
    result: T = pickle.loads(said)
    return result


def _end(deed: Callable[[], object]) -> None:
    """The forked process goes no further than this, whatever happens."""
    code = 1
    try:
        deed()
        code = 0
    except BaseException:  # noqa: BLE001  it is shown, and this process ends
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def play(scenario: Scenario, root: Path, watched: Callable[[int, Path, int], W]) -> tuple[W, Told]:
    """The scenario in a process under a watch, and all that it said."""
    ears, go = os.pipe()
    heard, mouth = os.pipe()
    notes = root.with_suffix(".err")
    if not (worker := os.fork()):
        os.close(heard)
        os.dup2(os.open(notes, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
        os.read(ears, 1)
        _end(lambda: _act(scenario, root, mouth))
    os.close(ears)
    os.close(mouth)
    attach(worker)
    os.write(go, b"\n")
    os.close(go)
    watch = watched(worker, root, mouth)
    status = _watched(watch)
    with open(heard, "rb") as words:
        lines = words.read().decode().splitlines()
    return watch, Told(lines, status, notes.read_text(errors="replace"))


def _act(scenario: Scenario, root: Path, mouth: int) -> None:
    def say(line: str) -> None:
        os.write(mouth, (line.replace("\n", " ") + "\n").encode())

    try:
        asyncio.run(scenario.act(root, say))
    except HoneError as error:
        say(f"refused: {error}")


def _watched(watch: Watch) -> int:
    """How the process ended; one that hangs is killed."""

    def kill(*_: object) -> None:
        os.kill(watch.worker, signal.SIGABRT)

    signal.signal(signal.SIGALRM, kill)
    signal.alarm(PATIENCE)
    try:
        return watch.run()
    finally:
        signal.alarm(0)


def perform(order: Order) -> Report:
    scenario, folder = BY_NAME[order.scenario], Path(order.folder)
    expected = folder / f"{scenario.name}.expected"
    root = folder / scenario.name
    if not expected.exists():
        afresh(scenario, root)
        expected.write_bytes(pickle.dumps(apart(lambda: scenario.rehearse(root))))
    afresh(scenario, root)
    watch, told = play(scenario, root, partial(Watch, blow=order.blow))
    known = pickle.loads(expected.read_bytes())
    try:
        wrong = told.wrong() + apart(lambda: scenario.inspect(root, told, known))
    except ChildProcessError as error:
        wrong = [f"unsound: the next process fails: {error}"]
    return Report(watch.calls, watch.marks, watch.has_struck, told, wrong)


def afresh(scenario: Scenario, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(mode=0o700)
    apart(lambda: scenario.prepare(root))


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # nothing that a scenario prints is an answer
    for line in sys.stdin:
        report = perform(json.decode(line, type=Order))
        os.write(out, json.encode(report) + b"\n")


if __name__ == "__main__":
    main()
