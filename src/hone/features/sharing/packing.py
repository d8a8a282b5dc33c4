"""Pack a skill into an archive of the open format: one folder in a zip file, the same bytes every time."""

import io
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from hone.core.errors import Refused
from hone.files.atomic import write

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can store."""
SUFFIXES = (".skill", ".zip")
_UNIX = 3


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """Return the archive. It depends on the files alone: not on time, owner, or the order of a folder."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for path, data in sorted(files.items()):
            member = zipfile.ZipInfo(f"{name}/{path}", EPOCH)
            runs = path.startswith("scripts/") and data.startswith(b"#!")
            member.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            member.create_system = _UNIX
            archive.writestr(member, data)
    return made.getvalue()


def save(file: Path, data: bytes) -> None:
    """Write an archive, unless the file exists already. Raises Refused or OSError."""
    if file.suffix not in SUFFIXES:
        raise Refused(f"{file.name} must end with {' or '.join(SUFFIXES)}.")
    try:
        write(file, data, over=False)
    except FileExistsError:
        raise Refused(f"{file} is there already. Choose another name, or delete it first.") from None
