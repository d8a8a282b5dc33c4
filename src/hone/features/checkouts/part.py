"""The part of a Hone that knows its checkouts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hone.core.holding import Backup, Holding
from hone.core.loading import import_object
from hone.core.part import Part
from hone.core.visible import visible

if TYPE_CHECKING:
    from hone.app import Hone

OPEN = "hone.features.checkouts.opening:open_checkout"


class CheckoutsPart(Part):
    name = "checkouts"

    def __init__(self, hone: "Hone") -> None:
        self._hone = hone

    async def checks(self) -> list[tuple[bool, str]]:
        """Report files in the home that were edited as if they counted."""
        hone = self._hone
        if not hone.settings.database:
            return []
        home = hone.home.resolve()
        report = await import_object(OPEN)(hone, home, make=False).push(dry_run=True)
        if not report.actions:
            return []
        count = len({each.place for each in report.actions})
        files = "1 file" if count == 1 else f"{count:,} files"
        return [(True, f"files: {files} in {visible(str(home))} edited and not recorded yet: hone push")]

    def holdings(self) -> Sequence[Holding]:
        return (
            Holding(
                "checkouts",
                "the names of folders that journal and skills were pulled into, and the files there",
                places=("checkouts.json",),
                backup=Backup.LEFT_OUT,
                eraser="hone.features.checkouts.whereabouts:CheckoutEraser",
                stays="it names folders on this machine",
            ),
        )
