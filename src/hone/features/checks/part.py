"""The part that adds checks of skills to a Hone."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hone.app import Hone
from hone.core.events import Emit
from hone.core.holding import Backup, Holding
from hone.core.loading import import_object
from hone.core.part import Part
from hone.features.checks.records import FILE
from hone.files.erasing import FileEraser, remove_whole

if TYPE_CHECKING:
    from hone.features.checks.checker import SkillChecker

CHECKER = "hone.features.checks.checker:SkillChecker"
"""Imported for a home with a skill that has checks."""


class ChecksPart(Part):
    name = "checks"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    @cached_property
    def checker(self) -> "SkillChecker":
        made: SkillChecker = import_object(CHECKER)(self._hone)
        return made

    async def settle_skills(self, names: Sequence[str]) -> None:
        await self.checker.settle(names)

    async def check_skills(self, names: Sequence[str]) -> Sequence[tuple[bool, str]]:
        return await self.checker.check(names)

    async def tend(self, emit: Emit) -> None:
        if await self._hone.stores.catalog.with_checks():
            await self.checker.tend(emit)

    async def findings(self, kind: str, name: str, digest: str) -> Sequence[str]:
        return await self.checker.describe(name) if kind == "skill" else ()

    def holdings(self) -> Sequence[Holding]:
        keeps, lasts = "which skills passed their checks, and when", "until a skill is checked again"
        stays = "they ran on this machine"
        return (
            Holding(
                "checks",
                keeps,
                lasts,
                places=(FILE,),
                backup=Backup.LEFT_OUT,
                eraser="hone.features.checks.part:erase",
                stays=stays,
            ),
        )


def erase(hone: Hone) -> FileEraser:
    """Remove the records if they contain the words: the checks run again."""
    return FileEraser(hone.home, "checks", (FILE,), remove_whole)
