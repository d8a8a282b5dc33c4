"""Name the sandbox modes of this machine, run their trial, and describe what it showed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hone.core import seldom
from hone.core.clock import Clock
from hone.core.value import replace
from hone.sandbox.choice import SandboxChoice
from hone.sandbox.modes import Bubblewrap, LandlockFence
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import run
from hone.sandbox.spec import ALL, PATH, SandboxMode, SandboxSpec, SandboxUnavailable
from hone.sandbox.trial import bait

_DEADLINE = 20.0
_NOT_ROOT = "run Hone as an ordinary user"
_LANDLOCK = "Linux 6.12 or newer with Landlock switched on, on x86_64 or aarch64"
_REMEDIES = {
    "bubblewrap": "the package bubblewrap and user namespaces",
    "landlock with mounts": f"{_LANDLOCK}, and user namespaces",
    "landlock": _LANDLOCK,
}


def known_modes() -> list[SandboxMode]:
    """Return the existing modes, strictest first."""
    if sys.platform != "linux":
        return []
    root = os.geteuid() == 0
    down = ", root's rights dropped" if root else ""
    bwrap = seldom.shutil.which("bwrap", path=PATH)
    mounting = LandlockFence(drop=root, mounts=True)
    found = [SandboxMode(f"landlock with mounts{down}", ALL, mounting.wrap, seals=True, enters=not root)]
    if bwrap:
        bubble = Bubblewrap(bwrap, seldom.shutil.which("prlimit", path=PATH), drop=root)
        found.insert(0, SandboxMode(f"bubblewrap{down}", ALL, bubble.wrap, seals=True))
    if not root:  # root needs no user namespaces, and can mount wherever a sandbox is possible at all
        found.append(SandboxMode("landlock", ALL, LandlockFence(drop=False, mounts=False).wrap))
    return found


async def examine(mode: SandboxMode, spec: SandboxSpec, python: str, clock: Clock) -> SandboxChoice:
    """Try a mode once."""
    spec = spec if mode.seals else replace(spec, guarded=())
    output = Output(Spill(Path(os.devnull), ""))
    try:
        tmp = mode.wrap([], spec).tmp
        with bait(spec) as laid:
            launch = mode.wrap(laid.attempt(python, spec, tmp), spec)
            ended = await run(launch, output=output, clock=clock, timeout=_DEADLINE)
            broken = laid.broken(ended.output)
    except (OSError, SandboxUnavailable) as error:
        return SandboxChoice(mode, frozenset(), str(error))
    if broken is None:
        said = ended.output.strip().splitlines() or [f"it ended with {ended.code}"]
        return SandboxChoice(mode, frozenset(), said[-1])
    reached = ", ".join(sorted(broken & mode.claims))
    return SandboxChoice(mode, mode.claims - broken, f"a trial reached {reached}" if reached else "")


def describe(findings: Sequence[SandboxChoice], choice: SandboxChoice) -> list[str]:
    """Say what is in force, what each other mode lacks, and how to get it."""
    kept = ", ".join(sorted(choice.held))
    lines = [f"sandbox: {choice.mode.name}" + (f"; out of a command's reach: {kept}" if kept else "")]
    if choice.missing(network=False):
        lines.append(
            f"every command asks first, because it could reach {', '.join(sorted(ALL - choice.held))}"
        )
    lines += [f"{each.mode.name}: {_state(each)}" for each in findings if each.mode is not choice.mode]
    names = [finding.mode.name for finding in findings]
    for kind in ("bubblewrap", "landlock"):
        if not any(name.startswith(kind) for name in names):
            lines.append(f"{kind}: not found; it needs {_REMEDIES[kind]}")
    return lines


_SWITCHES = {
    "kernel/apparmor_restrict_unprivileged_userns": "1",
    "kernel/unprivileged_userns_clone": "0",
    "user/max_user_namespaces": "0",
}
"""Kernel settings under which an ordinary user cannot create user namespaces."""


def _switched_off() -> str:
    found = [name for name, value in _SWITCHES.items() if _setting(name) == value]
    return (
        f" (this machine has {', '.join(f'{each} = {_SWITCHES[each]}' for each in found)})" if found else ""
    )


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def _state(finding: SandboxChoice) -> str:
    if finding.held == ALL:
        return "works as well"
    name = finding.mode.name.partition(",")[0]
    remedy = f"it needs {_REMEDIES.get(name, 'repair')}"
    remedy += _switched_off() if name != "landlock" else ""
    other = f", or {_NOT_ROOT}" if "root" in finding.mode.name else ""
    return f"does not hold ({finding.complaint}); {remedy}{other}"
