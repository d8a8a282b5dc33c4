"""A mode is chosen because running it shows that it holds; what a cell takes away stays away."""

import asyncio
import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hone.core.clock import SystemClock
from hone.core.value import replace
from hone.sandbox import seccomp
from hone.sandbox.choice import NONE, Sandbox, unconfined
from hone.sandbox.examining import known_modes
from hone.sandbox.modes import NOBODY, LandlockFence
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import Ended, run
from hone.sandbox.spec import ALL, Claim, Launch, SandboxMode, SandboxSpec
from tests.conftest import requires
from tests.sandbox.areas import area, modes, shared_python

pytestmark = pytest.mark.rights


@pytest.fixture
def place() -> Iterator[Path]:
    with area(os.geteuid()) as path:
        yield path


def bubble() -> SandboxMode:
    requires("bwrap")
    return known_modes()[0]


def execute(mode: SandboxMode, spec: SandboxSpec, command: str) -> Ended:
    launch = mode.wrap(["/bin/sh", "-c", command], spec)
    output = Output(Spill(Path(os.devnull), ""))
    return asyncio.run(run(launch, output=output, clock=SystemClock(), timeout=60))


def test_a_mode_that_claims_more_than_it_holds_is_found_out(place: Path) -> None:
    liar = SandboxMode("liar", ALL, unconfined)
    sandbox = Sandbox(modes=[liar], hidden=[place / "home"])
    (place / "home" / "hone.db").touch()
    choice = asyncio.run(sandbox.choose(sandbox.spec(place / "folder", place / "scratch")))
    reached = {Claim.FILES, Claim.PROCESSES, Claim.NETWORK, Claim.RIGHTS}
    assert choice.held == ALL - reached
    assert choice.mode is NONE
    assert choice.missing(network=True) == ALL - {Claim.NETWORK}


def test_a_mode_that_breaks_off_holds_nothing_and_the_next_one_is_tried(place: Path) -> None:
    broken = SandboxMode(
        "broken", ALL, lambda argv, spec: Launch("plain", ("/bin/false",), (("folder", "/"),))
    )
    missing = SandboxMode(
        "missing", ALL, lambda argv, spec: Launch("plain", ("/no/such/program",), (("folder", "/"),))
    )
    sandbox = Sandbox(modes=[broken, missing])
    lines = asyncio.run(sandbox.describe(sandbox.spec(place / "folder")))
    assert lines[0] == "sandbox: none"
    assert lines[1].startswith("every command asks first, because it could reach files outside")
    assert lines[2].startswith("broken: does not hold (it ended with 1)")
    assert "No such file" in lines[3]
    assert "bubblewrap: not found; it needs the package bubblewrap" in lines[4]


def test_the_best_mode_here_is_chosen_once_and_described(place: Path) -> None:
    tried: list[Sequence[str]] = []
    best = bubble()

    def wrap(argv: Sequence[str], spec: SandboxSpec) -> Launch:
        tried.append(argv)
        return best.wrap(argv, spec)

    sandbox = Sandbox(modes=[replace(best, wrap=wrap), *known_modes()[1:]])
    spec = sandbox.spec(place / "folder", place / "scratch")
    choice = asyncio.run(sandbox.choose(spec))
    assert choice.held == ALL
    count = len(tried)
    again = sandbox.spec(place / "folder", place / "outside")
    assert asyncio.run(sandbox.choose(replace(again, network=True))) is choice
    assert len(tried) == count
    lines = asyncio.run(sandbox.describe(spec))
    assert lines[0].startswith(f"sandbox: {best.name}; out of a command's reach: files outside")
    assert [line.partition(":")[0] for line in lines[1:]] == [mode.name for mode in known_modes()[1:]]


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/proc", "/usr/bin"])
def test_the_system_itself_is_no_working_folder(folder: str) -> None:
    sandbox = Sandbox()
    spec = sandbox.spec(Path(folder))
    for mode in known_modes():
        assert "holds the system itself" in asyncio.run(sandbox.examine(mode, spec)).complaint
    assert asyncio.run(sandbox.choose(spec)).mode is NONE


def test_the_home_of_hone_is_no_working_folder_and_stays_hidden_in_a_larger_one(place: Path) -> None:
    home = place / "folder" / "a" / "b" / "home"
    home.mkdir(parents=True)
    (home / "hone.db").write_text("canary")
    (place / "folder" / "a" / "seen").write_text("seen")
    mode = bubble()
    sandbox = Sandbox(modes=[mode], hidden=[home])
    assert "Hone's own home" in asyncio.run(sandbox.examine(mode, sandbox.spec(home))).complaint
    spec = sandbox.spec(place / "folder", place / "scratch")
    assert asyncio.run(sandbox.choose(spec)).held == ALL
    first = execute(
        mode, spec, "cat a/seen; ls a/b/home; mv a/b c; mv a d; mv a/b/home e; touch a/b/home/x; find ."
    )
    assert "seen" in first.output
    assert "hone.db" not in first.output
    again = execute(mode, spec, "grep -r canary .; cat */hone.db */*/hone.db */*/*/hone.db")
    assert "canary" not in again.output
    assert (home / "hone.db").read_text() == "canary"
    assert os.listdir(home) == ["hone.db"]


def test_in_a_home_folder_keys_are_hidden_and_what_a_login_runs_is_sealed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = place / "folder"
    monkeypatch.setenv("HOME", str(home))
    (home / ".ssh").mkdir()
    (home / ".config" / "gh").mkdir(parents=True)
    for name in (".ssh/id_rsa", ".config/gh/hosts.yml", ".netrc", ".bashrc", ".config/mine"):
        (home / name).write_text(f"canary {name}")
    mode = bubble()
    sandbox = Sandbox(modes=[mode])
    spec = sandbox.spec(home, place / "scratch")
    assert asyncio.run(sandbox.choose(spec)).held == ALL
    seen = execute(mode, spec, "cat .ssh/* .config/gh/* .netrc .bashrc .config/mine").output
    assert [row for row in seen.splitlines() if "canary" in row] == ["canary .bashrccanary .config/mine"]
    changed = execute(
        mode, spec, "echo x >> .bashrc; mv .ssh ssh; mv .netrc netrc; mv .config config; touch mine"
    )
    assert changed.output.count("busy") >= 3
    assert (home / ".bashrc").read_text() == "canary .bashrc"
    assert (home / ".ssh" / "id_rsa").exists()
    assert (home / "mine").exists()
    within = sandbox.spec(home / ".ssh")
    assert within.hidden == ()


@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_if_the_cell_has_it_and_brings_no_sockets_of_programs(
    place: Path, network: bool
) -> None:
    python = shared_python()
    if python is None:
        pytest.skip("no interpreter that every user can start")
    code = """
import socket, sys
def reached(family, address):
    try:
        socket.socket(family).connect(address)
        return True
    except OSError:
        return False
print(reached(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))))
print(reached(socket.AF_UNIX, "\\0" + sys.argv[2]), reached(socket.AF_UNIX, sys.argv[3]))
"""
    abstract = f"hone-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX) as unnamed,
        socket.socket(socket.AF_UNIX) as named,
    ):
        unnamed.bind(f"\0{abstract}")
        named.bind(str(place / "outside" / "socket"))
        os.chmod(place / "outside" / "socket", 0o777)
        for each in (unnamed, named):
            each.listen()
        arguments = [str(listener.getsockname()[1]), abstract, str(place / "outside" / "socket")]
        spec = replace(Sandbox().spec(place / "folder", place / "scratch"), network=network)
        for mode in known_modes():
            launch = mode.wrap([python, "-I", "-S", "-c", code, *arguments], spec)
            output = Output(Spill(Path(os.devnull), ""))
            ended = asyncio.run(run(launch, output=output, clock=SystemClock(), timeout=60))
            assert ended.output == f"{network}\nFalse False\n", mode.name


def test_what_is_sealed_cannot_be_changed_or_moved_though_its_folder_can(place: Path) -> None:
    code = place / "folder" / "lib" / "site" / "code"
    code.mkdir(parents=True)
    (code / "warden.py").write_text("as it was")
    mode = bubble()
    spec = replace(Sandbox().spec(place / "folder", place / "scratch"), sealed=(code,))
    assert asyncio.run(Sandbox(modes=[mode]).choose(spec)).held == ALL
    ended = execute(
        mode,
        spec,
        "cat lib/site/code/warden.py; echo bad > lib/site/code/warden.py; touch lib/site/code/new;"
        "mv lib/site lib/other; mv lib old; rm -rf lib/site/code; touch lib/mine lib/site/mine",
    )
    assert "as it was" in ended.output
    assert (code / "warden.py").read_text() == "as it was"
    assert os.listdir(code) == ["warden.py"]
    assert {path.name for path in (place / "folder" / "lib").iterdir()} == {"mine", "site"}
    assert (place / "folder" / "lib" / "site" / "mine").exists()


@pytest.mark.parametrize("mounts", [True, False])
def test_landlock_holds_what_lies_in_the_folder_only_where_it_can_mount(place: Path, mounts: bool) -> None:
    python = shared_python()
    if python is None:
        pytest.skip("no interpreter that every user can start")
    home = place / "folder" / "home"
    home.mkdir()
    (home / "hone.db").touch()
    fence = LandlockFence(drop=os.geteuid() == 0, mounts=mounts)
    mode = SandboxMode("landlock", ALL, fence.wrap, seals=mounts)
    for hidden, held in (((place / "home",), True), ((home,), mounts)):
        sandbox = Sandbox(modes=[mode], hidden=hidden, python=python)
        spec = replace(sandbox.spec(place / "folder", place / "scratch"), sealed=())
        finding = asyncio.run(sandbox.examine(mode, spec))
        if held and finding.held != ALL:
            pytest.skip(f"not claimed here: {finding.complaint}")
        assert (Claim.FILES in finding.held) is held


def landlock_alone() -> SandboxMode:
    """What is left where there are no namespaces."""
    return SandboxMode("landlock", ALL, LandlockFence(drop=os.geteuid() == 0, mounts=False).wrap)


def test_with_read_only_the_folder_can_be_seen_and_only_scratch_can_be_written(place: Path) -> None:
    (place / "folder" / "file").write_text("seen")
    (place / "scratch" / "home").mkdir()
    spec = replace(Sandbox().spec(place / "folder", place / "scratch", (place / "home",)), read_only=True)
    for mode in (*known_modes(), landlock_alone()):
        command = f"cat file; touch new; echo x > file; rm file; touch {place}/home/new"
        ended = execute(mode, spec, f"{command}; echo x > $TMPDIR/mine && echo ok")
        assert ended.output.startswith("seen"), mode.name
        assert ended.output.endswith("ok\n")
        assert os.listdir(place / "folder") == ["file"]
        assert (place / "folder" / "file").read_text() == "seen"
        assert os.listdir(place / "home") == []
        (place / "scratch" / "mine").unlink()


def test_inside_something_hidden_only_what_is_shown_is_there(place: Path) -> None:
    """Hone's home in the working folder: skills can be read, the cache of the folder written."""
    python = shared_python()
    if python is None:
        pytest.skip("no interpreter that every user can start")
    home = place / "folder" / "home"
    for name in ("skills/one", "skills/.archive/two", "caches/mine", "caches/theirs"):
        (home / name).mkdir(parents=True)
        (home / name / "file").write_text(f"text of {name}\n")
    (home / "hone.db").write_text("secret")
    hidden = [home / "skills" / ".archive"]
    sandbox = Sandbox(home=home, shown=[home / "skills"], hidden=hidden, python=python)
    spec = sandbox.spec(place / "folder", place / "scratch", (home / "caches" / "mine",))
    for mode in known_modes():
        if not mode.seals:
            continue
        finding = asyncio.run(sandbox.examine(mode, replace(spec, sealed=())))
        assert finding.held == ALL, f"{mode.name}: {finding.complaint}"
        ended = execute(
            mode,
            spec,
            "cd home; cat skills/*/file caches/*/file skills/.archive/*/file hone.db; ls;"
            "echo x > caches/mine/new; echo x > skills/one/file; echo x > new; rm -rf skills;"
            "mv caches elsewhere; cd ..; mv home other",
        )
        text = [line for line in ended.output.splitlines() if ": " not in line]
        assert text == ["text of skills/one", "text of caches/mine", "caches", "skills"], ended.output
        (home / "caches" / "mine" / "new").unlink()
        assert (home / "skills" / "one" / "file").read_text() == "text of skills/one\n"
        assert sorted(os.listdir(home)) == ["caches", "hone.db", "skills"]


def test_a_secret_beside_programs_is_not_read_in_any_mode(place: Path) -> None:
    tools = place / "outside" / "tools"
    for name in ("bin/tool", "etc/npmrc", "etc/other", "credentials"):
        (tools / name).parent.mkdir(parents=True, exist_ok=True)
        (tools / name).write_text(f"text of {name}\n")
    hidden = (tools / "credentials", tools / "etc" / "npmrc")
    spec = Sandbox().spec(place / "folder", place / "scratch")
    spec = replace(spec, readable=(*spec.readable, tools), hidden=hidden)
    for mode in (*known_modes(), landlock_alone()):
        ended = execute(
            mode, spec, f"cd {tools}; cat bin/* etc/npmrc etc/other credentials; echo x > bin/tool"
        )
        text = [line for line in ended.output.splitlines() if ": " not in line]
        assert text == ["text of bin/tool", "text of etc/other"], mode.name
        assert (tools / "bin" / "tool").read_text() == "text of bin/tool\n"


def test_modules_planted_in_the_folder_do_not_run_outside_the_cell(place: Path) -> None:
    canary = place / "outside" / "canary"
    folder = place / "folder"
    planted = f"open({str(canary)!r}, 'w')\n"
    names = (
        "ctypes",
        "os",
        "signal",
        "struct",
        "sitecustomize",
        "usercustomize",
        "resource",
        "select",
        "_socket",
    )
    for name in names:
        (folder / f"{name}.py").write_text(planted)
    (folder / "hone" / "sandbox").mkdir(parents=True)
    for path in ("hone/__init__.py", "hone/sandbox/__init__.py", "hone/sandbox/supervisor.py"):
        (folder / path).write_text(planted)
    before = Path.cwd()
    os.chdir(folder)
    try:
        sandbox = Sandbox(hidden=[place / "home"])
        spec = sandbox.spec(folder, place / "scratch")
        asyncio.run(sandbox.choose(spec))
        for mode in modes():
            assert execute(mode, spec, "echo ran").output == "ran\n"
    finally:
        os.chdir(before)
    assert not canary.exists()


def test_what_a_command_makes_belongs_to_the_owner_of_the_folder(place: Path) -> None:
    mode = bubble()
    spec = Sandbox().spec(place / "folder", place / "scratch")
    ended = execute(mode, spec, "echo x > made; mkdir deep; touch deep/file; stat -c %u . made; id -u")
    made = place / "folder" / "deep" / "file"
    assert made.stat().st_uid == os.geteuid()
    inside = {str(NOBODY)} if os.geteuid() == 0 else {str(os.geteuid())}
    assert {*ended.output.split()} == inside
    if os.geteuid() == 0:
        os.chown(place / "folder", 4321, 4321)
        os.chown(place / "folder" / "made", 4321, 4321)
        assert execute(mode, spec, "echo y >> made && touch theirs").code == 0
        assert (place / "folder" / "theirs").stat().st_uid == 4321
        assert execute(mode, spec, "rm -rf deep/file || echo no").output.endswith("no\n")


def test_modes_and_times_can_be_changed_in_a_cell(place: Path) -> None:
    command = (
        "touch f; mkdir d; chmod 751 f; chmod 700 $PWD/d; touch -d @5 f d; ln -s f l; touch -h -d @6 l;"
        "cp -a d e; cd d; touch x; chmod 604 x; chmod 777 $TMPDIR; stat -c '%a %Y' ../f ../l x;"
        "cd ..; stat -c '%a %Y' d e; chmod 4755 f; chmod 777 nothing; chmod 777 /usr"
    )
    for mode in known_modes():
        spec = Sandbox().spec(place / "folder", place / "scratch")
        rows = execute(mode, spec, command).output.splitlines()
        assert rows[0] == "751 5", mode.name
        assert rows[1] == "777 6"
        assert rows[2].startswith("604 ")
        assert rows[4] == "700 5"
        assert [row for row in rows if row.startswith("chmod: ")] == rows[5:]
        assert len(rows) == 8
        execute(mode, spec, "rm -rf f d e l")


def test_a_cell_can_have_more_folders_to_write_and_to_read(place: Path) -> None:
    (place / "outside" / "given").write_text("given")
    mode = bubble()
    spec = Sandbox().spec(place / "folder", place / "scratch", (place / "home",))
    spec = replace(spec, readable=(*spec.readable, place / "outside"))
    ended = execute(mode, spec, f"cat {place}/outside/given; touch {place}/home/new {place}/outside/new")
    assert "given" in ended.output
    assert "Read-only file system" in ended.output
    assert (place / "home" / "new").exists()
    assert not (place / "outside" / "new").exists()


def test_processes_and_files_have_limits(place: Path) -> None:
    spec = Sandbox().spec(place / "folder", place / "scratch")
    rows = execute(bubble(), spec, "cat /proc/self/limits").output.splitlines()
    limits = {row[:25].strip(): row[26:].split()[:2] for row in rows}
    assert limits["Max core file size"] == ["0", "0"]
    for name in ("Max processes", "Max file size", "Max data size"):
        soft, hard = limits[name]
        assert soft == hard != "unlimited"
    assert int(limits["Max processes"][0]) <= 4096


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_of_the_filter_are_the_kernels(machine: str) -> None:
    path = Path(HEADERS[machine])
    if not path.exists():
        pytest.skip(f"no {path}")
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text()))
    column, _ = seccomp.MACHINES[machine]
    for name, numbers in seccomp.CALLS.items():
        if numbers[column] >= 0 and name in known:
            assert int(known[name]) == numbers[column], name
        elif numbers[column] < 0:
            assert name not in known, name


@pytest.mark.parametrize("machine", [*seccomp.MACHINES])
def test_every_jump_of_the_filter_lands_in_it(machine: str) -> None:
    for fenced, network in ((False, False), (True, False), (True, True)):
        code = seccomp.program(machine, fenced=fenced, network=network)
        steps = [code[start : start + 8] for start in range(0, len(code), 8)]
        for number, step in enumerate(steps):
            kind, yes, no = int.from_bytes(step[:2], sys.byteorder), step[2], step[3]
            assert kind == 6 or number + 1 + max(yes, no) < len(steps)
        assert int.from_bytes(steps[-1][:2], sys.byteorder) == 6
