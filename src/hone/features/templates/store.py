"""Store templates as documents of the owner, checked when read."""

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime

from hone.core.documents import NEW, TEMPLATES, Documents, change
from hone.core.errors import Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.regex import regex
from hone.core.value import replace
from hone.core.visible import one_line
from hone.features.templates.template_file import filed, unfiled
from hone.features.templates.values import Template

AUTO = "auto"
LONGEST = 64
LARGEST = 4 * 2**20
"""The most bytes of a document to read: no template of ours comes near that."""
SUFFIX = ".json"
_SHAPE = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class Templates:
    """One document for each template. Writers take turns; an unusable one is never overwritten."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def document(self, name: str) -> str:
        """Return the name of a template's document. Raises Refused for an invalid name."""
        if not _SHAPE.fullmatch(name) or len(name) > LONGEST or name == AUTO:
            raise Refused(
                f"{one_line(name, 80)!r} cannot be a template's name. It has 1 to {LONGEST} of a-z, 0-9 "
                f"and - between them, and is not {AUTO!r}."
            )
        return f"{name}{SUFFIX}"

    async def read(self, name: str) -> Template:
        """Read a template. Raises Missing, or Corrupt for one that was changed."""
        return await asyncio.to_thread(self._read, name)

    async def all(self) -> tuple[list[Template], list[str]]:
        """Return the templates by name, and a sentence about each unusable one."""
        return await asyncio.to_thread(self._all)

    async def made_from(self, sessions: Collection[SessionId]) -> list[str]:
        """Return the names of the templates that were made from these sessions."""
        return [each.name for each in (await self.all())[0] if each.session in sessions]

    async def add(self, template: Template) -> None:
        """Add a template. Raises Conflict if the name is taken."""
        await asyncio.to_thread(self._add, template)

    async def delete(self, name: str) -> None:
        """Delete a template, valid or not. Raises Missing."""
        await asyncio.to_thread(self._delete, name)

    async def rate(self, name: str, effect: float | None) -> None:
        """Store how much it was measured to help."""
        await self.change(name, lambda each: replace(each, effect=effect))

    async def count(self, name: str, session: SessionId, begun: datetime | None = None) -> None:
        """Count a session that began with it. A repeated call changes nothing, and neither does one if the
        template was made after the session had `begun`: then it had another one of that name."""

        def counted(template: Template) -> Template:
            if session in template.uses or (begun and begun < template.created):
                return template
            return replace(template, uses=(*template.uses, session))

        await self.change(name, counted)

    async def change(self, name: str, edit: Callable[[Template], Template]) -> None:
        """Change a template. Raises Missing or Corrupt, and what `edit` raises."""
        await asyncio.to_thread(self._change, name, edit)

    def _all(self) -> tuple[list[Template], list[str]]:
        found: list[Template] = []
        faults: list[str] = []
        for name in self.names():
            try:
                found.append(self._read(name))
            except Missing:
                continue  # deleted in the meantime
            except HoneError as error:
                faults.append(str(error))
        return found, faults

    def names(self) -> list[str]:
        """Return the names of all documents, valid or not."""
        found = self._documents.names(TEMPLATES)
        return [each.removesuffix(SUFFIX) for each in found if each.endswith(SUFFIX) and "/" not in each]

    def contents(self, name: str) -> bytes:
        """Return the bytes of a template, valid or not; none if there is none."""
        return self._documents.read(TEMPLATES, f"{name}{SUFFIX}") or b""

    def _read(self, name: str) -> Template:
        document = self.document(name)
        try:
            data = self._documents.read(TEMPLATES, document)
        except StoreError as error:
            raise Corrupt(f"{error} It is left as it is.") from error
        return self._decode(name, data)

    def _decode(self, name: str, data: bytes | None) -> Template:
        if data is None:
            raise Missing(f"There is no template {name}. See hone templates list.")
        try:
            if len(data) > LARGEST:
                raise ValueError("it is too large")
            return unfiled(data, name)
        except ValueError as error:
            raise Corrupt(
                f"{self._documents.describe(TEMPLATES, self.document(name))} cannot be used: {error}. It is "
                f"left as it is; put back what was there, or remove it with hone templates delete {name}."
            ) from error

    def _add(self, template: Template) -> None:
        try:
            self._documents.write(TEMPLATES, self.document(template.name), filed(template), NEW)
        except Conflict:
            raise Conflict(f"There is a template {template.name} already. Choose another name.") from None

    def _delete(self, name: str) -> None:
        if not self._documents.delete(TEMPLATES, self.document(name)):
            raise Missing(f"There is no template {name}.")

    def _change(self, name: str, edit: Callable[[Template], Template]) -> None:
        def rewrite(data: bytes | None) -> bytes | None:
            before = self._decode(name, data)
            after = edit(before)
            return None if after == before else filed(after)

        change(self._documents, TEMPLATES, self.document(name), rewrite)
