"""Another process on the same home: counts under the lock, holds it, dies, fills a disk, swaps in a link."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from hone.core.errors import StoreError
from hone.files.atomic import draft
from hone.files.tree import FileTree

THREADS = 2


def count(disk: FileTree, times: str) -> None:
    def add() -> None:
        for _ in range(int(times)):
            with disk.lock():
                found = disk.read("skills/sum/number")
                disk.write("skills/sum/number", b"%d" % (int(found[0]) + 1 if found else 1))

    threads = [Thread(target=add) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hold(disk: FileTree) -> None:
    with disk.lock():
        print("ready", flush=True)
        sys.stdin.read()


def write(disk: FileTree, path: str) -> None:
    disk.write(path, b"new")


def die(_: FileTree, folder: str) -> None:
    """When all is written, and nothing has taken its place yet."""
    with draft(os.open(folder, os.O_RDONLY)) as (file, _name):
        file.write(b"half")
        file.flush()
        print("ready", flush=True)
        sys.stdin.read()


def told(deed: Callable[[], object]) -> str:
    try:
        return f"done: {deed()}"
    except StoreError as error:
        return str(error)


def fill(disk: FileTree, root: str) -> None:
    """In a mount namespace of its own, so that nothing of it is left. Prints what each deed was told."""
    mount = ["mount", "-t", "tmpfs", "-o"]
    subprocess.run([*mount, "size=256k", "tmpfs", root], check=True)
    disk.write("MEMORY.md", b"old")
    disk.write("skills/a/SKILL.md", b"old")
    print(told(lambda: disk.write("MEMORY.md", b"x" * 300_000)))
    print(told(lambda: disk.write("skills/b/references/c.md", b"x" * 300_000)))
    subprocess.run([*mount, "remount,ro", "tmpfs", root], check=True)
    print(told(lambda: disk.write("MEMORY.md", b"new")))
    print(told(lambda: disk.write("skills/b/SKILL.md", b"new")))
    print(told(lambda: disk.remove("MEMORY.md")))
    print(told(lambda: disk.lock().__enter__()))
    print(sorted(str(path.relative_to(root)) for path in Path(root).rglob("*")))
    print([found and found[0] for found in map(disk.read, ("MEMORY.md", "skills/a/SKILL.md"))])


def swap(disk: FileTree, path: str, outside: str) -> None:
    """A link takes the file's place when all was looked at, right before it is opened."""
    place = Path(sys.argv[2], path)

    def swapped(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and arguments[0] == place.name and not place.is_symlink():
            place.unlink()
            place.symlink_to(outside)

    sys.addaudithook(swapped)
    print(told(lambda: disk.read(path)))


if __name__ == "__main__":
    deeds: tuple[Callable[..., None], ...] = (count, hold, write, die, fill, swap)
    deed = {each.__name__: each for each in deeds}[sys.argv[1]]
    deed(FileTree(Path(sys.argv[2])), *sys.argv[3:])
