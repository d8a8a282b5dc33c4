"""What a tool brings is worth what the place is worth it came from."""

import asyncio
from pathlib import Path

import pytest

from hone.core.messages import ToolCall
from hone.core.tool import Outcome
from hone.core.trust import Trust
from hone.runtime.trust import Folders, OwnersList
from hone.tools.wrappers import Labelled
from tests.tools.calls import EMPTY, Puppet


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    folders = Folders(OwnersList(tmp_path / "home" / "trusted.json"))
    for name in ("mine", "mine/inner", "theirs"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "theirs" / "back").symlink_to(tmp_path / "mine")
    folders.trust(tmp_path / "mine")
    return folders


@pytest.mark.parametrize(
    ("arguments", "trust"),
    [
        ("{}", Trust.LOCAL),
        ('{"path": "."}', Trust.LOCAL),
        ('{"path": "a.txt"}', Trust.LOCAL),
        ('{"path": "inner/../a.txt"}', Trust.LOCAL),
        ('{"path": "../mine/a.txt"}', Trust.LOCAL),
        ('{"path": "../theirs/a.txt"}', Trust.FOREIGN),
        ('{"path": "link/a.txt"}', Trust.FOREIGN),
        ('{"path": "link/back/a.txt"}', Trust.LOCAL),
        ('{"path": "../mine2/a.txt"}', Trust.FOREIGN),
        ('{"path": "/etc/hosts"}', Trust.FOREIGN),
        ('{"path": "~/x"}', Trust.FOREIGN),
        ('{"path": "a\\u0000b"}', Trust.FOREIGN),
        ('{"path": 5}', Trust.FOREIGN),
        ("[]", Trust.FOREIGN),
        ("{", Trust.FOREIGN),
    ],
)
def test_the_label_follows_where_the_path_really_leads(
    folders: Folders, tmp_path: Path, arguments: str, trust: Trust
) -> None:
    tool = Labelled(Puppet(lambda _: Outcome("data", trust=Trust.OWNER)), tmp_path / "mine", folders.label)
    assert asyncio.run(tool.run(ToolCall("1", "puppet", arguments), EMPTY)).trust is trust


def test_a_folder_that_is_forgotten_is_foreign_again_and_a_list_that_cannot_be_read_trusts_nothing(
    folders: Folders, tmp_path: Path
) -> None:
    assert folders.trusts(tmp_path / "mine" / "inner")
    folders.forget(tmp_path / "mine")
    assert not folders.trusts(tmp_path / "mine")
    folders.trust(tmp_path / "mine")
    file = tmp_path / "home" / "trusted.json"
    assert file.stat().st_mode & 0o777 == 0o600
    for nonsense in ("", "{", "5", '[["/"]]', "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")):
        file.write_text(nonsense)
        assert folders.label(tmp_path / "mine") is Trust.FOREIGN
