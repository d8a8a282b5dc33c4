"""Files from elsewhere, listed by name. The skill is chosen first; only its files are read."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.skill import DOCUMENT
from hone.core.visible import one_line
from hone.knowledge.skills.install import InstallPlan, is_left, plan_install
from hone.knowledge.skills.paths import BYTES, FILE_BYTES, FILES

SHOWN = 20


class SourceTree(Struct, frozen=True):
    """`sizes` of plain files by path, `faults` of everything else: why it cannot be a file of a skill."""

    sizes: Mapping[str, int]
    faults: Mapping[str, str]
    read: Callable[[Sequence[str]], Mapping[str, bytes]]


def pick(tree: SourceTree, folder: str = "", name: str = "") -> InstallPlan:
    """Return the skill in `folder`, or the only one there is. Raises Refused with advice."""
    root = _root(tree, folder.strip("/"))
    paths = {path.removeprefix(root): path for path in (*tree.sizes, *tree.faults) if path.startswith(root)}
    left = tuple(sorted(path for path in paths if is_left(path)))
    wanted = {path: paths[path] for path in sorted(paths) if path not in left}
    _sound(tree, wanted)
    data = tree.read(tuple(wanted.values()))
    return plan_install({path: data[whole] for path, whole in wanted.items()}, left, name)


def _root(tree: SourceTree, folder: str) -> str:
    """Return the prefix of the skill's paths."""
    documents = [path for path in (*tree.sizes, *tree.faults) if path.rpartition("/")[2] == DOCUMENT]
    roots = sorted({path.removesuffix(DOCUMENT) for path in documents})
    if folder:
        if f"{folder}/" not in roots:
            raise Refused(f"{one_line(folder, 200)} is no skill in there. {_named(roots)}")
        return f"{folder}/"
    if not roots:
        raise Refused(f"There is no {DOCUMENT} in there, so it is not a skill.")
    outer = [root for root in roots if not any(root.startswith(other) for other in roots if other != root)]
    if len(outer) > 1:
        raise Refused(f"There are several skills in there; choose one with --path. {_named(outer)}")
    return outer[0]


def _named(roots: Sequence[str]) -> str:
    shown = ", ".join(one_line(root.rstrip("/") or ".", 100) for root in roots[:SHOWN])
    more = f" and {len(roots) - SHOWN} more" if len(roots) > SHOWN else ""
    return f"There are: {shown}{more}." if roots else "There is none."


def _sound(tree: SourceTree, wanted: Mapping[str, str]) -> None:
    """Check the tree before a byte is read."""
    faults = {path: tree.faults[whole] for path, whole in wanted.items() if whole in tree.faults}
    sizes = {path: tree.sizes[whole] for path, whole in wanted.items() if whole in tree.sizes}
    most = f"is larger than {FILE_BYTES:,} bytes"
    faults |= {path: most for path, size in sizes.items() if size > FILE_BYTES}
    refuse(f"{path} {fault}" for path, fault in sorted(faults.items()))
    if len(sizes) > FILES or sum(sizes.values()) > BYTES:
        raise Refused(f"A skill has at most {FILES} files and {BYTES:,} bytes; this one has more.")


def refuse(faults: Iterable[str]) -> None:
    """Raise Refused with all faults, if there are any."""
    found = [one_line(fault, 300) for fault in faults]
    if found:
        more = f"\n  and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        listed = "".join(f"\n  {fault}" for fault in found[:SHOWN])
        raise Refused(f"Nothing was installed. A skill holds plain files only:{listed}{more}")


def find_fault(path: str) -> str:
    """Return why no honest archive has such a path; empty if one may."""
    if "\0" in path or "\\" in path or any(ord(letter) < 32 for letter in path):
        return "has signs in its name that are no part of a path"
    if path.startswith("/") or path[1:2] == ":":
        return "names a place outside"
    if ".." in path.split("/"):
        return "leads outside"
    return ""
