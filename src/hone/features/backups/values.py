"""The manifest of a backup, and the decisions about its members."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from msgspec import Struct

from hone.core.errors import Corrupt, Refused
from hone.core.holding import Backup, Holding

FORMAT = 1
"""The backup format that this Hone writes, and the newest one that it reads."""
SETTINGS = "hone.toml"
LEDGER_FILES = "journal and skills"
"""The holding of files published from the ledger. They are copied while nobody changes them."""
LOCKS = "locks and caches"
PLAIN = "-damaged-"
"""Part of the name of a database that a repair put aside. It is copied unchanged."""
BESIDE_DATABASE = ("-wal", "-shm", "-journal")
LONGEST = 1_000
"""The most bytes of a path below the home."""


class BackupMember(Struct, frozen=True):
    """One file in a backup. `inode` and `modified` are those of the original: the ledger recognizes a
    published file by them."""

    path: str
    size: int
    sha256: str
    holding: str
    executable: bool = False
    inode: int = 0
    modified: int = 0


class BackupManifest(Struct, frozen=True):
    """The content of a backup. `schema` is the version of hone.db, 0 if there was none; `left_out` names what
    was in the home but is not in the backup."""

    format: int
    hone: str
    created: str
    schema: int
    members: tuple[BackupMember, ...]
    left_out: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return sum(member.size for member in self.members)


def find_holding(name: str, holdings: Iterable[Holding]) -> Holding | None:
    """Return the holding of a name in the home; the name of a folder ends with a slash."""
    found = (each for each in holdings for place in each.places if fnmatchcase(name, place))
    return next(found, None)


def top_of(path: str) -> str:
    """Return the name in the home that a path begins with; that of a folder ends with a slash."""
    top, slash, _ = path.partition("/")
    return top + slash


def is_database(path: str) -> bool:
    """Tell whether a file is copied through SQLite, as of one moment, without the files next to it. Hone's
    databases are in the home itself or have the name of their folder. Others, as in a skill, are ordinary
    files."""
    *above, name = path.split("/")
    return name.endswith(".db") and PLAIN not in name and above in ([], [name.removesuffix(".db")])


def is_beside_database(path: str) -> bool:
    return any(is_database(path.removesuffix(each)) for each in BESIDE_DATABASE if path.endswith(each))


def check_manifest(manifest: BackupManifest, schema: int, file: str) -> None:
    """Raise Refused for a backup of a newer Hone, Corrupt for one whose members cannot be files of a home.
    `schema` is the newest version of hone.db that this Hone knows."""
    if manifest.format > FORMAT or manifest.schema > schema:
        raise Refused(
            f"{file} was written by a newer Hone ({manifest.hone}). Update Hone, then restore it; "
            "nothing was changed."
        )
    paths = [member.path for member in manifest.members]
    above = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    for path, times in Counter(paths).items():
        if times > 1 or path in above or not is_path(path):
            raise Corrupt(f"{file} has a member that no backup of Hone has: {path!r:.200}.")
    if any(member.size < 0 for member in manifest.members):
        raise Corrupt(f"{file} has a member of a negative size, which no backup of Hone has.")


def is_path(path: str) -> bool:
    """Tell whether a path names a file below the home, and nothing else."""
    try:
        fits = 0 < len(path.encode()) <= LONGEST
    except UnicodeEncodeError:
        return False
    return fits and path.isprintable() and all(name not in ("", ".", "..") for name in path.split("/"))


def choose_members(
    manifest: BackupManifest, holdings: Sequence[Holding], *, with_rules: bool
) -> tuple[frozenset[str], Mapping[str, list[str]]]:
    """Return the paths to restore, and those to leave out by the name of their holding. This Hone's own table
    decides, never a claim of the manifest. An unknown name belongs to a plugin."""
    chosen: set[str] = set()
    left: dict[str, list[str]] = {}
    for member in manifest.members:
        holding = find_holding(top_of(member.path), holdings)
        policy = holding.backup if holding else Backup.ASKED
        if policy is Backup.KEPT or (policy is Backup.ASKED and with_rules):
            chosen.add(member.path)
        else:
            left.setdefault(holding.name if holding else "files of plugins", []).append(member.path)
    return frozenset(chosen), left
