"""Erase words from templates, and the templates that were made from an erased conversation."""

import asyncio
from collections.abc import Sequence

from hone.app import Hone
from hone.core.documents import TEMPLATES
from hone.core.erasure import Erasure, Scrubber
from hone.core.errors import Corrupt, HoneError
from hone.core.holding import Occurrence
from hone.features.templates.store import SUFFIX, Templates
from hone.features.templates.template_file import from_dict, to_dict
from hone.features.templates.values import Template
from hone.files.atomic import sweep


class TemplateEraser:
    """Deletes templates of an erased conversation. Others lose the words, and get a new seal."""

    def __init__(self, hone: Hone) -> None:
        self._store = Templates(hone.documents)
        self._folder = hone.home / TEMPLATES.folder

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        scrub, found = Scrubber(what.words), []
        for name in await asyncio.to_thread(self._store.names):
            count = scrub.tally(await asyncio.to_thread(self._store.contents, name))
            whole = bool(scrub.count(name)) or await self._is_from(name, what)
            if count or whole:
                place = f"{TEMPLATES.folder}/{name}{SUFFIX}"
                found.append(Occurrence("templates", place, max(1, count), whole=whole))
        return found

    async def erase(self, what: Erasure) -> Sequence[str]:
        scrub = Scrubber(what.words)
        for place in await self.find(what):
            name = place.place.removeprefix(f"{TEMPLATES.folder}/").removesuffix(SUFFIX)
            if place.whole:
                await self._store.delete(name)
            else:
                await self._scrub(name, scrub)
        sweep(self._folder)
        return ()

    async def _scrub(self, name: str, scrub: Scrubber) -> None:
        """Delete a damaged template: nobody could say what else it holds."""

        def change(template: Template) -> Template:
            return from_dict(scrub.value(to_dict(template)))

        try:
            await self._store.change(name, change)
        except (Corrupt, ValueError):
            await self._store.delete(name)

    async def _is_from(self, name: str, what: Erasure) -> bool:
        try:
            return bool(what.sessions) and (await self._store.read(name)).session in what.sessions
        except HoneError:
            return False
