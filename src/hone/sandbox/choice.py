"""Choose the sandbox mode: the first one that passes its trial on this machine."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from weakref import WeakSet

from msgspec import Struct

from hone.core import seldom
from hone.core.clock import Clock, SystemClock
from hone.core.loading import import_object
from hone.core.value import replace
from hone.sandbox.host_view import HostView, survey
from hone.sandbox.modes import Bubblewrap, LandlockFence
from hone.sandbox.output import Output, Spill
from hone.sandbox.process import run
from hone.sandbox.protection import Protection
from hone.sandbox.spec import (
    ALL,
    PATH,
    Claim,
    Launch,
    SandboxAccess,
    SandboxMode,
    SandboxSpec,
    SandboxUnavailable,
)

TRIAL = "hone.sandbox.trial:bait"
"""Imported with the first command: most starts run none."""
_DEADLINE = 20.0
_NOT_ROOT = "run Hone as an ordinary user"
_LANDLOCK = "Linux 6.12 or newer with Landlock switched on, on x86_64 or aarch64"
_REMEDIES = {
    "bubblewrap": "the package bubblewrap and user namespaces",
    "landlock with mounts": f"{_LANDLOCK}, and user namespaces",
    "landlock": _LANDLOCK,
}


class SandboxChoice(Struct, frozen=True):
    """The result of trying a mode: what it `held`, and one clause on why that is not everything."""

    mode: SandboxMode
    held: frozenset[Claim]
    complaint: str = ""

    def missing(self, *, network: bool) -> frozenset[Claim]:
        """Return what a command could reach although it should not."""
        return ALL - self.held - ({Claim.NETWORK} if network else set())


def unconfined(argv: Sequence[str], spec: SandboxSpec) -> Launch:
    """Run without a sandbox: the command is only supervised, so that it leaves nothing behind."""
    if spec.gateway:
        raise SandboxUnavailable("a program outside the sandbox cannot be held to some hosts")
    return Launch("plain", tuple(argv), (("folder", str(spec.folder)),), str(spec.scratch or spec.folder))


NONE = SandboxMode("none", frozenset(), unconfined)


def refuse(_argv: Sequence[str], _spec: SandboxSpec) -> Launch:
    raise SandboxUnavailable("commands run only in a sandbox here, and none holds on this machine")


REFUSING = SandboxMode("none that holds", frozenset(), refuse)


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


class Sandbox:
    """Makes cells, and finds out once per cell which mode holds it.

    home:    Hone's home: no command sees it, wherever it lies; caches and quarantine lie in it
    hidden:  what else no command may see
    shown:   what commands may read although it lies in something hidden: approved skills
    access:  what the owner's settings give commands in a folder
    required: run nothing where no mode keeps commands from files, processes and rights, whatever is allowed
    """

    def __init__(
        self,
        *,
        home: Path | None = None,
        hidden: Sequence[Path] = (),
        shown: Sequence[Path] = (),
        access: Callable[[Path], SandboxAccess] = lambda _: SandboxAccess(),
        modes: Sequence[SandboxMode] | None = None,
        python: str = sys.executable,
        clock: Clock | None = None,
        required: bool = False,
    ) -> None:
        self.python = python
        self.home = home.resolve() if home else None
        self._bare = os.path.realpath(python)
        self._hidden = tuple(path.resolve() for path in (*((home,) if home else ()), *hidden))
        self._shown = tuple(path.resolve() for path in shown)
        self._access = access
        self._given = modes
        self._required = required
        self._clock = clock or SystemClock()
        self._choices: dict[SandboxSpec, SandboxChoice] = {}
        self.protections: WeakSet[Protection] = WeakSet()

    def vouch(self, path: Path) -> None:
        """Declare what is at a path as written with the owner's consent. A file tool calls this after writing
        a sensitive file: a running command would otherwise be taken for the writer."""
        for protection in self.protections:
            protection.vouch(path)

    @cached_property
    def _modes(self) -> Sequence[SandboxMode]:
        return known_modes() if self._given is None else self._given

    def survey(self, folder: Path) -> HostView:
        """Find what commands in a folder see of the user's machine. This takes some milliseconds."""
        return survey(folder.resolve(), self._access(folder), self._hidden, os.environ)

    def spec(
        self,
        folder: Path,
        scratch: Path | None = None,
        writable: tuple[Path, ...] = (),
        around: HostView | None = None,
    ) -> SandboxSpec:
        """Return the specification. Hone's interpreter runs in the sandbox; Hone's code and login files
        cannot be changed in it."""
        folder = folder.resolve()
        around = around or self.survey(folder)
        places = {Path(each).resolve() for each in (sys.prefix, sys.base_prefix)}
        code = Path(__file__).resolve().parents[1]
        return SandboxSpec(
            folder,
            writable=(*around.access.write, *writable),
            readable=tuple(sorted({*places, *around.readable, *self._shown})),
            sealed=tuple(sorted({*places, code, *around.sealed})),
            hidden=tuple(sorted({*self._hidden, *around.hidden})),
            scratch=scratch.resolve() if scratch else None,
        )

    async def choose(self, spec: SandboxSpec) -> SandboxChoice:
        """Return the first mode that holds everything it should; else the one that holds most, or none. Each
        is tried once."""
        spec = replace(spec, network=False, read_only=False)
        key = replace(spec, scratch=None, guarded=())
        if key not in self._choices:
            self._choices[key] = await self._choose(spec)
        return self._choices[key]

    async def _choose(self, spec: SandboxSpec) -> SandboxChoice:
        best = SandboxChoice(NONE, frozenset())
        for mode in self._modes:
            finding = await self.examine(mode, spec)
            if len(finding.held) > len(best.held):
                best = finding
            if finding.held == ALL:
                break
        if self._required and best.missing(network=True):
            return replace(best, mode=REFUSING)
        return best

    async def examine(self, mode: SandboxMode, spec: SandboxSpec) -> SandboxChoice:
        """Try a mode once."""
        spec = spec if mode.seals else replace(spec, guarded=())
        output = Output(Spill(Path(os.devnull), ""))
        try:
            tmp = mode.wrap([], spec).tmp
            with import_object(TRIAL)(spec) as laid:
                launch = mode.wrap(laid.attempt(self._bare, spec, tmp), spec)
                ended = await run(launch, output=output, clock=self._clock, timeout=_DEADLINE)
                broken = laid.broken(ended.output)
        except (OSError, SandboxUnavailable) as error:
            return SandboxChoice(mode, frozenset(), str(error))
        if broken is None:
            said = ended.output.strip().splitlines() or [f"it ended with {ended.code}"]
            return SandboxChoice(mode, frozenset(), said[-1])
        reached = ", ".join(sorted(broken & mode.claims))
        return SandboxChoice(mode, mode.claims - broken, f"a trial reached {reached}" if reached else "")

    async def describe(self, spec: SandboxSpec) -> list[str]:
        """Describe for `hone doctor` what is in force, what each other mode lacks, and how to get it."""
        findings = [await self.examine(mode, spec) for mode in self._modes]
        choice = await self.choose(spec)
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
