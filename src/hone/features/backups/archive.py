"""Write a backup file, and read one that anybody may have modified.

A backup is a tar.gz file that any tar can unpack. It is read header by header here: only regular files, in
the order of the manifest, none larger than the manifest says.
"""

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedWriter, BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from hone.core.errors import Corrupt, StoreError
from hone.core.visible import visible
from hone.features.backups.values import BackupManifest, BackupMember
from hone.files.atomic import open_file, sync

MANIFEST, BELOW = "manifest.json", "home/"
LEVEL = 3
"""The compression level: a higher one takes longer and saves little."""
BLOCK = tarfile.BLOCKSIZE
PIECE = 2**20
LARGEST_MANIFEST = 64 * 2**20
TRAILER = 2 * tarfile.RECORDSIZE
"""The most zero bytes that may follow the last member."""

Report = Callable[[str, int, int], None]
"""Called with the current step, the bytes done, and the total."""
OpenSink = Callable[[BackupMember], BinaryIO | None]
"""Opens the destination of a member's bytes; None if they are only checked."""


def write_archive(manifest: BackupManifest, source: Path, file: BufferedWriter, report: Report) -> None:
    """Write the manifest and its members, which are below `source`. Return when the file is on disk. Raises
    OSError."""
    done = 0
    with (
        gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as archive,
    ):
        data = msgspec.json.encode(manifest)
        archive.addfile(_header(MANIFEST, len(data)), BytesIO(data))
        for member in manifest.members:
            with open_file(source / member.path) as content:
                archive.addfile(_header(BELOW + member.path, member.size, member.executable), content)
            done += member.size
            report("Compressing", done, manifest.size)
    sync(file)


def _header(name: str, size: int, executable: bool = False) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o700 if executable else 0o600
    return info


@contextmanager
def open_archive(file: Path) -> Iterator["BackupArchive"]:
    """Open a backup and read its manifest. Raises StoreError if it cannot be read, Corrupt if it is damaged
    or no backup, even while its members are read."""
    name = visible(str(file))
    try:
        raw = open_file(file, follow=True)
    except IsADirectoryError as error:
        raise StoreError(f"{name} is a folder, and a backup is a file.") from error
    except OSError as error:
        raise StoreError(f"{name} cannot be read: {error.strerror}. Nothing was changed.") from error
    try:
        with raw, gzip.GzipFile(fileobj=raw) as packed:
            yield BackupArchive(packed)
    except _Unreadable as error:
        raise StoreError(f"{name} cannot be read: {error}. Nothing was changed.") from error
    except (EOFError, tarfile.TarError, _Unfit) as error:
        why = _explain(error)
        raise Corrupt(f"{name} is damaged or is not a backup of Hone: {why}. Nothing was changed.") from error


class _Unreadable(Exception):
    """The disk cannot read the file."""


class _Unfit(Exception):
    """The file is not in the format of `write_archive`."""


def _explain(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "it ends too early"
    if isinstance(error, tarfile.TarError):
        return "a header in it cannot be read"
    return str(error)


def _read_manifest(data: bytes) -> BackupManifest:
    try:
        return msgspec.json.decode(data, type=BackupManifest)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _Unfit("its manifest cannot be read") from error


class BackupArchive:
    """A backup that is read once, from its beginning to its end."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        name, size = self._next()
        if name != MANIFEST or size > LARGEST_MANIFEST:
            raise _Unfit("it does not begin with a manifest")
        self.manifest = _read_manifest(self._exactly(size))
        self._skip_padding(size)

    def read(self, open_sink: OpenSink, report: Report) -> None:
        """Read all members and compare each with the manifest."""
        done = 0
        for member in self.manifest.members:
            if self._next() != (BELOW + member.path, member.size):
                raise _Unfit(f"{visible(member.path)} is not where it belongs")
            sink = open_sink(member)
            try:
                found = self._copy(member.size, sink)
            finally:
                if sink:
                    sink.close()
            if found != member.sha256:
                raise _Unfit(f"{visible(member.path)} is not what was written")
            done += member.size
            report("Checking", done, self.manifest.size)
        self._end()

    def _copy(self, size: int, sink: BinaryIO | None) -> str:
        """Copy a member. Return the SHA-256 of its bytes."""
        found, left = hashlib.sha256(), size
        while left:
            data = self._exactly(min(left, PIECE))
            found.update(data)
            left -= len(data)
            if sink:
                sink.write(data)
        self._skip_padding(size)
        return found.hexdigest()

    def _next(self) -> tuple[str, int]:
        """Return name and size of the next file. A long name is in another header before it."""
        header = self._header()
        if header.type == tarfile.GNUTYPE_LONGNAME:
            if not 0 < header.size <= 2 * PIECE // BLOCK:
                raise _Unfit("a name is too long")
            name = self._exactly(header.size)
            self._skip_padding(header.size)
            header = self._header()
            header.name = os.fsdecode(name.rstrip(b"\0"))
        if header.type != tarfile.REGTYPE or header.size < 0:
            raise _Unfit(f"{visible(header.name)} is not a regular file")
        return header.name, header.size

    def _header(self) -> tarfile.TarInfo:
        return tarfile.TarInfo.frombuf(self._exactly(BLOCK), "utf-8", "surrogateescape")

    def _end(self) -> None:
        """Read to the end, where gzip compares its checksum."""
        left = TRAILER
        while data := self._read(left + 1):
            left -= len(data)
            if left < 0 or data.strip(b"\0"):
                raise _Unfit("something follows its last member")

    def _skip_padding(self, size: int) -> None:
        self._exactly(-size % BLOCK)

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            data = self._read(size)
            if not data:
                raise EOFError
            pieces.append(data)
            size -= len(data)
        return b"".join(pieces)

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except (gzip.BadGzipFile, zlib.error) as error:
            raise _Unfit("its compressed data is not what was written") from error
        except OSError as error:
            raise _Unreadable(error.strerror) from error


def hash_file(path: Path) -> tuple[int, str]:
    """Return the size of a file and its SHA-256. Raises OSError."""
    found, size = hashlib.sha256(), 0
    with open_file(path) as file:
        while data := file.read(PIECE):
            found.update(data)
            size += len(data)
    return size, found.hexdigest()


def check_archive(file: Path, report: Report) -> None:
    """Read a whole backup and compare every member with the manifest. Raises as `open_archive` does."""
    with open_archive(file) as archive:
        archive.read(lambda _: None, report)
