"""Keep sensitive places unchanged where no mount can: those that did not exist before a command, and all of
them under a mode that cannot seal.

After a command, new ones are moved to a quarantine folder, and changed ones are restored. A repository that a
command makes is fine, as long as nothing in it makes git run something (see `directives`).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from hone.core.sensitive import GIT
from hone.files.moving import Copy, Kept, copy, read, take_out, write_new
from hone.sandbox.census import DIRECTIVES, Census, Site, Surveyor
from hone.sandbox.directives import correct, is_directive, leads_inside
from hone.sandbox.gitfiles import LONGEST, linked_places

SEALED = 48
"""How many places to seal by mounts; the others are handled as under a mode that cannot seal."""
_FILE = 0o100644


class GuardFinding(Struct, frozen=True):
    """A place that a command changed. It is now `kept` elsewhere, unless there was an `error`."""

    path: str
    reason: str
    kept: str = ""
    error: str = ""


class Seals(Struct, frozen=True):
    """What to seal. A folder around a `firm` one may not be renamed: something refers to it by its path."""

    loose: tuple[Path, ...] = ()
    firm: tuple[Path, ...] = ()


class TreeGuard:
    """Protects one tree that commands write to. `skipped` is not checked; `keep` returns a place in the
    quarantine for a path."""

    def __init__(self, root: Path, skipped: Sequence[Path], keep: Callable[[str], Path]) -> None:
        self.root = str(root)
        self._surveyor = Surveyor(self.root, [str(path) for path in skipped])
        self._keep = keep
        self._before = Census()
        self._sealed: tuple[str, ...] = ()
        self._copies: dict[str, Copy] = {}
        self._made: frozenset[str] = frozenset()
        """Git folders that commands made. They are checked every time, and never sealed."""
        self._clones: frozenset[str] = frozenset()
        """Repositories that commands made as a whole. They may be deleted, so nothing in them is sealed."""
        self._vouched: set[str] = set()
        self._absent: frozenset[str] = frozenset()
        """Targets that something refers to, and that do not exist."""

    def look(self) -> None:
        """Search the tree for the first time, which takes longer than later searches."""
        self._surveyor.look()

    def vouch(self, path: str) -> None:
        """Accept the current content as the owner's. Later changes are reverted to it."""
        self._vouched.add(path)
        self._copies = {place: kept for place, kept in self._copies.items() if not _touches(place, path)}
        kept = copy(self.root, path)
        if kept:
            self._copies[path] = kept

    def begin(self, *, seals: bool, settled: bool) -> Seals:
        """Return what to seal for a command. If nothing else runs (`settled`), everything that exists now is
        the owner's; otherwise what existed at the last check."""
        if settled:
            self._before = self._surveyor.look()
            self._vouched.clear()
            self._copies.clear()
            self._made = frozenset(git for git in self._made if self._is_still_theirs(git))
        targets = [*self._targets()]
        firm = [path for path in targets if os.path.exists(f"{self.root}/{path}")]
        self._absent = frozenset(path for path in targets if not os.path.lexists(f"{self.root}/{path}"))
        places = [*self._places()]
        sealable = [*firm, *(path for path, is_sealable in places if is_sealable)]
        self._sealed = tuple(dict.fromkeys(sealable))[: SEALED if seals else 0]
        for path in (*firm, *(path for path, _ in places)):
            if path not in self._sealed and path not in self._copies:
                kept = copy(self.root, path)
                if kept:
                    self._copies[path] = kept
        paths = {path: Path(self.root, path) for path in self._sealed}
        loose = tuple(path for name, path in paths.items() if name not in firm)
        return Seals(loose, tuple(path for name, path in paths.items() if name in firm))

    def end(self, *, network: bool) -> list[GuardFinding]:
        """Revert what commands did to sensitive places. `network`: whether one of them could download."""
        now = self._surveyor.look()
        self._made |= self._new_folders(now.git, now)
        findings: list[GuardFinding] = []
        for site in sorted(now.sites.values(), key=lambda site: site.path):
            findings += self._judge(site, now, network)
        for path in [*self._copies]:
            findings += self._restore(path, now)
        for path in self._absent:
            if os.path.lexists(f"{self.root}/{path}"):
                findings += self._take_out(path, GIT)
        self._clones |= self._new_folders(now.repositories, now)
        self._before = self._surveyor.look() if findings else now
        return findings

    def _judge(self, site: Site, now: Census, network: bool) -> Iterator[GuardFinding]:
        if not (now.matters(site) or self._before.matters(site)) or self._is_vouched(site):
            return
        is_new = self._is_new(site)
        if is_directive(site, now):
            git = site.path.rpartition("/")[0]
            if is_new or git in self._made:
                for wrong in correct(site, now, self.root):
                    yield from self._take_out(wrong.path, GIT, wrong.text)
        elif is_new and not self._is_accepted(site, now, network):
            yield from self._take_out(site.path, site.reason)

    def _is_new(self, site: Site) -> bool:
        """Tell whether a command put it there. A sealed place can only be replaced by the owner, or by moving
        a folder around it; then it is found again in its new place. An unsealed one is restored anyway."""
        before = self._before.sites.get(site.path)
        if before and (before.inode == site.inode or before.within == site.within):
            return False
        return not any(self._is_same(site, each) for each in self._before.sites.values())

    def _is_same(self, site: Site, before: Site) -> bool:
        """Tell whether a place that was there before is this one, moved and unchanged."""
        if (site.inode, site.reason) != (before.inode, before.reason):
            return False
        if _tail(site.path) != _tail(before.path):
            return False
        kept = self._copies.get(before.path)
        return before.path in self._sealed or _alike(kept, copy(self.root, site.path))

    def _is_accepted(self, site: Site, now: Census, network: bool) -> bool:
        if site.reason == GIT and os.path.basename(site.path) == ".git":
            return not site.is_link and leads_inside(site, now, self.root)
        return self._came_with_repository(site, now, network)

    def _came_with_repository(self, site: Site, now: Census, network: bool) -> bool:
        """Tell whether a command made the whole folder around it as a repository: a clone that was
        downloaded, or a worktree or copy with the same file in the same place."""
        top = _top(site.path, self._new_folders(now.repositories, now))
        if not top or network:
            return bool(top)
        inner, found = site.path[len(top) + 1 :], copy(self.root, site.path)
        earlier = (f"{each}/{inner}" if each else inner for each in {*self._before.repositories, ""})
        same = [path for path in earlier if path in self._before.sites]
        return bool(found) and any(_alike(copy(self.root, path), found) for path in same)

    def _new_folders(self, paths: frozenset[str], now: Census) -> frozenset[str]:
        """Return the folders that did not exist before, under any name."""
        before = self._before.folders
        found = [
            path for path in paths if path not in before or before[path].inode != now.folders[path].inode
        ]
        known = {each.inode for each in before.values()} if found else set()
        return frozenset(path for path in found if now.folders[path].inode not in known)

    def _is_vouched(self, site: Site) -> bool:
        return any(_touches(site.path, path) for path in self._vouched)

    def _is_still_theirs(self, git: str) -> bool:
        """Tell whether a git folder that a command made is as commands may leave it. If not, the owner was
        there: it is the owner's from now on."""
        sites = [site for site in self._before.sites.values() if _git_folder(site) == git]
        return git in self._before.git and not any(
            [*correct(site, self._before, self.root)] for site in sites
        )

    def _places(self) -> Iterator[tuple[str, bool]]:
        """Yield what to protect, upper ones first, and whether it can be sealed."""
        before = self._before
        own = [
            site
            for site in before.sites.values()
            if before.matters(site) and _git_folder(site) not in self._made
        ]
        for site in sorted(own, key=lambda site: (site.path.count("/"), site.path)):
            yield site.path, not site.is_link and not _top(site.path, self._clones)

    def _targets(self) -> Iterator[str]:
        """Yield the targets of sensitive links and of the owner's git settings in the tree."""
        before = self._before
        places = [f"{self.root}/{site.path}" for site in before.sites.values() if site.is_link]
        for git in sorted(before.git - self._made):
            text = (read(self.root, f"{git}/config", LONGEST) or b"").decode("utf-8", "replace")
            folder = Path(self.root, git)
            places += map(str, linked_places(text, folder, folder.parent))
        for real in map(os.path.realpath, places):
            if real.startswith(f"{self.root}/"):
                yield real[len(self.root) + 1 :]

    def _restore(self, path: str, now: Census) -> Iterator[GuardFinding]:
        """Restore a place that was not sealed. What is there instead is kept."""
        before, after = self._copies[path], copy(self.root, path)
        if _alike(before, after) or self._may_be_gone(path, now):
            return
        reason = self._reason(path)
        if not after and after is not None:
            yield GuardFinding(path, reason)
        for place in (*_above(path), path):
            if os.path.lexists(f"{self.root}/{place}") and (
                place == path or _is_in_the_way(self.root, place)
            ):
                yield from self._take_out(place, reason)
        for inner, kept in before.items():  # a folder precedes its contents
            try:
                write_new(self.root, f"{path}/{inner}" if inner else path, kept)
            except OSError as error:
                yield GuardFinding(path, reason, error=error.strerror or str(error))
                return

    def _may_be_gone(self, path: str, now: Census) -> bool:
        """Tell whether it went with a repository that commands made, or was moved with the folder it lies
        in."""
        if os.path.lexists(f"{self.root}/{path}"):
            return False
        clone, before = _top(path, self._clones), self._before.sites.get(path)
        if clone and not os.path.lexists(f"{self.root}/{clone}"):
            return True
        return before is not None and any(self._is_same(site, before) for site in now.sites.values())

    def _reason(self, path: str) -> str:
        site = self._before.sites.get(path)
        return site.reason if site else GIT

    def _take_out(self, path: str, reason: str, text: str = "") -> Iterator[GuardFinding]:
        """Move a place out. Report nothing if it is gone already."""
        try:
            target = self._keep(path)
            take_out(self.root, path, target)
            if text:
                write_new(self.root, path, Kept(_FILE, text.encode("utf-8", "surrogateescape")))
        except FileNotFoundError:
            return
        except OSError as error:
            yield GuardFinding(path, reason, error=error.strerror or str(error))
            return
        yield GuardFinding(path, reason, str(target))


def _git_folder(site: Site) -> str | None:
    """Return the git folder that a site may be a directive of."""
    above, _, name = site.path.rpartition("/")
    return above if name in DIRECTIVES else None


def _tail(path: str) -> str:
    """Return what makes a path sensitive: the names from the first hidden folder on, or else the last one."""
    names = path.split("/")
    first = next((at for at, name in enumerate(names) if name.startswith(".")), len(names) - 1)
    return "/".join(names[first:])


def _top(path: str, repositories: Iterable[str]) -> str:
    """Return the repository around a path; "" if there is none."""
    return next((each for each in repositories if path.startswith(f"{each}/")), "")


def _above(path: str) -> Iterator[str]:
    """Yield the folders on the way to a path, upper ones first."""
    names = path.split("/")
    yield from ("/".join(names[:count]) for count in range(1, len(names)))


def _is_in_the_way(root: str, path: str) -> bool:
    """Tell whether something is where a folder was."""
    place = f"{root}/{path}"
    return os.path.islink(place) or not os.path.isdir(place)


def _alike(one: Copy | None, other: Copy | None) -> bool:
    """Tell whether two copies have the same content. Of the mode, only the executable bit counts."""
    if one is None or other is None or one.keys() != other.keys():
        return False
    return all(
        one[path].data == other[path].data and (one[path].mode ^ other[path].mode) & 0o170111 == 0
        for path in one
    )


def _touches(path: str, other: str) -> bool:
    """Tell whether one of them is inside the other."""
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")
