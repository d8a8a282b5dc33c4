"""What every test shares: the two tiers, recorded figures, required programs, a clean environment."""

import asyncio
import atexit
import gc
import inspect
import itertools
import json
import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.tier import CURRENT, EXAMPLES, FIGURES, REPLAY, SAMPLE, TALLY, Draw, Figures, Tier, replay

__all__ = ["Draw", "Figures", "Tier", "requires"]

LEFT_OPEN = 64
"""Files that the tests of a process may leave open together: killed databases and the runner's own pipes."""
HOMES = itertools.count()
"""Numbers the homes of a process. Left to pytest, each new one is found by listing all those before it."""
MEMORY = Path("/dev/shm")
ROOM = 4 << 30
FOREIGN_VARIABLES = ("HONE_", "OPENAI_", "ANTHROPIC_", "HONCHO_", "OTEL_", "PGHOST")

settings.register_profile(
    "short",
    derandomize=True,
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long", max_examples=5_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)


def requires(binary: str) -> str:
    """The path of a program; without it the test is skipped, and in CI it fails."""
    path = shutil.which(binary)
    if path is not None:
        return path
    reason = f"{binary} is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def tier(request: pytest.FixtureRequest) -> Tier:
    option = request.config.getoption
    return Tier(request.node, option("--long"), option("--seed"), tuple(option("--index")))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    return Figures(request.node, request.config.getoption("--seed"))


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hone home of its own, outside tmp_path, and no key or setting of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(FOREIGN_VARIABLES) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    path = tmp_path_factory.mktemp(f"home{next(HOMES)}", numbered=False)
    monkeypatch.setenv("HONE_HOME", str(path))
    monkeypatch.setenv("HONE_LOCAL", "false")  # a scripted provider on loopback stands for a remote one
    monkeypatch.setenv("HONE_LEARNING", "queue")  # nothing learns beside a test that does not ask for it
    return path


@pytest.fixture(autouse=True, scope="session")
def no_worker_is_left(tmp_path_factory: pytest.TempPathFactory) -> Generator[None, None, None]:
    """Of all tests, none leaves a process behind that learns."""
    yield
    place = f"--home\0{tmp_path_factory.getbasetemp()}".encode()
    left = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            words = path.read_bytes()
            left += [words] if place in words and b"\0--behind" in words else []
    assert left == []


@pytest.fixture(scope="session", autouse=True)
def descriptors() -> Generator[None, None, None]:
    """Fail the last test of a process whose tests left many files open: some path through Hone leaks them."""
    before = _open_files()
    yield
    gc.collect()
    left = _open_files() - before
    assert left.total() < LEFT_OPEN, f"{left.total()} files left open: {left.most_common(5)}"


def _open_files() -> Counter[str]:
    found: Counter[str] = Counter()
    for each in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            found[os.readlink(each)] += 1
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hone")
    group.addoption("--long", action="store_true", help="run the full counts instead of samples")
    group.addoption("--seed", type=int, default=1, help="seed of the samples (default: %(default)s)")
    group.addoption("--index", type=int, action="append", default=[], help="try only this case of a count")
    group.addoption("--tallies", type=Path, help="write what was counted to this file, as JSON lines")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("basetemp") and not config.getoption("--long"):
        config.option.basetemp = _make_folder_in_memory()
    # A shell starts background jobs with Ctrl-C ignored, `nohup` what it starts with SIGHUP ignored, and what
    # tests start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    settings.load_profile("long" if config.getoption("--long") else "short")


def _make_folder_in_memory() -> str | None:
    """Return a temporary folder in memory, where there is room: on a disk, tests that write much keep others
    waiting for seconds. The long tier has the disk."""
    try:
        memory = os.statvfs(MEMORY)
    except OSError:
        return None
    is_fit = os.access(MEMORY, os.W_OK) and not memory.f_flag & os.ST_NOEXEC
    if not is_fit or min(memory.f_bavail * memory.f_frsize, _available_memory()) < ROOM:
        return None
    folder = tempfile.mkdtemp(prefix="hone-tests-", dir=MEMORY)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _available_memory() -> int:
    found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found[1]) * 1024 if found else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_collection_finish() -> None:
    """Keep what collecting has made out of the sight of the garbage collector: nine thousand tests and their
    modules would be looked through again each time a test asks for a collection."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def` test runs in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails in the middle of a count says how the case is tried again."""
    report = yield
    if report.failed and CURRENT in item.stash:
        command = replay(item)
        report.sections.append((REPLAY, command))
        item.user_properties.append((REPLAY, command))
        report.user_properties = item.user_properties
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Under xdist only reports reach the process that prints; the last one of a test has all it recorded.
    reports = sorted(
        (
            report
            for group in terminalreporter.stats.values()
            for report in group
            if isinstance(report, pytest.TestReport) and report.when == "teardown"
        ),
        key=lambda report: report.nodeid,
    )
    path = terminalreporter.config.getoption("--tallies")
    if path is not None:  # whoever wants a file tells it in other words
        failed = {
            report.nodeid: str(getattr(report.longrepr, "reprcrash", None) or "failed")
            for report in terminalreporter.stats.get("failed", [])
        }
        here = f"{terminalreporter.config.rootpath}/"
        told = [counted(report, failed.get(report.nodeid, "").replace(here, "")) for report in reports]
        path.write_text("".join(f"{json.dumps(each)}\n" for each in told), "utf-8")
    else:
        show(terminalreporter, reports)


def show(terminal: pytest.TerminalReporter, reports: Sequence[pytest.TestReport]) -> None:
    for kind in (SAMPLE, FIGURES, REPLAY):
        lines = [
            f"{kind}: {report.nodeid.rpartition('::')[2]}: {value}"
            for report in reports
            for name, value in report.user_properties
            if name == kind
        ]
        if lines:
            terminal.section(f"{kind}s" if kind == SAMPLE else kind)
            terminal.write_line("\n".join(lines))


def counted(report: pytest.TestReport, failed: str) -> dict[str, object]:
    kept = report.user_properties
    return {
        "test": report.nodeid,
        "failed": failed,
        "tallies": [json.loads(str(value)) for name, value in kept if name == TALLY],
        "replay": [value for name, value in kept if name == REPLAY],
    }
