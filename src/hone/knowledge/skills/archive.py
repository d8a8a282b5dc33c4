"""Read an archive (zip, tar, tar.gz) as a source tree, in memory. Nothing is extracted to disk."""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hone.core.errors import Refused
from hone.core.visible import one_line
from hone.knowledge.skills.paths import FILE_BYTES
from hone.knowledge.skills.source_tree import SourceTree, find_fault, refuse

LARGEST = 64 * 2**20
"""The most bytes of an archive, and of everything unpacked from it."""
MEMBERS = 5_000
_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError),
    *(NotImplementedError, OverflowError, MemoryError, RuntimeError, LookupError),
)
"""What the archive readers raise for invalid bytes."""
_ZIPPED, _GZIPPED = (b"PK\x03\x04", b"PK\x05\x06"), b"\x1f\x8b"
_KINDS = {
    **{tarfile.SYMTYPE: "is a link", tarfile.LNKTYPE: "is a link", tarfile.FIFOTYPE: "is a pipe"},
    **{tarfile.CHRTYPE: "is a device", tarfile.BLKTYPE: "is a device"},
}


def open_archive(path: Path) -> SourceTree:
    """Return the files by name. Raises Refused, listing every member that no honest archive has."""
    if path.stat().st_size > LARGEST:
        raise Refused(f"{one_line(str(path), 200)} is larger than {LARGEST:,} bytes; nothing was installed.")
    with _plainly(path):
        with path.open("rb") as file:
            zipped = file.read(4) in _ZIPPED
        sizes, faults = (_zip if zipped else _tar)(path)

    def read(paths: Sequence[str]) -> Mapping[str, bytes]:
        with _plainly(path):
            return (_unzipped if zipped else _untarred)(path, frozenset(paths))

    return SourceTree(sizes, faults, read)


@contextmanager
def _plainly(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise Refused(
            f"{one_line(str(path), 200)} cannot be read as a zip, tar or tar.gz archive: "
            f"{one_line(str(error) or type(error).__name__, 200)}. Nothing was installed."
        ) from error


Listing = tuple[dict[str, int], dict[str, str]]


def _sorted_out(members: Iterator[tuple[str, int, str]]) -> Listing:
    """Return names, sizes and faults. What only a hostile archive has is refused at once, wherever it is."""
    sizes: dict[str, int] = {}
    faults: dict[str, str] = {}
    wrong: list[str] = []
    for number, (name, size, fault) in enumerate(members, 1):
        if number > MEMBERS:
            raise Refused(f"The archive has more than {MEMBERS:,} members; nothing was installed.")
        path = "/".join(part for part in name.split("/") if part not in ("", "."))
        if reason := find_fault(name) or ("is there twice" if path in sizes or path in faults else ""):
            wrong.append(f"{name!r} {reason}")
        elif fault:
            faults[path] = fault
        else:
            sizes[path] = size
    refuse(wrong)
    return sizes, faults


def _zip(path: Path) -> Listing:
    with zipfile.ZipFile(path) as archive:
        return _sorted_out(
            (info.orig_filename, info.file_size, _zip_fault(info))
            for info in archive.infolist()
            if not info.is_dir() or find_fault(info.orig_filename)
        )


def _zip_fault(info: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "is a link"
    if kind not in (0, stat.S_IFREG):
        return "is no plain file"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in a way that is not read here"
    return ""


def _unzipped(path: Path, wanted: frozenset[str]) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            name = "/".join(part for part in info.orig_filename.split("/") if part not in ("", "."))
            if name in wanted:
                with archive.open(info) as file:
                    found[name] = _whole(name, file, info.file_size)
    return found


def _tar(path: Path) -> Listing:
    with _stream(path) as archive:
        return _sorted_out(
            (member.name, member.size, _tar_fault(member))
            for member in archive
            if not member.isdir() or find_fault(member.name)
        )


def _tar_fault(member: tarfile.TarInfo) -> str:
    if member.isreg() and member.sparse is None:
        return ""
    return _KINDS.get(member.type, "is no plain file")


def _untarred(path: Path, wanted: frozenset[str]) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    with _stream(path) as archive:
        for member in archive:
            name = "/".join(part for part in member.name.split("/") if part not in ("", "."))
            file = archive.extractfile(member) if name in wanted and member.isreg() else None
            if file:
                found[name] = _whole(name, file, member.size)
    return found


@contextmanager
def _stream(path: Path) -> Iterator[tarfile.TarFile]:
    """Read from front to end, so that a member's header cannot point anywhere else."""
    with path.open("rb") as raw:
        packed = raw.peek(2)[:2] == _GZIPPED
        file = gzip.GzipFile(fileobj=raw) if packed else raw
        with file, tarfile.open(fileobj=Bounded(file), mode="r|") as archive:
            yield archive


def _whole(name: str, file: IO[bytes], size: int) -> bytes:
    data = file.read(FILE_BYTES + 1)
    if len(data) != size or len(data) > FILE_BYTES:
        raise Refused(f"{one_line(name, 200)} is not as large as the archive says; nothing was installed.")
    return data


class Bounded(io.RawIOBase):
    """A file that raises an error at a point where an honest one would have ended long before."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file
        self._left = LARGEST

    def read(self, size: int = -1) -> bytes:
        most = self._left + 1
        data = self._file.read(most if size < 0 else min(size, most))
        self._left -= len(data)
        if self._left < 0:
            raise Refused(f"The archive unpacks to more than {LARGEST:,} bytes; nothing was installed.")
        return data
