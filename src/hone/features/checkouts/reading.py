"""Read the files of a checkout. Links are not followed, and anything but a file is reported."""

from collections.abc import Iterable, Iterator, Mapping

from hone.core.errors import HoneError, StoreError
from hone.core.ledger import MEMORY, USER, Target, skill
from hone.core.visible import visible
from hone.features.checkouts.values import LocalFile, LocalFolder
from hone.files.tree import FileKind, FileTree, FoundFile
from hone.knowledge import places
from hone.knowledge.file_sync import list_files
from hone.knowledge.skills.naming import check_name

MOST = 100_000
"""Files of all skills together."""
PROJECTS = "projects"
_PATIENCE = "Close it there and try again."


def read_folder(tree: FileTree, known: Mapping[str, Target]) -> LocalFolder:
    """Read a folder. `known` are the places of known files; anything else may be new. Raises StoreError if
    the folder cannot be read."""
    found: dict[Target, dict[str, LocalFile]] = {}
    faulty: set[Target] = set()
    problems: list[str] = []
    wanted = {places.JOURNAL: MEMORY, places.PROFILE: USER, **known}
    wanted |= dict(_find_new(tree, wanted, problems))
    for place, target in sorted(wanted.items()):
        try:
            seen = tree.look(place)
        except StoreError as error:
            faulty.add(target)
            problems.append(str(error))
            continue
        if seen and seen.busy:
            faulty.add(target)
            problems.append(f"{place} is being written by another program. {_PATIENCE}")
        elif seen:
            found.setdefault(target, {})[place] = LocalFile(seen.data, seen.file)
    return LocalFolder(found, frozenset(faulty), tuple(problems))


def _find_new(
    tree: FileTree, known: Mapping[str, Target], problems: list[str]
) -> Iterator[tuple[str, Target]]:
    """Yield files of unknown skills, and note what cannot be one."""
    folders: dict[str, list[FoundFile]] = {}
    for each in tree.listing(places.SKILLS, most=MOST):
        if not each.path.startswith(f"{places.ARCHIVE}/") and each.path not in known:
            folders.setdefault(places.skill_folder(each.path), []).append(each)
    for folder, listing in folders.items():
        name = folder.rpartition("/")[2]
        loose = [each for each in listing if each.path == folder]
        if loose:
            problems.append(f"{visible(folder)} is a {loose[0].kind} and is not used; a skill is a folder.")
            continue
        try:
            target = skill(check_name(name))
        except HoneError as error:
            problems.append(f"{visible(folder)}: {error}")
            continue
        problems += _name_strangers(listing)
        yield from ((path, target) for path in list_files(listing, folder))
    for each in tree.listing(PROJECTS, most=MOST):
        if each.path not in known and each.path.endswith(f"/{places.JOURNAL}"):
            problems.append(
                f"{visible(each.path)} belongs to no project that is known, and was left alone. Add the "
                "first entry in the project's folder: hone memory add TEXT --to project"
            )


def _name_strangers(listing: Iterable[FoundFile]) -> Iterator[str]:
    for each in listing:
        if each.kind is not FileKind.FILE:
            what = "has a name that no file of a skill can have" if each.kind is FileKind.OTHER else ""
            yield f"{visible(each.path)} {what or f'is a {each.kind}'} and is not used."
