"""Read git's own files without running git: where a repository is, and what its configuration would run."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from hone.core.regex import regex

LONGEST = 256 * 1024
"""The most bytes of a configuration to read."""
_HEADER = regex(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_ENTRY = regex(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")

_SAFE = {
    "core": """
        repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf
        eol safecrlf sparsecheckout sparsecheckoutcone sharedrepository abbrev quotepath compression
    """,
    "remote": """
        url pushurl fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall promisor
        partialclonefilter followremotehead
    """,
    "branch": "remote merge rebase pushremote description autosetupmerge autosetuprebase sort",
    "submodule": "url active branch update ignore fetchrecursesubmodules",
    "extensions": """
        objectformat compatobjectformat partialclone worktreeconfig noop refstorage relativeworktrees
        preciousobjects
    """,
    "user": "name email",
    "init": "defaultbranch",
    "pull": "rebase ff",
    "push": "default autosetupremote followtags",
    "fetch": "prune prunetags parallel",
    "merge": "conflictstyle ff",
    "rebase": "autosquash autostash",
    "receive": "denycurrentbranch denynonfastforwards denydeletes",
    "gc": "auto",
    "commit": "gpgsign",
    "tag": "gpgsign",
    "advice": "detachedhead",
    "color": "ui",
}
_HARMLESS = frozenset(f"{section}.{key}" for section, keys in _SAFE.items() for key in keys.split())
"""Keys that neither make git run something nor read anything else. A list of the others would never be
complete."""


class Setting(Struct, frozen=True):
    """`key` is section and name in lowercase, without the quoted part between them."""

    key: str
    value: str


def read_configuration(text: str) -> list[Setting]:
    """Raise ValueError for what git might read differently. Git itself never writes such text."""
    found: list[Setting] = []
    section = ""
    for line in text.removeprefix("\ufeff").split("\n"):
        rest = line.strip()
        while header := _HEADER.match(rest):
            section = header[1].partition(".")[0].lower()
            rest = rest[header.end() :].strip()
        if not rest or rest[0] in "#;":
            continue
        entry = _ENTRY.fullmatch(rest)
        if not (section and entry) or rest.endswith("\\"):
            raise ValueError(f"a line that is no setting: {rest[:80]}")
        found.append(Setting(f"{section}.{entry[1].lower()}", _unquoted(entry[2] or "")))
    return found


def _unquoted(value: str) -> str:
    plain = value.strip()
    if len(plain) > 1 and plain[0] == plain[-1] == '"':
        return plain[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return plain


def harmless_part(text: str, place: Path, root: Path) -> str:
    """Return a configuration without what makes git run something or leads it outside the root. `place` is
    its path. The text is unchanged if it contains no such thing."""
    kept: list[str] = []
    section = ""
    for line in text.split("\n"):
        header = _last_header(line)
        if _is_harmless_line(line, section, place, root):
            kept.append(line)
        elif header:
            kept.append(header)  # the lines below belong to it
        section = header or section
    return "\n".join(kept)


def _is_harmless_line(line: str, section: str, place: Path, root: Path) -> bool:
    try:
        settings = read_configuration(f"{section}\n{line}")
    except ValueError:
        return False
    return all(_is_harmless(each, place, root) for each in settings)


def _last_header(line: str) -> str:
    """Return the header for the section of the next line, if this line has one."""
    rest, found = line.removeprefix("\ufeff").strip(), ""
    while header := _HEADER.match(rest):
        found, rest = header[0], rest[header.end() :].strip()
    return found


def _is_harmless(setting: Setting, place: Path, root: Path) -> bool:
    if setting.key == "core.worktree":  # of a submodule
        return Path(os.path.normpath(place.parent / setting.value)).is_relative_to(root)
    # "!" begins a command, and an address with "::" runs the program named before it.
    return setting.key in _HARMLESS and not setting.value.startswith("!") and "::" not in setting.value


def linked_places(text: str, git: Path, work: Path) -> Iterator[Path]:
    """Yield the hooks and further configuration that a configuration names, wherever they are."""
    try:
        settings = read_configuration(text)
    except ValueError:
        return
    for each in settings:
        if each.key == "core.hookspath":
            yield Path(os.path.normpath(work / os.path.expanduser(each.value)))
        elif each.key in ("include.path", "includeif.path"):
            yield Path(os.path.normpath(git / os.path.expanduser(each.value)))


def pointed_folder(text: str, place: Path) -> Path | None:
    """Return the target of a .git file; None if it is not one."""
    first = text.partition("\n")[0]
    if not first.startswith("gitdir:"):
        return None
    return Path(os.path.normpath(place.parent / first.removeprefix("gitdir:").strip()))


def git_folders_outside(folder: Path) -> Sequence[Path]:
    """Return the git folder of a worktree or submodule that is elsewhere, with the one it shares, if it
    refers to this folder: a stray .git file opens nobody's repository."""
    git = pointed_folder(_text(folder / ".git"), folder / ".git")
    if git is None or not _knows(git, folder):
        return ()
    shared = _text(git / "commondir").strip()
    found = [git, *([Path(os.path.normpath(git / shared))] if shared else ())]
    real = [Path(os.path.realpath(each)) for each in found]
    return [each for each in real if _is_git_folder(each) and not each.is_relative_to(folder)]


def _knows(git: Path, folder: Path) -> bool:
    """Tell whether a git folder refers back: a worktree's names its .git file, a submodule's the work
    tree."""
    try:
        settings = read_configuration(_text(git / "config"))
    except ValueError:
        settings = []
    named = [git / each.value for each in settings if each.key == "core.worktree"]
    back = _text(git / "gitdir").strip()
    named += [(git / back).parent] if back else []
    return any(os.path.realpath(each) == str(folder) for each in named)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _is_git_folder(path: Path) -> bool:
    """Tell whether this is a git folder. A worktree's has no objects of its own."""
    own = os.path.isdir(path / "objects") and os.path.isdir(path / "refs")
    return os.path.isfile(path / "HEAD") and (own or os.path.isfile(path / "commondir"))
