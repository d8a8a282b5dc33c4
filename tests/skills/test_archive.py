"""D8: of archives that enemies pack, nothing is written outside, nothing runs, and each is named."""

import re
import shutil
from pathlib import Path

import pytest

from hone.cli.main import perform
from hone.core.errors import Refused
from hone.knowledge.skills.archive import open_archive
from hone.knowledge.skills.facts import digest_files
from hone.knowledge.skills.source_tree import pick
from tests.conftest import Figures
from tests.skills.parcels import ABROAD, ENEMIES, HONEST, tarred, zipped


def lying(*places: Path) -> set[str]:
    return {str(each) for place in places for each in place.rglob("*")}


@pytest.mark.parametrize(
    "pack", [zipped, tarred, lambda files: tarred(files, packed=False)], ids=["zip", "tar.gz", "tar"]
)
@pytest.mark.parametrize("under", ["", "./", "tide-tables-1.0/", "a/b/c/"])
def test_an_honest_archive_gives_its_files_to_the_byte(tmp_path: Path, pack: object, under: str) -> None:
    more = {"README.md": b"for people", ".hidden": b"x"}
    path = tmp_path / "skill.archive"
    path.write_bytes(pack({f"{under}{name}": data for name, data in {**HONEST, **more}.items()}))  # type: ignore[operator]
    parcel = pick(open_archive(path))
    assert (parcel.name, parcel.files) == ("tide-tables", HONEST)
    assert parcel.left == (".hidden", "README.md")
    assert pick(open_archive(path), name="sea-tables").name == "sea-tables"


def test_one_of_several_is_chosen_by_its_folder_and_the_others_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    others = {f"skills/other/{name}": data for name, data in HONEST.items()}
    whole = {f"skills/tide-tables/{name}": data for name, data in HONEST.items()}
    path.write_bytes(zipped({**others, **whole, "big.bin": bytes(2**20 + 1)}))
    assert pick(open_archive(path), "skills/tide-tables/").files == HONEST
    for wrong in ("skills", "nowhere", "../skills/tide-tables", "skills/tide-tables/references"):
        with pytest.raises(Refused, match="is no skill in there"):
            pick(open_archive(path), wrong)


def test_of_hostile_archives_none_writes_outside_none_runs_and_each_is_named(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    figures: Figures,
) -> None:
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    canary, unnamed, outside, ran = tmp_path / "inside" / "CANARY", [], 0, 0
    for number, (name, enemy) in enumerate(ENEMIES.items()):
        path = tmp_path / f"enemy-{number}"
        path.write_bytes(enemy.make())
        before = lying(tmp_path, home)
        code = perform(["--home", str(home), "skills", "install", str(path), "--yes"])
        said = "".join(capsys.readouterr())
        new = lying(tmp_path, home) - before
        outside += ABROAD.exists() or any(not each.startswith(str(home)) for each in new)
        ran += canary.exists()
        assert (code != 0) is enemy.refused, (name, said)
        if enemy.refused:
            assert not (home / "skills").exists(), (name, new)
        else:
            assert perform(["--home", str(home), "skills", "uninstall", "tide-tables"]) == 0
            capsys.readouterr()
            shutil.rmtree(home / "skills", ignore_errors=True)
        if not re.search(enemy.told if "|" in enemy.told else re.escape(enemy.told), said):
            unnamed.append(f"{name}: {said}")
    figures(f"{len(ENEMIES)} hostile archives: {outside} wrote outside, {ran} ran, {len(unnamed)} not named")
    assert (outside, ran, unnamed) == (0, 0, [])


def test_the_digest_stands_for_every_path_and_every_byte() -> None:
    whole = digest_files(HONEST)
    assert digest_files({**HONEST, "@pinned": b"1"}) == whole
    assert digest_files(dict(reversed(HONEST.items()))) == whole
    others = [
        {**HONEST, "SKILL.md": HONEST["SKILL.md"] + b" "},
        {**HONEST, "references/more.md": b""},
        {path.replace("ports", "havens"): data for path, data in HONEST.items()},
        {path: data for path, data in HONEST.items() if path != "scripts/next.sh"},
    ]
    assert len({whole, *map(digest_files, others)}) == len(others) + 1
