"""F6, as a user meets it: `hone backup`, `hone restore`, what they print, and how they refuse."""

import json
from pathlib import Path

import pytest

from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from tests.cli.driving import Ended, environment, hone, terminal

KEY = "sk-proj-4fX9q2LmZ8wR7tY3uV6bN1cD5eG0hJ"


class Owner:
    """Somebody with a home, who types commands."""

    def __init__(self, stage: FakeProvider, root: Path) -> None:
        self.stage, self.root = stage, root
        (root / "work").mkdir(parents=True)

    async def type(self, *arguments: str, home: str = "home") -> Ended:
        env = environment(self.root / home, self.stage)
        return await hone(*arguments, env=env, folder=self.root / "work")

    async def said(self, *arguments: str, home: str = "home") -> list[str]:
        ended = await self.type(*arguments, home=home)
        assert (ended.code, ended.err) == (0, ""), ended
        return ended.out.splitlines()


async def test_a_home_is_backed_up_restored_elsewhere_and_goes_on(tmp_path: Path) -> None:
    async with FakeProvider(echo) as stage:
        owner, file = Owner(stage, tmp_path / "owner"), str(tmp_path / "owner" / "a.tgz")
        session = json.loads((await owner.type("run", "-q", "--json", "remember the plumber")).out)["session"]
        await owner.said("memory", "add", "The plumber is called Ada.")
        await owner.said("trust")
        (owner.root / "home" / "keys.json").write_text(f'{{"openai": "{KEY}"}}')

        wrote, *left = await owner.said("backup", file)
        assert wrote.startswith(f"Wrote {file}: ")
        assert wrote.endswith(" compressed. Read back and checked.")
        assert left == ["Not in the backup:", "  keys (keys.json)"]
        assert (await owner.said("backup", "--verify", file))[0].startswith(f"{file} is sound: ")

        restored = await owner.said("restore", file, home="other")
        assert restored[0].startswith(f"Restored {owner.root / 'other'} from a backup of ")
        assert "  rules: trusted.json" in restored
        assert restored[-1] == f"To restore that, too: hone restore {file} --replace --with-rules"
        deep = await owner.said("doctor", "--deep", home="other")
        assert all(line.startswith("✓ ") for line in deep)
        assert "The plumber is called Ada." in "\n".join(await owner.said("memory", "show", home="other"))
        found = await owner.said("sessions", "search", "plumber", home="other")
        assert session[:6] in "\n".join(found)
        answer = await owner.type("run", "-q", "-r", session, "and now?", home="other")
        assert (answer.code, answer.out) == (0, "A scripted model heard: and now?\n")

        again = await owner.said("restore", file, "--replace", "--with-rules", home="other")
        assert again[1].startswith(f"The old home is kept as {owner.root / 'other'}-before-restore-")
        assert not [line for line in again if "Not restored" in line]
        assert (owner.root / "other" / "trusted.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("backup", "work"), "is a folder. Name a file in it"),
        (("backup", "missing/a.tgz"), "cannot be written: No such file or directory"),
        (("restore", "missing.tgz"), "cannot be read: No such file or directory"),
        (("restore", "text"), "is damaged or is not a backup of Hone"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    async with FakeProvider(echo) as stage:
        owner = Owner(stage, tmp_path / "owner")
        (owner.root / "home").mkdir()
        (owner.root / "work" / "text").write_text("not a backup")
        (owner.root / "work" / "work").mkdir()
        ended = await owner.type(*arguments)
    assert (ended.code, ended.out) == (1, "")
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1
    assert {each.name for each in owner.root.iterdir()} == {"home", "work"}


async def test_a_backup_works_although_the_settings_are_broken_and_without_a_home_says_so(
    tmp_path: Path,
) -> None:
    async with FakeProvider(echo) as stage:
        owner = Owner(stage, tmp_path / "owner")
        none = await owner.type("backup", "a.tgz")
        assert none.code == 1
        assert "so there is nothing to back up" in none.err
        await owner.type("run", "-q", "hello")
        (owner.root / "home" / "hone.toml").write_text("model = \n")
        ended = await owner.type("backup", "a.tgz")
        assert ended.code == 0
        assert "hone.toml" in ended.err
        restored = await owner.type("restore", "a.tgz", home="other")
        assert "  settings: hone.toml" in restored.out.splitlines()
        assert (await owner.type("sessions", "list", home="other")).code == 0


async def test_at_a_terminal_what_is_under_way_is_shown_and_gone_at_the_end(tmp_path: Path) -> None:
    async with FakeProvider(echo) as stage:
        owner = Owner(stage, tmp_path / "owner")
        await owner.type("run", "-q", "hello")
        env = environment(owner.root / "home", stage)
        async with terminal("backup", "a.tgz", env=env, folder=owner.root / "work") as screen:
            await screen.until(lambda: "Read back and checked." in screen.text, "the end")
            assert await screen.ended() == 0
            assert "Copying hone.db … 100%" in screen.data.decode()
            assert "…" not in screen.text
