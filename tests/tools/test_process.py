"""A command's output is captured, and when it ends or must end, nothing that it started is left."""

import asyncio
import hashlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest

from hone.core.clock import Clock, ManualClock, SystemClock
from hone.sandbox import process
from hone.sandbox.choice import NONE, Sandbox
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import Ended, Running, run, start
from hone.sandbox.spec import SandboxMode
from tests.conftest import Figures, Tier
from tests.processes import ends
from tests.sandbox.areas import ROOT, area, modes

NOWHERE = Spill(Path(os.devnull), "")
BASH = "/bin/bash" if os.path.exists("/bin/bash") else "/usr/bin/bash"

# Children that are waited for, that are not, that left their parent, their session and their signals behind.
STUBBORN = """
trap '' TERM HUP INT
(exec -a {mark}-child sleep 1000) &
(setsid bash -c 'exec -a {mark}-session sleep 1000' &)
( (trap '' TERM; exec -a {mark}-orphan sleep 1000) & )
nohup bash -c 'trap "" TERM HUP; exec -a {mark}-deaf sleep 1000' >/dev/null 2>&1 &
setsid setsid bash -c '(exec -a {mark}-far sleep 1000 >&- 2>&- <&- &)'
echo ready
while :; do (exec -a {mark}-loop sleep 0.01); done
"""


@pytest.fixture
def place() -> Iterator[Path]:
    with area(os.geteuid()) as path:
        yield path


class Heard(Output):
    """Tells when something was said."""

    def __init__(self, spill: Spill = NOWHERE) -> None:
        super().__init__(spill)
        self.said = asyncio.Event()

    def feed(self, data: bytes) -> None:
        super().feed(data)
        self.said.set()


def execute(
    mode: SandboxMode, place: Path, command: str, stdin: bytes | None = None, clock: Clock | None = None
) -> Ended:
    spec = Sandbox().spec(place / "folder", place / "scratch")
    launch = mode.wrap([BASH, "-c", command], spec)
    output = Output(Spill(place / "spill", "the file"))
    return asyncio.run(run(launch, output=output, clock=clock or SystemClock(), timeout=60, stdin=stdin))


def marked(mark: str) -> list[int]:
    """The processes that have the mark among their arguments."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit() and mark.encode() in Path("/proc", name, "cmdline").read_bytes():
                found.append(int(name))
    return found


each_mode = pytest.mark.parametrize("mode", modes(), ids=lambda mode: mode.name)


@each_mode
def test_output_comes_in_order_with_the_exit_code(mode: SandboxMode, place: Path) -> None:
    ended = execute(mode, place, "echo 1; echo 2 >&2; echo 3; printf '\\377é' ; pwd -P >&3; exit 7")
    assert ended.output == "1\n2\n3\n\ufffdé"
    assert ended.code == 7
    assert not ended.timed_out
    assert ended.report == f"{place}/folder\n".encode()
    assert ended.seconds >= 0


@each_mode
def test_a_signal_is_told_as_shells_tell_it(mode: SandboxMode, place: Path) -> None:
    assert execute(mode, place, "kill -KILL $$").code == 128 + signal.SIGKILL
    assert execute(mode, place, "kill -SEGV $$").code == 128 + signal.SIGSEGV


@each_mode
def test_input_is_passed_and_otherwise_empty(mode: SandboxMode, place: Path) -> None:
    data = os.urandom(300_000)
    assert execute(mode, place, "sha256sum", stdin=data).output.split()[0] == process_digest(data)
    assert execute(mode, place, "cat; echo end").output == "end\n"
    assert execute(mode, place, "true", stdin=data).code == 0


def process_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@each_mode
def test_a_flood_is_cut_in_memory_and_whole_in_the_file(mode: SandboxMode, place: Path) -> None:
    ended = execute(mode, place, "head -c 5000000 /dev/zero | tr '\\0' x; echo end")
    assert len(ended.output) < 1_100_000
    assert ended.output.endswith("xend\n")
    assert (place / "spill").stat().st_size == 5_000_004


@each_mode
def test_the_environment_has_nothing_of_ours(
    mode: SandboxMode, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("LD_PRELOAD", "")
    ended = execute(mode, place, "env; cat /proc/self/environ | tr '\\0' '\\n'; ls /proc/self/fd")
    assert "canary" not in ended.output
    names = {row.partition("=")[0] for row in ended.output.splitlines() if "=" in row}
    known = {
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "TERM",
        "PAGER",
        "USER",
        "LOGNAME",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    }
    assert names <= known
    assert "ctypes" not in ended.output


@each_mode
def test_what_a_command_leaves_behind_ends_with_it(mode: SandboxMode, place: Path) -> None:
    mark = secrets.token_hex(8)
    ended = execute(mode, place, STUBBORN.format(mark=mark).replace("while", "exit 5; while"))
    assert ended.output == "ready\n"
    assert ended.code == 5
    assert marked(mark) == []


@each_mode
def test_after_the_time_is_up_everything_is_gone(mode: SandboxMode, place: Path) -> None:
    mark, clock = secrets.token_hex(8), ManualClock()
    spec = Sandbox().spec(place / "folder", place / "scratch")
    launch = mode.wrap([BASH, "-c", STUBBORN.format(mark=mark)], spec)

    async def whole() -> Ended:
        output = Heard()
        task = asyncio.create_task(run(launch, output=output, clock=clock, timeout=120))
        await output.said.wait()
        assert len(marked(mark)) >= 6
        clock.advance(121)
        return await task

    ended = asyncio.run(whole())
    assert ended.timed_out
    assert ended.output == "ready\n"
    assert ended.seconds == 121
    assert marked(mark) == []


@each_mode
def test_a_polite_command_may_tidy_up_when_it_is_stopped(mode: SandboxMode, place: Path) -> None:
    spec = Sandbox().spec(place / "folder", place / "scratch")
    command = "trap 'echo tidied > tidy; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    launch = mode.wrap([BASH, "-c", command], spec)

    async def whole() -> int | None:
        output = Heard()
        running = await start(launch, output=output, clock=SystemClock())
        await output.said.wait()
        await running.stop()
        await running.stop()
        return running.code

    assert asyncio.run(whole()) == 3
    assert (place / "folder" / "tidy").read_text() == "tidied\n"


@each_mode
def test_an_interrupt_at_any_moment_leaves_nothing(
    mode: SandboxMode, place: Path, tier: Tier, figures: Figures
) -> None:
    random, tried = tier.random(), tier.size(short=3, full=60)
    left = sum(interrupted(mode, place, random) for _ in range(tried))
    figures(f"interrupts of a command with children, {mode.name}: {tried} tried, {left} processes left")
    assert left == 0


def interrupted(mode: SandboxMode, place: Path, random: Random) -> int:
    mark = secrets.token_hex(8)
    spec = Sandbox().spec(place / "folder", place / "scratch")
    launch = mode.wrap([BASH, "-c", STUBBORN.format(mark=mark)], spec)

    async def whole() -> None:
        task = asyncio.create_task(run(launch, output=Heard(), clock=SystemClock(), timeout=100))
        loop = asyncio.get_running_loop()
        for _ in range(random.choice([1, 1, 3])):  # whoever presses once may press again
            loop.call_later(random.choice([0, random.uniform(0, 0.05), random.uniform(0, 0.4)]), task.cancel)
        with suppress(asyncio.CancelledError):
            await task
        assert task.done()

    asyncio.run(whole())
    return len(marked(mark))


PARENT = """
import asyncio, sys
from pathlib import Path
from hone.core.clock import SystemClock
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import run
from hone.sandbox.choice import NONE, Sandbox
from hone.sandbox.examining import known_modes
name, place, command = sys.argv[1:]
mode = {each.name: each for each in (*known_modes(), NONE)}[name]
spec = Sandbox().spec(Path(place, "folder"), Path(place, "scratch"))
class Shown(Output):
    def feed(self, data):
        print(data.decode(), flush=True)
launch = mode.wrap(["/bin/bash", "-c", command], spec)
asyncio.run(run(launch, output=Shown(Spill(Path("x"), "")), clock=SystemClock(), timeout=100))
"""


@each_mode
def test_when_hone_is_killed_its_commands_go_with_it(mode: SandboxMode, place: Path) -> None:
    mark = secrets.token_hex(8)
    argv = [sys.executable, "-c", PARENT, mode.name, str(place), STUBBORN.format(mark=mark)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with ExitStack() as stack:
        parent = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment))
        assert parent.stdout
        assert parent.stdout.readline() == b"ready\n"
        handles: list[int] = []
        while len(handles) < 7:  # one of them is renewed all the time
            for pid in marked(mark):
                with suppress(ProcessLookupError):
                    handles.append(os.pidfd_open(pid))
                    stack.callback(os.close, handles[-1])
        parent.kill()
        assert all(ends(handle) for handle in handles)
    assert marked(mark) == []


def test_a_command_that_cannot_be_started_says_why(place: Path) -> None:
    spec = Sandbox().spec(place / "folder", place / "scratch")
    launch = NONE.wrap(["/no/such/program"], spec)
    ended = asyncio.run(run(launch, output=Output(NOWHERE), clock=SystemClock(), timeout=60))
    assert ended.code == process.CANNOT
    assert "could not be started: [Errno 2]" in ended.output
    too_long = NONE.wrap([BASH, "-c", "x" * 200_000], spec)
    with pytest.raises(OSError, match="Argument list too long"):
        asyncio.run(run(too_long, output=Output(NOWHERE), clock=SystemClock(), timeout=60))
    with pytest.raises(ValueError, match="null byte"):
        asyncio.run(run(NONE.wrap(["a\0b"], spec), output=Output(NOWHERE), clock=SystemClock(), timeout=60))


def test_no_descriptor_is_left_open(place: Path) -> None:
    execute(NONE, place, "true")
    before = len(os.listdir("/proc/self/fd"))
    for command in ("true", "exit 1", "sleep 1000 &"):
        execute(NONE, place, command)
    spec = Sandbox().spec(place / "folder", place / "scratch")
    with suppress(OSError):
        too_long = NONE.wrap(["x" * 200_000], spec)
        asyncio.run(run(too_long, output=Output(NOWHERE), clock=SystemClock(), timeout=60))
    assert len(os.listdir("/proc/self/fd")) == before


def test_many_at_once_do_not_mix(place: Path) -> None:
    spec = Sandbox().spec(place / "folder", place / "scratch")

    async def whole() -> list[str]:
        outputs = [Output(NOWHERE) for _ in range(12)]
        launches = [NONE.wrap([BASH, "-c", f"echo {number}"], spec) for number in range(12)]
        pairs = zip(launches, outputs, strict=True)
        runs = [run(launch, output=output, clock=SystemClock(), timeout=60) for launch, output in pairs]
        return [ended.output for ended in await asyncio.gather(*runs)]

    assert asyncio.run(whole()) == [f"{number}\n" for number in range(12)]


def test_a_supervisor_that_does_not_end_is_given_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped from outside, as if it were stuck in the kernel."""
    monkeypatch.setattr(process, "PATIENCE", 0.0)
    monkeypatch.setattr(process, "GRACE", 0.0)
    spec = Sandbox().spec(place / "folder", place / "scratch")
    mark = secrets.token_hex(8)
    launch = NONE.wrap([BASH, "-c", "echo ready; exec sleep 1000", mark], spec)

    async def whole() -> Running:
        output = Heard()
        running = await start(launch, output=output, clock=SystemClock())
        await output.said.wait()
        for pid in marked(mark):
            if b"supervisor" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGSTOP)
        await running.stop()
        return running

    assert asyncio.run(whole()).code == -signal.SIGKILL
