"""Templates as files of the home: made from a session, read with care, and put before a new conversation."""

import asyncio
import fcntl
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hone.core.clock import Clock
from hone.core.errors import Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.messages import Role
from hone.core.ports import Header, Sessions, Stored
from hone.core.template import Template, Work
from hone.core.tool import Toolbox
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.visible import one_line
from hone.policy.screen import screen
from hone.policy.secrets import redact
from hone.policy.templates import MOST, choose, extract, happened, usable
from hone.prompt.examples import seeded
from hone.runtime.filed import filed, unfiled
from hone.skills.similar import words as split
from hone.tools.draft import draft

FOLDER = "templates"
AUTO = "auto"
LONGEST = 64
DESCRIPTION = 200
LARGEST = 4 * 2**20
"""Bytes of a file that is read: no template of ours comes near it."""
_SHAPE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


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
        await asyncio.to_thread(self._change, self.path(name), lambda each: replace(each, effect=effect))

    async def count(self, name: str, session: Header) -> None:
        """The session began with it. Told again, or of a template that was made later, it changes nothing."""

        def counted(template: Template) -> Template:
            if session.id in template.uses or template.created > session.created:
                return template
            return replace(template, uses=(*template.uses, session.id))

        await asyncio.to_thread(self._change, self.path(name), counted)

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
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(path, flags), "rb") as file:
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
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self.folder / ".lock", flags, 0o600)
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _write(self, path: Path, template: Template) -> None:
        try:
            with draft(self.folder, 0o600) as (file, new):
                file.write(filed(template))
                file.flush()
                os.fsync(file.fileno())
                new.replace(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}. It is as it was.") from error


@dataclass(frozen=True, slots=True)
class Wish:
    """What the owner wants of a template; what is left open is found out."""

    name: str = ""
    work: Work | None = None
    most: int = MOST
    description: str = ""
    tags: tuple[str, ...] = ()


async def make(
    templates: Templates, store: Sessions, beginning: str, tools: Toolbox, wish: Wish, clock: Clock
) -> Template:
    """Makes a template of a session and keeps it. Raises Refused if there is nothing to make it of."""
    session = await store.find(beginning)
    stored = await store.load(session)
    lines = [line.transcript.nodes for line in (*await store.earlier(session), stored)]
    surfaces = {name: tool.surface for name, tool in tools.items()}
    work, examples = extract(
        happened(lines),
        surfaces,
        redact,
        lambda text: bool(screen(text).flags),
        work=wish.work,
        most=wish.most,
    )
    if not examples:
        raise Refused(f"Session {session} has no call that succeeded and could be an example.")
    about = one_line(redact(wish.description), DESCRIPTION) or _about(stored)
    taken = await asyncio.to_thread(templates.names)
    name = wish.name or _free(_named(about) or f"{work}-{session[:6]}", taken)
    made = Template(name, work, session, clock.now(), examples, about, wish.tags)
    await templates.add(made)
    return made


def _is_odd(text: str) -> bool:
    return bool(screen(text).flags)


def _about(stored: Stored) -> str:
    """The owner's first words. Nobody else's: they would be said again in Hone's own voice."""
    for node in stored.transcript.nodes:
        if node.message.role is Role.USER and node.trust is Trust.OWNER and node.message.text.strip():
            return one_line(redact(node.message.text), DESCRIPTION)
    return ""


def _named(about: str) -> str:
    """A name out of the first words of a description; nothing where its letters are others."""
    return "-".join(re.findall(r"[a-z0-9]+", about.casefold())[:5])[:40].strip("-") if about.isascii() else ""


def _free(name: str, taken: Collection[str]) -> str:
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in {*taken, AUTO} else next(each for each in numbered if each not in taken)


@dataclass(frozen=True, slots=True)
class Seeding:
    """How a new conversation begins with a template: the one that was named, or the one that fits."""

    templates: Templates
    wanted: str
    clock: Clock

    async def begin(self, words: str, transcript: Transcript, tools: Toolbox) -> tuple[Transcript, str]:
        if self.wanted != AUTO:
            chosen, why = await self.named(tools), ""
        else:
            found, _ = await self.templates.all()
            choice = choose((each for each in _fitting(found, tools)), split(words), split)
            if choice is None:
                return transcript, _none(found)
            chosen, why = choice.template, f" ({choice.why})"
        count = f"{len(chosen.examples)} examples" if len(chosen.examples) > 1 else "1 example"
        line = f"Begins with template {chosen.name}: {count} from an earlier session{why}."
        return seeded(chosen, transcript.root, self.clock.now()), line

    async def named(self, tools: Toolbox) -> Template:
        """Raises Missing, Corrupt, or Refused if none of its tools is here."""
        template = await self.templates.read(self.wanted)
        fit = usable(template, tools)
        if not fit.examples:
            names = ", ".join(sorted({each.tool for each in template.examples}))
            raise Refused(f"Template {self.wanted} shows calls of {names}, and this agent has no such tool.")
        return fit

    async def count(self, template: str, session: Header) -> None:
        await self.templates.count(template, session)


def _fitting(templates: Sequence[Template], tools: Collection[str]) -> Iterator[Template]:
    return (fit for each in templates if (fit := usable(each, tools)).examples)


def _none(found: Sequence[Template]) -> str:
    if found:
        return "No template fits: they show tools that are not here, or were measured to harm."
    return "There is no template yet; hone templates create SESSION makes one."
