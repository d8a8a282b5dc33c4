"""A folder becomes a skill whole and as it is, or not at all."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hone.core.errors import Refused
from hone.knowledge.skills.document import parse
from hone.knowledge.skills.install import plan_folder
from hone.knowledge.skills.paths import FILE_BYTES, FILES

DOCUMENT = (
    "---\nname: release-notes\ndescription: Notes for readers. Use before a release.\n---\n\nRead the log.\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    for path, text in {
        "SKILL.md": DOCUMENT,
        "references/tone.md": "Plain words.\n",
        "scripts/collect.sh": "#!/bin/sh\ngit log\n",
        "assets/logo.bin": "\0\1",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def link_file(folder: Path) -> None:
    (folder / "references" / "passwd.md").symlink_to("/etc/passwd")


def link_folder(folder: Path) -> None:
    (folder / "templates").symlink_to("/etc")


def link_document(folder: Path) -> None:
    (folder / "SKILL.md").rename(folder.parent / "elsewhere.md")
    (folder / "SKILL.md").symlink_to(folder.parent / "elsewhere.md")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "scripts" / "pipe")


def listen(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as ear:
        ear.bind(os.path.relpath(folder / "assets" / "s"))


def grow(folder: Path) -> None:
    (folder / "assets" / "logo.bin").write_bytes(bytes(FILE_BYTES + 1))


def multiply(folder: Path) -> None:
    for number in range(FILES):
        (folder / "references" / f"{number}.md").write_text("x")


def bloat(folder: Path) -> None:
    for number in range(11):
        (folder / "assets" / f"{number}.bin").write_bytes(bytes(FILE_BYTES))


def deepen(folder: Path) -> None:
    (folder / "references" / "a/b/c/d/e").mkdir(parents=True)


def hide(folder: Path) -> None:
    (folder / "references" / "to\u200bne.md").write_text("x")


def pretend(folder: Path) -> None:
    (folder / "@origin").write_text("bundled")


def nest(folder: Path) -> None:
    (folder / "references" / "SKILL.md").write_text(DOCUMENT)


def lose(folder: Path) -> None:
    (folder / "SKILL.md").unlink()


def misname(folder: Path) -> None:
    (folder / "SKILL.md").write_text(DOCUMENT.replace("release-notes", "Release Notes"))


def garble(folder: Path) -> None:
    (folder / "SKILL.md").write_bytes(b"---\nname: a\xff\n---\n")


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (link_file, "references/passwd.md is a link"),
        (link_folder, "templates is a link"),
        (link_document, "SKILL.md is a link"),
        (pipe, "scripts/pipe is no plain file"),
        (listen, "assets/s is no plain file"),
        (grow, "assets/logo.bin has more than"),
        (multiply, "at most 200 files"),
        (bloat, "10,485,760 bytes; this folder has more"),
        (deepen, "lies too deep"),
        (hide, "cannot be a file of a skill"),
        (pretend, "@origin"),
        (nest, "SKILL.md is written as the skill's document"),
        (lose, "has no SKILL.md"),
        (misname, "cannot be the name of a skill"),
        (garble, "SKILL.md is not text"),
    ],
)
def test_a_folder_that_is_no_skill_is_refused_with_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None], complaint: str
) -> None:
    monkeypatch.chdir(folder)  # the name of a socket must be short
    spoil(folder)
    with pytest.raises(Refused, match=complaint):
        plan_folder(folder)


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".", "UPPER", "a--b", "x" * 65])
def test_no_name_leads_elsewhere(folder: Path, name: str) -> None:
    if name:
        with pytest.raises(Refused, match="cannot be the name of a skill"):
            plan_folder(folder, name)
    else:
        assert plan_folder(folder, name).name == "release-notes"


def test_what_is_packed_is_what_lies_there_without_what_is_for_people(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").symlink_to("/etc/passwd")
    for name in ("LICENSE.txt", "README.md", ".DS_Store"):
        (folder / name).write_text("x")
    (folder / "scripts" / "__pycache__").mkdir()
    parcel = plan_folder(folder)
    assert (parcel.name, parcel.description) == ("release-notes", "Notes for readers. Use before a release.")
    assert parcel.files == {
        path: (folder / path).read_bytes()
        for path in ("SKILL.md", "references/tone.md", "scripts/collect.sh", "assets/logo.bin")
    }
    assert parcel.left == (".DS_Store", ".git", "LICENSE.txt", "README.md", "scripts/__pycache__")


@pytest.mark.parametrize("quoted", ["release-notes", '"release-notes"', "'release-notes' # mine"])
def test_another_name_is_written_into_the_document_and_nothing_else_is(folder: Path, quoted: str) -> None:
    text = DOCUMENT.replace("name: release-notes", f"name: {quoted}") + "\nname: stays\n"
    (folder / "SKILL.md").write_text(text)
    parcel = plan_folder(folder, "changelogs")
    written = parcel.files["SKILL.md"].decode()
    assert parcel.name == parse(written).name == "changelogs"
    assert written == text.replace(f"name: {quoted}", "name: changelogs")


def test_a_folder_reached_through_a_link_is_the_users_choice(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    assert plan_folder(folder.parent / "link") == plan_folder(folder)


@pytest.mark.rights
def test_an_unreadable_file_is_an_error_and_not_left_out(folder: Path) -> None:
    (folder / "references" / "tone.md").chmod(0)
    if os.access(folder / "references" / "tone.md", os.R_OK):
        pytest.skip("this user can read everything")
    with pytest.raises(Refused, match=r"tone.md cannot be read"):
        plan_folder(folder)
