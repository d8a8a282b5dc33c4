"""Store templates as files in the home: readable by the owner only, written atomically, checked when read."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from hone.core.errors import Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.regex import regex
from hone.core.value import replace
from hone.core.visible import one_line
from hone.features.templates.template_file import filed, unfiled
from hone.features.templates.values import Template
from hone.files.atomic import open_file, settle, write
from hone.files.locks import acquire, release

FOLDER = "templates"
AUTO = "auto"
LONGEST = 64
LARGEST = 4 * 2**20
"""Bytes of a file that is read: no template of ours comes near it."""
_SHAPE = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class Templates:
    """One file for each, for the owner only. Writers take turns; a file that cannot be used is never
    overwritten."""

    def __init__(self, home: Path) -> None:
        self.folder = home / FOLDER

    def path(self, name: str) -> Path:
        """Raises Refused for what is no name."""
        if not _SHAPE.fullmatch(name) or len(name) > LONGEST or name == AUTO:
            raise Refused(
                f"{one_line(name, 80)!r} cannot be a template's name. It has 1 to {LONGEST} of a-z, 0-9 "
                f"and - between them, and is not {AUTO!r}."
            )
        return self.folder / f"{name}.json"

    async def read(self, name: str) -> Template:
        """Raises Missing, or Corrupt for a file that is not as it was written."""
        return await asyncio.to_thread(self._read, self.path(name))

    async def all(self) -> tuple[list[Template], list[str]]:
        """By name, and a sentence about each file that cannot be used."""
        return await asyncio.to_thread(self._all)

    async def made_from(self, sessions: Collection[SessionId]) -> list[str]:
        """The names of those that were."""
        return [each.name for each in (await self.all())[0] if each.session in sessions]

    async def add(self, template: Template) -> None:
        """Raises Conflict if there is one of that name."""
        await asyncio.to_thread(self._add, template)

    async def delete(self, name: str) -> None:
        """Removes the file, sound or not. Raises Missing."""
        await asyncio.to_thread(self._delete, self.path(name))

    async def rate(self, name: str, effect: float | None) -> None:
        """By how much it was measured to help."""
        await self.change(name, lambda each: replace(each, effect=effect))

    async def count(self, name: str, session: SessionId, begun: datetime | None = None) -> None:
        """The session began with it. Told again it changes nothing, and neither if the template has been made
        since it was `begun`: then it had another one of that name."""

        def counted(template: Template) -> Template:
            if session in template.uses or (begun and begun < template.created):
                return template
            return replace(template, uses=(*template.uses, session))

        await self.change(name, counted)

    async def change(self, name: str, change: Callable[[Template], Template]) -> None:
        """Raises Missing or Corrupt, and what `change` raises."""
        await asyncio.to_thread(self._change, self.path(name), change)

    def _all(self) -> tuple[list[Template], list[str]]:
        found: list[Template] = []
        faults: list[str] = []
        for name in self.names():
            try:
                found.append(self._read(self.path(name)))
            except Missing:
                continue  # deleted meanwhile
            except HoneError as error:
                faults.append(str(error))
        return found, faults

    def names(self) -> list[str]:
        """Of all files, sound or not."""
        try:
            return sorted(
                each.removesuffix(".json") for each in os.listdir(self.folder) if each[-5:] == ".json"
            )
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be read: {error.strerror}.") from error

    def _read(self, path: Path) -> Template:
        try:
            with open_file(path) as file:
                data = file.read(LARGEST + 1)
        except FileNotFoundError:
            raise Missing(f"There is no template {path.stem}. See hone templates list.") from None
        except OSError as error:
            raise Corrupt(f"{path} cannot be read ({error.strerror}). It is left as it is.") from error
        try:
            return unfiled(data, path.stem)
        except ValueError as error:
            raise Corrupt(
                f"{path} cannot be used: {error}. It is left as it is; put back what was there, or remove it "
                f"with hone templates delete {path.stem}."
            ) from error

    def _add(self, template: Template) -> None:
        path = self.path(template.name)
        with self._locked():
            if os.path.lexists(path):
                raise Conflict(f"There is a template {template.name} already. Choose another name.")
            self._write(path, template)

    def _delete(self, path: Path) -> None:
        with self._locked():
            try:
                path.unlink()
            except FileNotFoundError:
                raise Missing(f"There is no template {path.stem}.") from None
            except OSError as error:
                raise StoreError(f"{path} cannot be removed: {error.strerror}.") from error
            settle(path)

    def _change(self, path: Path, change: Callable[[Template], Template]) -> None:
        with self._locked():
            before = self._read(path)
            after = change(before)
            if after != before:
                self._write(path, after)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, in whatever process."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = acquire(self.folder / ".lock")
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be written: {error.strerror}.") from error
        try:
            yield
        finally:
            release(handle)

    def _write(self, path: Path, template: Template) -> None:
        try:
            write(path, filed(template))
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}. It is as it was.") from error
