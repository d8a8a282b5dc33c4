"""Record what was last pulled: in a file of the checkout, or in the database for the home.

The home has no such file: the database remembers which files were published there or pulled.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct, field

from hone.core.errors import Missing, Refused, StoreError
from hone.core.ledger import ChangeId, ChangeQuery, Ledger, PublishedFile, Target
from hone.core.visible import one_line
from hone.features.checkouts.values import BaseFile
from hone.files.atomic import write

MANIFEST = ".hone-checkout.json"
ANCHORS = 5
"""Changes by which a checkout recognizes its ledger, in whatever database that is."""
VERSION = 1

Written = Mapping[tuple[Target, str], tuple[str, PublishedFile] | None]
"""The digest of the new base of each place, and the file there; None if it has no base any more."""


class Manifest(Struct, frozen=True):
    """Where a checkout was pulled from, and the base of each place. `anchors` are times of changes by id."""

    version: int = VERSION
    database: str = ""
    anchors: dict[str, str] = field(default_factory=dict)
    files: dict[str, BaseFile] = field(default_factory=dict)


class Bases(Protocol):
    """What was last pulled or pushed."""

    async def load(self, targets: set[Target]) -> Mapping[str, BaseFile]:
        """Return the bases by place. `targets` are those that are known or on disk."""
        ...

    async def save(self, written: Written) -> None:
        """Record the current files of the checkout."""
        ...


class ManifestBases:
    """The bases of a folder, in a file of it. Raises Refused for a checkout of another ledger."""

    def __init__(self, folder: Path, ledger: Ledger, database: str) -> None:
        self._path = folder / MANIFEST
        self._ledger = ledger
        self._database = database

    async def load(self, targets: set[Target]) -> Mapping[str, BaseFile]:
        known = read_manifest(self._path)
        if known is None:
            return {}
        if not await self._is_ours(known):
            raise Refused(
                f"{one_line(str(self._path.parent), 300)} is a checkout of other data, from "
                f"{one_line(known.database, 200)}. Nothing was changed. Use another folder: hone pull FOLDER"
            )
        return known.files

    async def save(self, written: Written) -> None:
        known = read_manifest(self._path)
        files = dict(known.files) if known else {}
        for (target, place), each in written.items():
            files.pop(place, None)
            if each is not None:
                files[place] = BaseFile(target, each[0])
        newest = await self._ledger.entries(ChangeQuery(limit=ANCHORS))
        anchors = {str(entry.id): _stamp(entry.at) for entry in newest}
        made = Manifest(VERSION, self._database, anchors, dict(sorted(files.items())))
        try:
            write(self._path, json.dumps(msgspec.to_builtins(made), indent=1).encode())
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}.") from error

    async def _is_ours(self, known: Manifest) -> bool:
        """Tell whether this ledger has the changes of the last pull. If it has none of them, as before the
        first one, the address decides."""
        found = False
        for id, at in known.anchors.items():
            try:
                entry = await self._ledger.entry(ChangeId(int(id)))
            except (Missing, ValueError):
                continue
            if _stamp(entry.at) != at:
                return False
            found = True
        return found or known.database == self._database


def read_manifest(path: Path) -> Manifest | None:
    """Return the manifest, None if there is none. Raises Refused if it cannot be used."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refused(f"{one_line(str(path), 300)} cannot be read: {error.strerror}.") from error
    try:
        known = msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise Refused(
            f"{one_line(str(path), 300)} is damaged, so nobody knows what you edited. Pull into a new folder "
            "and bring your edits over."
        ) from error
    if known.version != VERSION:
        raise Refused(f"{one_line(str(path), 300)} was written by a newer version of Hone.")
    return known


def _stamp(at: datetime) -> str:
    return at.isoformat()


class HomeBases:
    """The bases of the home: the files that were published to it or pulled into it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def load(self, targets: set[Target]) -> Mapping[str, BaseFile]:
        found = await self._ledger.published_files(targets)
        return {
            place: BaseFile(target, each.digest)
            for (target, place), each in found.items()
            if not place.endswith("/")
        }

    async def save(self, written: Written) -> None:
        """Save the bases. Anything but the base itself counts as edited, also after a move to SQLite."""
        noted = {key: None if each is None else _note(*each) for key, each in written.items()}
        if noted:
            await self._ledger.mark_published(noted)


def _note(base: str, lying: PublishedFile) -> PublishedFile:
    return lying if lying.digest == base else PublishedFile(base, 0, 0)
