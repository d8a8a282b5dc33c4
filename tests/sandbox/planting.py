"""Tries every way to change sensitive files, inside the sandbox. Handed to the interpreter as a text.

Its arguments are the targets, relative to the folder. It prints how many of its attempts met no refusal; what
became of them is judged outside, after the command.
"""

import contextlib
import os
import shutil
import sys

EVIL = "planted\n"
NUMBER = iter(range(100_000))


def fresh() -> str:
    path = f"evil-{next(NUMBER)}"
    with open(path, "x") as file:
        file.write(EVIL)
    os.chmod(path, 0o755)
    return path


def above(target: str) -> str:
    folder = os.path.dirname(target)
    if folder:
        os.makedirs(folder, exist_ok=True)
    return folder


def write(target: str) -> None:
    above(target)
    with open(target, "w") as file:
        file.write(EVIL)


def append(target: str) -> None:
    above(target)
    with open(target, "a") as file:
        file.write(EVIL)


def replace(target: str) -> None:
    above(target)
    os.replace(fresh(), target)


def link(target: str) -> None:
    above(target)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    os.symlink(os.path.abspath(fresh()), target)


def hard_link(target: str) -> None:
    above(target)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    os.link(fresh(), target)


def remove(target: str) -> None:
    os.unlink(target)


def empty(target: str) -> None:
    os.truncate(target, 0)


def make_runnable(target: str) -> None:
    os.chmod(target, 0o777)
    os.chmod(os.path.abspath(target), 0o777)


def move_away(target: str) -> None:
    os.rename(target, f"moved-{next(NUMBER)}")


def put_a_folder_there(target: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)
    os.makedirs(f"{target}/inner")
    os.replace(fresh(), f"{target}/inner/file")


def move_the_folder_above(target: str) -> None:
    """Takes the whole folder away and puts another one in its place."""
    top = target.split("/", maxsplit=1)[0]
    if "/" not in target:
        raise PermissionError("the working folder itself")
    with contextlib.suppress(FileNotFoundError):
        os.rename(top, f"moved-{next(NUMBER)}")
    write(target)


def link_the_folder_above(target: str) -> None:
    folder = os.path.dirname(target)
    if not folder:
        raise PermissionError("the working folder itself")
    elsewhere = f"elsewhere-{next(NUMBER)}"
    os.mkdir(elsewhere)
    os.replace(fresh(), f"{elsewhere}/{os.path.basename(target)}")
    if os.path.lexists(folder):
        os.rename(folder, f"moved-{next(NUMBER)}")
    os.symlink(os.path.abspath(elsewhere), folder)


def delete_the_folder_above(target: str) -> None:
    shutil.rmtree(os.path.dirname(target) or target)


def through_an_open_folder(target: str) -> None:
    above(target)
    folder = os.open(os.path.dirname(target) or ".", os.O_RDONLY)
    file = os.open(os.path.basename(target), os.O_WRONLY | os.O_CREAT, 0o755, dir_fd=folder)
    os.write(file, EVIL.encode())


WAYS = [
    write,
    append,
    replace,
    link,
    hard_link,
    remove,
    empty,
    make_runnable,
    move_away,
    put_a_folder_there,
    move_the_folder_above,
    link_the_folder_above,
    through_an_open_folder,
    delete_the_folder_above,
]


def main() -> None:
    way, *targets = sys.argv[1:]
    done = 0
    for each in WAYS if way == "all" else [WAYS[int(way)]]:
        for target in targets:
            try:
                each(target)
                done += 1
            except OSError:
                continue
    print(done)


if __name__ == "__main__":
    main()
