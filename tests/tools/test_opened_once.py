"""A path is opened once: what is checked and labeled is what is read and written."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hone.core.tool import Outcome, Tool
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.work import Work
from hone.files.documents import FileDocuments
from hone.files.opening import find_path
from hone.runtime.trust import FolderLabels, Folders
from hone.tools.files import file_tools
from hone.tools.search import search_tool
from tests.allowed import permissions
from tests.rig import context
from tests.tier import Figures, Tier
from tests.tools.calls import called

INSIDE, OUTSIDE, SECRET = "inside-words", "outside-words", "home-words"
SWAPPER = Path(__file__).with_name("swapper.py")


@dataclass
class Den:
    """A trusted folder, a folder beside it, and a home, each with files of the same names."""

    root: Path

    def __post_init__(self) -> None:
        for name, words in (("work", INSIDE), ("beside", OUTSIDE), ("home", SECRET)):
            for place in (self.root / name, self.root / name / "sub"):
                place.mkdir(parents=True, exist_ok=True)
                for file in ("note.txt", "USER.md"):
                    (place / file).write_text(f"{words}\nmarker\n")
        work = self.work
        (work / "link").symlink_to(self.root / "beside" / "sub")
        (work / "home-link").symlink_to(self.root / "home")
        (work / "file-link").symlink_to(self.root / "beside" / "note.txt")
        (work / "home-file").symlink_to(self.root / "home" / "USER.md")
        (work / "other").mkdir()
        (work / "other" / "note.txt").write_text(f"{INSIDE}\nmarker\n")
        (work / "USER.md").write_text(f"{INSIDE}\nmarker\n")

    @property
    def work(self) -> Path:
        return self.root / "work"

    def tools(self) -> dict[str, Tool]:
        folders = Folders.of(FileDocuments(self.root / "lists"))
        folders.trust(self.work)
        work = Work(FolderLabels(folders))
        return {each.spec.name: each for each in (*file_tools(self.work, work), search_tool(self.work, work))}

    def call(self, tool: Tool, **arguments: object) -> Outcome:
        asked = permissions(self.work, self.root / "home")
        return asyncio.run(tool.run(called(tool, **arguments), replace(context(), permissions=asked)))

    def changed(self) -> list[str]:
        """What outside the working folder is no longer as it was."""
        found = []
        for name, words in (("beside", OUTSIDE), ("home", SECRET)):
            files = [path for path in sorted((self.root / name).rglob("*")) if path.is_file()]
            found += [str(path) for path in files if path.read_text() != f"{words}\nmarker\n"]
        return found


@contextmanager
def swapping(folder: Path, *pairs: str) -> Iterator[None]:
    command = [sys.executable, "-I", str(SWAPPER), str(folder), *pairs]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"swapping\n"
        try:
            yield
        finally:
            process.kill()


PLACES = ("sub/note.txt", "note.txt", "USER.md", "other/USER.md", "sub/new/deep.txt", "sub")
CALLS = ("read_file", "write_file", "patch", "search_files")


def arguments(name: str, path: str) -> dict[str, object]:
    match name:
        case "write_file":
            return {"path": path, "content": f"{INSIDE}\nmarker\n"}
        case "patch":
            return {"path": path, "find": "marker", "replace": "marker "}
        case "search_files":
            return {"path": path, "pattern": "words"}
    return {"path": path}


@pytest.mark.skipif(sys.platform != "linux", reason="exchanging two names needs Linux")
def test_no_swapped_link_leads_a_tool_out_of_the_folder(tmp_path: Path, tier: Tier, figures: Figures) -> None:
    den = Den(tmp_path)
    tools = den.tools()
    pairs = ("sub", "link", "other", "home-link", "note.txt", "file-link", "USER.md", "home-file")
    tried = followed = mislabeled = leaked = 0
    with swapping(den.work, *pairs):
        for draw in tier.draws(short=250, full=10_000):
            name, path = draw.random.choice(CALLS), draw.random.choice(PLACES)
            outcome = den.call(tools[name], **arguments(name, path))
            tried += 1
            followed += OUTSIDE in outcome.text
            mislabeled += OUTSIDE in outcome.text and outcome.trust is not Trust.FOREIGN
            leaked += SECRET in outcome.text
    note = f"links swapped under tools: {followed:,} results from outside, {mislabeled} of them mislabeled"
    figures.tally(tried, got_in=len(den.changed()) + mislabeled + leaked, note=note)
    assert followed > 0, "the swapping must be noticed"
    assert (den.changed(), mislabeled, leaked) == ([], 0, 0)


@pytest.mark.parametrize(
    ("path", "trust"),
    [
        ("note.txt", Trust.LOCAL),
        ("sub/../note.txt", Trust.LOCAL),
        ("../work/note.txt", Trust.LOCAL),
        ("../beside/note.txt", Trust.FOREIGN),
        ("link/note.txt", Trust.FOREIGN),
        ("file-link", Trust.FOREIGN),
        ("link/../../work/note.txt", Trust.LOCAL),
        ("../beside/none.txt", Trust.FOREIGN),
        ("note.tx", Trust.LOCAL),
        ("unlike-any-other", Trust.AGENT),
        ("home-file", Trust.AGENT),
        ("../home/USER.md", Trust.AGENT),
        ("a\0b", Trust.AGENT),
        ("note.txt/x", Trust.AGENT),
    ],
)
def test_a_result_is_labeled_by_the_file_it_came_from(tmp_path: Path, path: str, trust: Trust) -> None:
    den = Den(tmp_path)
    outcome = den.call(den.tools()["read_file"], path=path)
    assert outcome.trust is trust, outcome.text


@pytest.mark.parametrize("path", ["file-link", "link/note.txt", "link/new/deep.txt", "../beside/note.txt"])
def test_a_write_through_a_link_asks_about_where_it_leads(tmp_path: Path, path: str) -> None:
    den = Den(tmp_path)
    outcome = den.call(den.tools()["write_file"], path=path, content="x")
    assert "is outside the working folder" in outcome.text
    assert den.changed() == []
    assert not (den.root / "beside/sub/new").exists()


def test_a_file_that_changes_while_the_owner_is_asked_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("old")
    with find_path(tmp_path, "note") as place:
        (tmp_path / "note").write_text("the owner's")
        with pytest.raises(OSError, match="changed meanwhile"):
            place.write(b"new")
    assert (tmp_path / "note").read_text() == "the owner's"
