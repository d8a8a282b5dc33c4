"""Protect the sensitive places of all folders that commands write to, and report what was done about them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hone.core import seldom
from hone.core.clock import Clock
from hone.core.visible import one_line
from hone.sandbox.guard import GuardFinding, Seals, TreeGuard

QUARANTINE = "quarantine"
_SHOWN, _WIDTH = 5, 120


class Protection:
    """`home` contains the quarantine; without one, it is a new temporary folder, which stays. `skipped` is
    not checked."""

    def __init__(
        self, trees: Sequence[Path], skipped: Sequence[Path], home: Path | None, clock: Clock
    ) -> None:
        self._home = home
        self._clock = clock
        self._count = 0
        self._quarantine: Path | None = None
        others = [*trees, *skipped]
        self._guards = [
            TreeGuard(tree, [each for each in others if each != tree], self._keep) for tree in trees
        ]

    def look(self) -> None:
        """Search the trees for the first time."""
        for guard in self._guards:
            guard.look()

    def vouch(self, path: Path) -> None:
        """Accept the current content as the owner's, although a command may be running."""
        for guard in self._guards:
            if path.is_relative_to(guard.root):
                guard.vouch(str(path.relative_to(guard.root)))

    def begin(self, *, seals: bool, settled: bool) -> Seals:
        """Return what to seal for the next command. See `TreeGuard.begin`."""
        found = [guard.begin(seals=seals, settled=settled) for guard in self._guards]
        loose = tuple(path for each in found for path in each.loose)
        return Seals(loose, tuple(path for each in found for path in each.firm))

    def end(self, *, network: bool) -> list[str]:
        """Revert what commands did to sensitive places; return what to report about it."""
        findings = [found for guard in self._guards for found in guard.end(network=network)]
        return [*describe(findings, str(self._quarantine or ""))]

    def _keep(self, path: str) -> Path:
        if self._quarantine is None:
            root = self._home / QUARANTINE if self._home else None
            if root:
                root.mkdir(mode=0o700, parents=True, exist_ok=True)
            begun = self._clock.now().strftime("%Y%m%d-%H%M%S-")
            self._quarantine = Path(
                seldom.tempfile.mkdtemp(prefix=begun if root else "hone-quarantine-", dir=root)
            )
        self._count += 1
        return self._quarantine / str(self._count) / path


def describe(findings: Sequence[GuardFinding], place: str) -> Iterator[str]:
    """Report in one clause what was moved and restored, and in another what could not be."""
    done = [each for each in findings if not each.error]
    if done:
        kept = f", kept in {place}" if any(each.kept for each in done) else ""
        yield f"taken back: {_listed(done)}{kept}; commands cannot change such files, use write_file"
    failed = [each for each in findings if each.error]
    if failed:
        errors = f"{_listed(failed)}: {one_line(failed[0].error, _WIDTH)}"
        yield f"could not be taken back, the owner has to look: {errors}"


def _listed(findings: Sequence[GuardFinding]) -> str:
    rows = list(dict.fromkeys(f"{one_line(each.path, _WIDTH)} ({each.reason})" for each in findings))
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return ", ".join(rows[:_SHOWN]) + more
