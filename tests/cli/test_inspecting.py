"""`hone skills check` reads no file twice that nobody touched, and sees whatever somebody did."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hone.cli import inspecting
from hone.cli.inspecting import Inspected, inspect_all
from hone.core.clock import ManualClock
from hone.files.tree import FileTree
from hone.knowledge.keeper import Keeper
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger

TEXT = "---\nname: {}\ndescription: A craft.\n---\n\nWork.\n"
NAMES = ["a-craft", "b-craft", "c-craft"]


def put(home: Path) -> None:
    """Skills whose files are older than a tick of any clock."""
    for name in NAMES:
        folder = home / "skills" / name
        (folder / "references").mkdir(parents=True)
        for path, text in (("SKILL.md", TEXT.format(name)), ("references/more.md", "More.\n")):
            (folder / path).write_text(text)
            os.utime(folder / path, (1, 1))


def touch(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, (2, 2))


TOUCHES: dict[str, tuple[Callable[[Path], None], str]] = {
    "nothing": (lambda folder: None, ""),
    "a document": (lambda folder: touch(folder / "SKILL.md", TEXT.format("b-craft") + "Better.\n"), "taken"),
    "a broken document": (lambda folder: touch(folder / "SKILL.md", "no front matter"), "cannot be used"),
    "a support file": (lambda folder: touch(folder / "references/more.md", "Most.\n"), "taken"),
    "a new file": (lambda folder: touch(folder / "references/new.md", "New.\n"), "taken"),
    "a link": (lambda folder: (folder / "assets").symlink_to("/etc"), "is a link and is not used"),
    "a missing file": (lambda folder: (folder / "references/more.md").unlink(), "printed again"),
}


@pytest.mark.parametrize("touched", TOUCHES)
async def test_a_check_looks_closely_at_what_somebody_touched_and_at_nothing_else(
    touched: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closely, said, act = [], list[str](), TOUCHES[touched]
    inspect = inspecting.inspect

    async def count(keeper: Keeper, disk: FileTree, name: str) -> Inspected:
        closely.append(name)
        return await inspect(keeper, disk, name)

    put(home)
    database, disk = Database.open(home / "hone.db"), FileTree(home)
    keeper = Keeper(SqliteLedger(database), disk, ManualClock(), said.append)
    await keeper.adopt(NAMES)
    monkeypatch.setattr(inspecting, "inspect", count)
    act[0](home / "skills" / "b-craft")
    found, others = await inspect_all(keeper, disk)
    assert ([each.name for each in found], others) == (NAMES, [])
    assert closely == (["b-craft"] if act[1] else [])
    told = [*(problem for each in found for problem in each.problems), *said]
    told += ["taken" for each in found if each.taken]
    assert any(act[1] in sentence for sentence in told) if act[1] else not told
    keeper.close()
    await database.close()
