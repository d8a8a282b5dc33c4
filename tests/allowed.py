"""Permissions and labels for tests of tools that are about something else."""

from pathlib import Path

from hone.core.permissions import Ask, Mode, nobody
from hone.core.trust import Trust
from hone.core.work import Work
from hone.runtime.permissions.decide import PathRules
from hone.runtime.permissions.owner import Network, OwnerPermissions
from hone.runtime.permissions.rules import RuleSet

NOWHERE = Path("/nowhere")


class Labels:
    """Gives everything one label."""

    def __init__(self, trust: Trust = Trust.LOCAL) -> None:
        self._trust = trust

    def of_file(self, path: Path, data: bytes) -> Trust:
        return self._trust

    def of_folder(self, path: Path) -> Trust:
        return self._trust

    def of_output(self, folder: Path, text: str) -> Trust:
        return self._trust


WORK = Work(Labels())


def permissions(
    folder: Path = NOWHERE,
    home: Path = NOWHERE / "home",
    ask: Ask = nobody,
    *,
    mode: Mode = Mode.AUTO,
    network: Network = "ask",
    rules: RuleSet | None = None,
) -> OwnerPermissions:
    places = PathRules(folder.resolve(), home, (home / "spill", home / "skills"))
    return OwnerPermissions(
        places, lambda: rules or RuleSet(), lambda _: False, ask=ask, mode=mode, network=network
    )


FREE = permissions(mode=Mode.FULL)
