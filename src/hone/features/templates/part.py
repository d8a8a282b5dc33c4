"""The part that adds templates to a Hone."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from hone.app import Hone
from hone.core.errors import Refused, StoreError
from hone.core.holding import Holding
from hone.core.ids import SessionId
from hone.core.part import Part, SessionSeed
from hone.core.ports import StoredSession
from hone.core.tool import Toolbox
from hone.features.templates.seeding import Seeding, TemplateOptions, make
from hone.features.templates.store import AUTO, Templates
from hone.features.templates.values import Template

ERASER = "hone.features.templates.erasing:TemplateEraser"


class TemplatesPart(Part):
    name = "templates"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    @cached_property
    def store(self) -> Templates:
        return Templates(self._hone.documents)

    async def create(self, beginning: str, options: TemplateOptions | None = None) -> Template:
        """Store calls of a session that worked as a template for others."""
        hone = self._hone
        toolbox = hone.toolboxes.show(hone.folder)
        return await make(
            self.store, hone.sessions, beginning, toolbox, options or TemplateOptions(), hone.clock
        )

    async def seed(self, wanted: str, toolbox: Toolbox) -> SessionSeed:
        hone = self._hone
        opening = Seeding(self.store, wanted, hone.clock, hone.meanings)
        if wanted != AUTO:
            # An unusable template is refused now, not after the first message.
            await opening.named(toolbox)
        return opening

    async def resumed(self, stored: StoredSession) -> None:
        """Count the use of a template that a killed process did not count."""
        first = stored.transcript.nodes[0]
        if first.message.template and stored.header.parent is None:
            with suppress(StoreError, Refused):  # the template may be gone
                await self.store.count(first.message.template, stored.header.id, first.at)

    async def leftovers(self, sessions: Sequence[SessionId]) -> Sequence[str]:
        return [
            f"Template {name} was made from it and stays. Delete it, too: hone templates delete {name}"
            for name in await self.store.made_from(sessions)
        ]

    async def checks(self) -> Sequence[tuple[bool, str]]:
        found, broken = await self.store.all()
        lines = [(False, f"templates: {line}") for line in broken]
        return lines or [(True, f"templates: all of them can be read ({len(found):,})")]

    def holdings(self) -> Sequence[Holding]:
        return (
            Holding(
                "templates",
                "calls that worked, as examples",
                places=("templates/",),
                eraser=ERASER,
            ),
        )
