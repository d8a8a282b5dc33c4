"""Run the checks of a skill: on a copy of its files, in the sandbox, without a network, with a time limit."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.secrets import redact
from hone.core.skill import CHECKS
from hone.core.visible import one_line
from hone.knowledge.skills.facts import digest_files, split_facts, touches_scripts
from hone.sandbox.caches import cleared
from hone.sandbox.choice import Sandbox
from hone.sandbox.process import Ended
from hone.sandbox.spec import SandboxUnavailable
from hone.sandbox.workspace import Workspace

PATIENCE, ALL = 30.0, 120.0
"""Seconds for one check, and for all checks of a skill."""
MOST = 20
"""The most checks of a skill."""
KEPT = 4_000
"""How many characters of output are kept: the last ones."""
NO_SANDBOX = "no sandbox holds on this machine (see hone doctor)"
_SHEBANG = b"#!"
_OPEN, _PLAIN = 0o755, 0o644


class CheckReport(Struct, frozen=True):
    """The result of checking these files, by `digest`. `unrun` says why no check could be run; then nothing
    else is known. `summary` names the check that failed and how. An empty `digest` stands for files that
    could not be checked to the end: they are tried again."""

    digest: str
    passed: bool
    count: int = 0
    summary: str = ""
    output: str = ""
    unrun: str = ""


def list_checks(files: Mapping[str, bytes]) -> list[str]:
    """Return the checks of a skill in order: the files directly below checks/. Deeper ones are data."""
    return sorted(path for path in files if path.startswith(CHECKS) and "/" not in path.removeprefix(CHECKS))


async def run_checks(name: str, files: Mapping[str, bytes], sandbox: Sandbox, clock: Clock) -> CheckReport:
    """Run all checks, up to the first that fails. One that cannot run to its end counts as failed."""
    own, checks = split_facts(files)[0], list_checks(files)
    made = digest_files(own)
    if len(checks) > MOST:
        return CheckReport(made, False, summary=f"it has {len(checks)} checks, and at most {MOST} are run")
    root = _make_root()
    try:
        folder = root / name
        _lay(folder, own)
        return await _run(folder, own, checks, sandbox, clock)
    except (OSError, ValueError, SandboxUnavailable) as error:
        return CheckReport("", False, summary=f"its checks could not be run: {one_line(str(error), 300)}")
    finally:
        cleared(root)


def _make_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="hone-check-")).resolve()


def _lay(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a copy of the files. Scripts are made executable, since a ledger stores no file modes."""
    runs = touches_scripts({}, files)
    folder.mkdir()
    for path, data in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(_OPEN if path in runs else _PLAIN)


async def _run(
    folder: Path, files: Mapping[str, bytes], checks: Sequence[str], sandbox: Sandbox, clock: Clock
) -> CheckReport:
    made, end = digest_files(files), clock.monotonic() + ALL
    workspace = Workspace(folder, sandbox, clock)
    try:
        choice = await workspace.choice()
        if choice.missing(network=False):
            return CheckReport(made, False, unrun=NO_SANDBOX)
        for check in checks:
            argv = (*_interpreter(check, files[check]), str(folder / check))
            seconds = max(0.0, min(PATIENCE, end - clock.monotonic()))
            ended = await workspace.run(workspace.launch(argv, choice), "check", seconds)
            if ended.code or ended.timed_out:
                output = redact(ended.output)[-KEPT:]
                return CheckReport(made, False, len(checks), f"{check} {_end(ended, seconds)}", output)
    finally:
        await workspace.close()
    return CheckReport(made, True, len(checks))


def _interpreter(path: str, data: bytes) -> Iterator[str]:
    """Yield the interpreter of a file that does not name one."""
    if not data.startswith(_SHEBANG):
        yield from ("/usr/bin/env", "python3") if path.endswith(".py") else ("/bin/sh",)


def _end(ended: Ended, seconds: float) -> str:
    if ended.timed_out:
        return f"did not end within {seconds:.0f} seconds"
    return f"failed with exit code {ended.code}"
