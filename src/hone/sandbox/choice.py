"""Choose the sandbox mode: the first one that passes its trial on this machine."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from msgspec import Struct

from hone.core.clock import Clock, SystemClock
from hone.core.loading import import_object
from hone.core.value import replace
from hone.sandbox.spec import (
    ALL,
    Claim,
    Launch,
    SandboxAccess,
    SandboxMode,
    SandboxSpec,
    SandboxUnavailable,
)

if TYPE_CHECKING:
    from hone.sandbox.host_view import HostView
    from hone.sandbox.protection import Protection

MODES, EXAMINE = "hone.sandbox.examining:known_modes", "hone.sandbox.examining:examine"
DESCRIBE, SURVEY = "hone.sandbox.examining:describe", "hone.sandbox.host_view:survey"
"""Imported with the first command: most starts run none."""


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
        found: Sequence[SandboxMode] = import_object(MODES)() if self._given is None else self._given
        return found

    def survey(self, folder: Path) -> "HostView":
        """Find what commands in a folder see of the user's machine. This takes some milliseconds."""
        found: HostView = import_object(SURVEY)(
            folder.resolve(), self._access(folder), self._hidden, os.environ
        )
        return found

    def spec(
        self,
        folder: Path,
        scratch: Path | None = None,
        writable: tuple[Path, ...] = (),
        around: "HostView | None" = None,
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
        found: SandboxChoice = await import_object(EXAMINE)(mode, spec, self._bare, self._clock)
        return found

    async def describe(self, spec: SandboxSpec) -> list[str]:
        """Describe for `hone doctor` what is in force, what each other mode lacks, and how to get it."""
        findings = [await self.examine(mode, spec) for mode in self._modes]
        choice = await self.choose(spec)
        lines: list[str] = import_object(DESCRIBE)(findings, choice)
        return lines
