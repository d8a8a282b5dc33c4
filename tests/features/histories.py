"""Random histories of a folder: what tools, commands and the user do to its files, and rewinds in between.

`Oracle` says what the folder must look like after a rewind. It knows nothing of watches, stores and git: it
compares the whole folder before and after each deed.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

State = tuple[str, int, bytes]
"""Kind, mode and content; of a link, its target."""
Tree = dict[str, State]
FOLDER, FILE, LINK = "folder", "file", "link"

NAMES = ("a", "b.txt", "d", "d/a", "d/ü", "d/e", "d/e/f", "d/e/g", "h/i", "h/x.log", "build/o", "new\nline")


@dataclass(frozen=True)
class Deed:
    """Something done to a file. A deed that is not possible does nothing, like a command that fails."""

    kind: str
    path: str
    other: str = ""
    content: bytes = b""


@dataclass(frozen=True)
class Op:
    """`who` is tool, command, user, commit, turn, rewind or redo. `back`: how many turns to rewind."""

    who: str
    deeds: tuple[Deed, ...] = ()
    back: int = 0


contents = st.sampled_from([b"", b"one\n", b"two\n", b"three\r\n", b"\x00\xff\x00", b"x" * 5_000])
paths = st.sampled_from(NAMES)
deeds = st.builds(
    Deed,
    st.sampled_from(
        ["write", "write", "write", "append", "delete", "rename", "rename", "folder", "mode", "link", "swap"]
    ),
    paths,
    paths,
    contents,
)
writes = st.builds(Deed, st.just("write"), paths, st.just(""), contents)
several = st.lists(deeds, min_size=1, max_size=4).map(tuple)
ops = st.one_of(
    st.builds(Op, st.just("tool"), st.tuples(writes)),
    st.builds(Op, st.just("command"), several),
    st.builds(Op, st.just("user"), several),
    st.just(Op("turn")),
    st.builds(Op, st.just("rewind"), st.just(()), st.integers(0, 4)),
    st.sampled_from([Op("redo"), Op("turn"), Op("commit")]),
)
histories = st.lists(ops, min_size=4, max_size=16)


def do(root: Path, deed: Deed) -> None:
    path, other = root / deed.path, root / deed.other
    with suppress(OSError, shutil.Error):
        match deed.kind:
            case "write" | "append":
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "ab" if deed.kind == "append" else "wb") as file:
                    file.write(deed.content)
            case "delete":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "rename":
                other.parent.mkdir(parents=True, exist_ok=True)
                path.rename(other)
            case "folder":
                path.mkdir(parents=True)
            case "mode":
                if path.is_file() and not path.is_symlink():
                    path.chmod(path.stat().st_mode ^ 0o110)
            case "link":
                path.unlink(missing_ok=True)
                path.symlink_to(deed.other)
            case "swap":  # a file in the place of a folder, or the other way round
                if path.is_dir():
                    shutil.rmtree(path)
                    path.write_bytes(deed.content)
                else:
                    path.unlink()
                    path.mkdir()
                    (path / "in").write_bytes(deed.content)


def survey(root: Path) -> Tree:
    """All that lies in the folder, without git's own."""
    return {path.relative_to(root).as_posix(): _state(path) for path in _walk(root)}


def _walk(root: Path) -> Iterator[Path]:
    for path in root.iterdir():
        if path.name != ".git":
            yield path
            if path.is_dir() and not path.is_symlink():
                yield from _walk(path)


def _state(path: Path) -> State:
    status = path.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return LINK, mode, os.fsencode(os.readlink(path))
    return (FOLDER, mode, b"") if path.is_dir() else (FILE, mode, path.read_bytes())


@dataclass
class Event:
    """A change that a tool or a command made."""

    turn: int
    path: str
    before: State | None
    after: State | None
    active: bool = True


@dataclass
class Undone:
    """What a rewind did to one path."""

    path: str
    before: State | None
    after: State | None
    events: list[Event]


@dataclass
class Oracle:
    """What tools did, and what the folder must be after a rewind. `ignores`: git's ignored files are left out
    of what commands do."""

    ignores: bool = False
    events: list[Event] = field(default_factory=list)
    rewinds: list[list[Undone]] = field(default_factory=list)

    def note(self, turn: int, before: Tree, after: Tree, *, command: bool) -> None:
        for path in sorted(before.keys() | after.keys()):
            old, new = before.get(path), after.get(path)
            if old == new or (command and self.ignores and is_ignored(path)):
                continue
            if old and new and old[0] == new[0] == FOLDER:
                continue  # nobody records the mode of a folder alone
            if old and new and FOLDER in (old[0], new[0]):
                self.events += [Event(turn, path, old, None), Event(turn, path, None, new)]
            else:
                self.events.append(Event(turn, path, old, new))

    def rewind(self, turn: int, tree: Tree) -> Tree:
        """Return the folder as it must be when all from this turn on is taken back."""
        paths = dict.fromkeys(each.path for each in self.events if each.active and each.turn >= turn)
        found = [self._trace(path, turn, tree) for path in paths]
        result, done = apply(tree, [step for step in found if step.events])
        for step in done:
            for event in step.events:
                event.active = False
        if done:
            self.rewinds.append(done)
        return result

    def redo(self, tree: Tree) -> Tree | None:
        """Return the folder as it must be when the last rewind is taken back; None if there is none."""
        if not self.rewinds:
            return None
        last = self.rewinds.pop()
        back = [Undone(each.path, each.after, each.before, each.events) for each in last]
        result, done = apply(tree, [each for each in back if tree.get(each.path) == each.before])
        for step in done:
            for event in step.events:
                event.active = True
        return result

    def _trace(self, path: str, turn: int, tree: Tree) -> Undone:
        state, undone = tree.get(path), list[Event]()
        own = [each for each in self.events if each.path == path and each.active and each.turn >= turn]
        for event in reversed(own):
            if state != event.after:
                break
            state = event.before
            undone.append(event)
        return Undone(path, tree.get(path), state, undone)


def is_ignored(path: str) -> bool:
    return any(name.endswith(".log") or name == "build" for name in path.split("/"))


def apply(tree: Tree, steps: Iterable[Undone]) -> tuple[Tree, list[Undone]]:
    """Do the steps to a folder that exists only here. Returns it, and the steps that could be done."""
    tree, every = dict(tree), list(steps)
    acting = [step for step in every if step.before != step.after]
    deepest = sorted((step for step in acting if step.after is None), key=lambda s: -s.path.count("/"))
    highest = sorted((step for step in acting if step.after is not None), key=lambda s: s.path.count("/"))
    done = [step for step in every if step.before == step.after]
    for step in (*deepest, *highest):
        parent = step.path.rpartition("/")[0]
        if parent and tree.get(parent, ("", 0, b""))[0] != FOLDER:
            continue
        was_folder = step.before is not None and step.before[0] == FOLDER
        if was_folder and any(path.startswith(f"{step.path}/") for path in tree):
            continue
        if step.after is None:
            del tree[step.path]
        else:
            tree[step.path] = step.after
        done.append(step)
    return tree, done
