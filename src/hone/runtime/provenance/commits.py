"""Tell the owner's commits from those of Hone's own commands.

The position of a repository is recorded around every command. If it has changed at the next check, and no
command of any Hone process was running, the owner has committed, and the commits are trusted.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from hone.core.fingerprints import runs
from hone.core.messages import digest
from hone.core.regex import regex
from hone.files.repository import Commit, Repository
from hone.runtime.provenance.recording import TaintOrigin, decode, is_prose, taint_object
from hone.runtime.provenance.view import TaintViews, name
from hone.runtime.trust import Folders
from hone.stores.tainted import TaintedText, TaintStore, TrustedContent

WALK = 5_000
"""The most commits to check."""
SPARE = 64
"""How many known commits to check beyond the last unknown one: some have a wrong date."""
OBJECTS, BYTES = 3_000, 8 * 2**20
"""How many objects of one command keep their text, and their bytes."""
_LOOSE = regex(r"objects/([0-9a-f]{2})/([0-9a-f]{38})")


class RefSnapshot(Struct, frozen=True):
    """The position of a repository before a command."""

    repository: Repository
    refs: Mapping[str, str]


class Commits:
    """`is_busy` tells whether a command of another window is running in a folder."""

    def __init__(
        self, store: TaintStore, views: TaintViews, folders: Folders, is_busy: Callable[[Path, int], bool]
    ) -> None:
        self._store = store
        self._views = views
        self._folders = folders
        self._is_busy = is_busy

    def settle(self, path: Path, own: int = 0) -> bool:
        """Trust what the owner has committed since the last check, unless a command other than `own` is
        running. Tell whether anything became trusted."""
        repository = Repository.find(path) if self._store.exists else None
        if repository is None:
            return False
        key, head = name(repository.folder), repository.head()
        known = self._store.head(key)
        if known == head or (known is not None and self._is_busy(repository.top, own)):
            return False
        contents = [*self._committed(repository, known, head)] if known and head else []
        if contents:
            self._store.trust(contents)
        self._store.set_head(key, head)
        self._views.changed()
        return bool(contents)

    def adopt(self, path: Path) -> None:
        """Treat what was committed since the last check as Hone's own."""
        repository = Repository.find(path)
        if repository is None:
            return
        key, head = name(repository.folder), repository.head()
        known = self._store.head(key)
        self._store.set_head(key, head, find_commits(repository, {head}, {known}) if known else ())

    def begin(self, folder: Path, own: int) -> RefSnapshot | None:
        """Record the position before a command."""
        repository = Repository.find(folder)
        if repository is None:
            return None
        self.settle(folder, own)
        return RefSnapshot(repository, repository.refs())

    def end(
        self, snapshot: RefSnapshot, changed: Iterable[str], origin: TaintOrigin | None
    ) -> list[TaintedText]:
        """Compare after a command, given what it changed in the repository's folder. Return what it added to
        Git, if its words are tainted."""
        repository, after = snapshot.repository, snapshot.repository.refs()
        known = frozenset(snapshot.refs.values())
        tips = frozenset(after.values()) - known
        made = find_commits(repository, tips, known)
        key = name(repository.folder)
        if after.get("HEAD", "") != self._store.head(key) or made:
            self._store.set_head(key, after.get("HEAD", ""), made)
        if origin is None:
            return []
        found = {name: name.encode() for name in after if name not in snapshot.refs and is_prose(name)}
        for id, data in (*_given(repository, tips, made), *_loose(repository, changed)):
            if len(found) >= OBJECTS or sum(map(len, found.values())) + len(data) > BYTES:
                break
            found[id] = data
        return [taint_object(repository.top, data, origin) for data in found.values()]

    def _committed(self, repository: Repository, known: str, head: str) -> Iterator[TrustedContent]:
        root = self._folders.root(repository.top)
        if root is None:
            return
        view = self._views.get(root)
        own = self._store.own_commits(name(repository.folder))
        for id, commit in find_commits(repository, {head}, {known}).items():
            for path, blob in repository.changes(commit) if id not in own else ():
                place = name(repository.top / path)
                found = repository.read(blob) if place in view.paths or blob in view.blobs else None
                if found:
                    units = runs(decode(found.data))
                    yield TrustedContent(digest(found.data), place, "committed", name(root), units)


def find_commits(repository: Repository, tips: Iterable[str], known: Iterable[str]) -> dict[str, Commit]:
    """Return the commits that lead to the tips but not to what is known. Committers' clocks may differ."""
    found: dict[str, Commit] = {}
    old: set[str] = {*known}
    queue: list[tuple[int, str]] = []

    def push(id: str) -> None:
        commit = found.get(id) or repository.commit(id)
        if commit:
            found[id] = commit
            heapq.heappush(queue, (-commit.at, id))

    for id in {*tips} | old:
        push(id)
    spare = SPARE
    for _ in range(WALK):
        spare = SPARE if any(id not in old for _, id in queue) else spare - 1
        if not queue or not spare:
            break
        _, id = heapq.heappop(queue)
        for parent in found[id].parents:
            is_news = id in old and parent not in old
            if is_news:
                old.add(parent)
            if is_news or parent not in found:
                push(parent)
    return {id: commit for id, commit in found.items() if id not in old}


def _given(
    repository: Repository, tips: Iterable[str], made: Mapping[str, Commit]
) -> Iterator[tuple[str, bytes]]:
    """Yield messages and contents added by commits, tags and stashes."""
    for id in tips:
        found = repository.read(id)
        if found and found.kind in ("tag", "blob"):
            yield id, found.data
    for id, commit in made.items():
        yield id, commit.message.encode()
        for _, blob in repository.changes(commit):
            content = repository.read(blob)
            if content:
                yield blob, content.data


def _loose(repository: Repository, changed: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for path in changed:
        match = _LOOSE.search(path)
        found = repository.read(match[1] + match[2]) if match else None
        if match and found and found.kind != "tree":
            yield match[1] + match[2], found.data
