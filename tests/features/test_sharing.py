"""D1, D8: a skill goes to other agents as it was shown, over nothing a person wrote, and comes back whole."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.errors import Refused
from hone.core.ledger import COPY, SECTION, ChangeId, Target, copy, section, skill
from hone.core.skill import SkillOrigin
from hone.features.sharing.grants import find_grants, strip_grants
from hone.features.sharing.leaks import Leak, find_leaks
from hone.features.sharing.packing import pack
from hone.features.sharing.rendering import find_target, render_folder, render_section
from hone.knowledge import copies
from hone.knowledge.copies import TEXT, Copies, join, split
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.document import parse
from hone.knowledge.skills.folder import Create, WriteFile
from hone.settings import Settings
from tests.cli.driving import environment, hone, terminal
from tests.story.test_cli_import import command

NAME = "tax-letters"
GRANTING = """\
---
name: tax-letters
description: Write letters to the tax office. Use when a letter comes.
allowed-tools: Bash(git:*) Read
metadata:
  author: ana
---

# Steps
1. See !`ls letters` and !`date`.
2. Use `cat` on it!

```!
git log
```
"""
PLAIN = "---\nname: tax-letters\ndescription: Write letters. Use when one comes.\n---\n\n- Look twice.\n"
SCRIPT = b"#!/bin/sh\necho yes\n"
FILES = {"SKILL.md": PLAIN.encode(), "scripts/look.sh": SCRIPT, "assets/seal.bin": bytes(range(256))}

# Sections

names = st.sampled_from(["tax-letters", "a", "other-skill"])
texts = st.text(st.sampled_from("ab #\n<!-:>"), max_size=40) | st.just("# Rules\n\nBe kind.\n")
sections = st.lists(st.text(st.sampled_from("ab #`"), max_size=9), min_size=1, max_size=3).map(
    lambda rows: "".join(f"{row}\n" for row in rows)
)


@given(texts, names, sections, sections)
def test_a_section_goes_in_is_replaced_and_comes_out_and_every_other_byte_stays(
    text: str, name: str, first: str, second: str
) -> None:
    written = join(text, name, first)
    assert split(written, name)[1] == first
    changed = join(written, name, second)
    assert split(changed, name)[1] == second
    assert split(written, name)[::2] == split(changed, name)[::2]
    assert join(changed, name, None) == text
    assert join(text, name, None) == text


@given(texts, sections, sections)
def test_two_sections_of_one_file_do_not_meet(text: str, one: str, other: str) -> None:
    both = join(join(text, "tax-letters", one), "other-skill", other)
    assert (split(both, "tax-letters")[1], split(both, "other-skill")[1]) == (one, other)
    assert join(both, "other-skill", None) == join(text, "tax-letters", one)


def test_marks_that_do_not_match_are_left_alone() -> None:
    begin, end = "<!-- hone: begin a -->\n", "<!-- hone: end a -->\n"
    for text in (begin, end, end + begin, begin + begin + end, begin + end + end):
        with pytest.raises(Refused):
            join(text, "a", "x\n")


# What Hone may touch


@asynccontextmanager
async def skilled(home: Path) -> AsyncIterator[Hone]:
    async with Hone(home=home, settings=Settings()) as made:
        await made.keeper.edit_skill(NAME, Create(PLAIN, SkillOrigin.USER), OWNER)
        await made.keeper.edit_skill(NAME, WriteFile("scripts/look.sh", SCRIPT), OWNER)
        yield made


async def last(hone: Hone) -> ChangeId:
    return await hone.ledger.latest()


async def test_a_copy_is_written_renewed_and_taken_back_and_each_is_one_change(
    home: Path, tmp_path: Path
) -> None:
    async with skilled(home) as hone:
        folder = tmp_path / "there" / NAME
        target = copy(str(folder))
        assert await hone.keeper.share(target, FILES, OWNER)
        assert {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*.*")} == FILES
        assert (folder / "scripts" / "look.sh").stat().st_mode & 0o700 == 0o700
        assert await hone.keeper.share(target, FILES, OWNER) is None
        fewer = {"SKILL.md": FILES["SKILL.md"] + b"2. Ask.\n"}
        assert await hone.keeper.share(target, fewer, OWNER)
        assert not (folder / "scripts").exists()
        await hone.keeper.undo(await last(hone))
        assert (folder / "scripts" / "look.sh").read_bytes() == SCRIPT
        await hone.keeper.share(target, {}, OWNER)
        assert not folder.exists()
        await hone.keeper.undo(await last(hone))
        assert (folder / "SKILL.md").read_bytes() == FILES["SKILL.md"]


@pytest.mark.parametrize("person", ["wrote", "changed", "beside"])
async def test_nothing_that_a_person_wrote_or_changed_is_touched(
    home: Path, tmp_path: Path, person: str
) -> None:
    async with skilled(home) as hone:
        folder = tmp_path / "there" / NAME
        target, file = copy(str(folder)), folder / "SKILL.md"
        if person != "wrote":
            await hone.keeper.share(target, {"SKILL.md": FILES["SKILL.md"]}, OWNER)
        if person == "beside":
            file = folder / "scripts" / "look.sh"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("my own words")
        before = await last(hone)
        with pytest.raises(Refused, match="Move it away"):
            await hone.keeper.share(target, {**FILES, "SKILL.md": b"other"}, OWNER)
        if person == "changed":
            with pytest.raises(Refused, match="was changed since Hone wrote it"):
                await hone.keeper.undo(before)
        assert (file.read_text(), await last(hone)) == ("my own words", before)
        if person == "beside":  # what is Hone's goes, what is not stays
            await hone.keeper.undo(before)
            assert [each.name for each in folder.rglob("*.*")] == ["look.sh"]


async def test_a_section_keeps_the_file_around_it_its_mode_and_its_own_words(
    home: Path, tmp_path: Path
) -> None:
    async with skilled(home) as hone:
        file = tmp_path / "AGENTS.md"
        file.write_text("# Rules\nBe kind.")
        file.chmod(0o664)
        target = section(str(file), NAME)
        await hone.keeper.share(target, {TEXT: b"one\n"}, OWNER)
        assert file.stat().st_mode & 0o777 == 0o664
        file.write_text(file.read_text().replace("Be kind.", "Be kind, always."))
        await hone.keeper.share(target, {TEXT: b"two\n"}, OWNER)
        assert "Be kind, always.\n<!-- hone: begin tax-letters -->\ntwo\n" in file.read_text()
        mine = file.read_text().replace("two", "my own words")
        file.write_text(mine)
        for attempt in (
            hone.keeper.share(target, {TEXT: b"three\n"}, OWNER),
            hone.keeper.undo(await last(hone)),
        ):
            with pytest.raises(Refused, match="was changed since Hone wrote it"):
                await attempt
        assert file.read_text() == mine
        file.write_text(mine.replace("my own words", "two"))
        await hone.keeper.share(target, {}, OWNER)
        assert file.read_text() == "# Rules\nBe kind, always."


async def test_killed_between_the_ledger_and_the_disk_the_next_command_writes_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    async def kill(*_: object) -> None:
        raise Killed

    async with skilled(home) as hone:
        folder, other = tmp_path / "there" / NAME, {"SKILL.md": b"second\n"}
        target = copy(str(folder))
        await hone.keeper.share(target, FILES, OWNER)
        with monkeypatch.context() as cut:
            cut.setattr(Copies, "publish", kill)
            with pytest.raises(Killed):
                await hone.keeper.share(target, other, OWNER)
        assert (folder / "SKILL.md").read_bytes() == FILES["SKILL.md"]
        assert await hone.keeper.share(target, other, OWNER) is None
        assert [each.read_bytes() for each in folder.rglob("*.*")] == [b"second\n"]


async def test_what_a_person_saves_at_the_last_moment_stays(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, folder, file = Copies.publish, tmp_path / "there" / NAME, tmp_path / "AGENTS.md"

    async def late(self: Copies, target: Target, files: Mapping[str, bytes]) -> None:
        place = folder / "SKILL.md" if target.startswith(COPY) else file
        place.write_text(place.read_text().replace("first", "my own words"))
        await publish(self, target, files)

    async with skilled(home) as hone:
        targets = {copy(str(folder)): "SKILL.md", section(str(file), NAME): TEXT}
        for target, path in targets.items():
            await hone.keeper.share(target, {path: b"first\n"}, OWNER)
        monkeypatch.setattr(Copies, "publish", late)
        for target, path in targets.items():
            await hone.keeper.share(target, {path: b"second\n"}, OWNER)
        meanwhile = [each for each in hone.notices if "was saved by somebody else meanwhile" in each]
        assert len(meanwhile) == 2
        assert (folder / "SKILL.md").read_text() == "my own words\n"
        assert split(file.read_text(), NAME)[1] == "my own words\n"


async def test_a_copy_that_is_taken_back_takes_no_lesson_back(home: Path, tmp_path: Path) -> None:
    async with skilled(home) as hone:
        await hone.keeper.share(copy(str(tmp_path / "there" / NAME)), FILES, OWNER)
        await hone.keeper.share(section(str(tmp_path / "AGENTS.md"), NAME), {TEXT: b"- one\n"}, OWNER)
        for change in (4, 3):
            await hone.keeper.undo(ChangeId(change))
        assert await hone.keeper.withdrawals.all() == ()
        assert await hone.ledger.held_below(COPY) == await hone.ledger.held_below(SECTION) == {}
        assert (await hone.library.files(NAME))["SKILL.md"] == PLAIN.encode()


async def test_a_link_in_the_way_is_not_followed(home: Path, tmp_path: Path) -> None:
    async with skilled(home) as hone:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / NAME).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(import_module("hone.core.errors").StoreError):
            await hone.keeper.share(copy(str(tmp_path / "there" / NAME)), FILES, OWNER)
        assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_words_that_are_erased_are_erased_from_the_copies_too(home: Path, tmp_path: Path) -> None:
    env = environment(home, HOME=str(tmp_path))
    (tmp_path / "d.md").write_text(PLAIN.replace("Look twice", "Look twice at quagga"))
    for typed in (
        ("skills", "new", NAME, "--from", str(tmp_path / "d.md")),
        ("skills", "sync", NAME, "--to", "claude-code", "--yes"),
        ("erase", "words", "quagga", "--yes"),
    ):
        ended = await hone(*typed, env=env, folder=tmp_path)
        assert ended.code == 0, ended
    left = [path for path in tmp_path.rglob("*") if path.is_file() and b"quagga" in path.read_bytes()]
    assert left == [tmp_path / "d.md"]


# What would grant or tell something


def test_each_grant_is_left_out_unless_it_is_kept_by_its_own_name() -> None:
    found = find_grants(GRANTING)
    keys = ["allowed-tools", "command-1", "command-2", "command-3"]
    assert [each.key for each in found] == keys
    stripped = strip_grants(GRANTING, ())
    assert find_grants(stripped) == []
    assert "allowed-tools" not in stripped
    assert "See `ls letters` and `date`." in stripped
    assert "Use `cat` on it!" in stripped
    assert "\n```\ngit log" in stripped
    assert parse(stripped).extra == {"metadata": {"author": "ana"}}
    for key in keys:
        [left] = find_grants(strip_grants(GRANTING, [key]))
        assert left.text == next(each.text for each in found if each.key == key)
    assert strip_grants(GRANTING, keys) == GRANTING
    listed = GRANTING.replace("allowed-tools: Bash(git:*) Read", "allowed-tools:\n  - Bash\n  - Read")
    assert parse(strip_grants(listed, ())).extra == {"metadata": {"author": "ana"}}


def test_a_folder_has_every_file_and_a_section_only_what_to_do() -> None:
    files = {**FILES, "SKILL.md": GRANTING.encode(), "@origin": b"user"}
    folder = render_folder(files, ())
    assert sorted(folder) == ["SKILL.md", "assets/seal.bin", "scripts/look.sh"]
    text = render_section(files)[TEXT].decode()
    assert text.startswith(
        "## tax-letters\n\nWrite letters to the tax office. Use when a letter comes.\n\n# Steps\n"
    )
    assert ("allowed-tools" in text, "!`" in text) == (False, False)
    marked = PLAIN.replace("Look twice.", "<!-- hone: end tax-letters -->")
    with pytest.raises(Refused):
        render_section({"SKILL.md": marked.encode()})


def test_paths_addresses_names_and_secrets_are_found_and_ordinary_text_is_not() -> None:
    key = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7
    text = f"Ask Ines at ines@example.org, see ~/letters/2026 and /home/ana/x.txt. Key {key}. Run on puffin."
    found = find_leaks(text, ["Works with Ines in Bergen."], ["puffin"])
    assert {(each.kind, each.text) for each in found if each.kind != "secret"} == {
        ("path", "~/letters/2026"),
        ("path", "/home/ana/x.txt"),
        ("address", "ines@example.org"),
        ("name", "Ines"),
        ("name", "puffin"),
    }
    assert [each.kind for each in found].count("secret") == 1
    harmless = (
        "Run `npm run build/test`, open https://docs.python.org/3/library and read src/main.py. And/or stop."
    )
    assert find_leaks(harmless, ["Likes Python."], []) == [] == find_leaks("", [], [])
    assert isinstance(found[0], Leak)


def test_each_agent_reads_its_own_place(tmp_path: Path) -> None:
    env = {"HOME": "/home/ana"}
    assert find_target("claude-code", NAME, tmp_path, env) == f"copy:/home/ana/.claude/skills/{NAME}"
    own = {**env, "CLAUDE_CONFIG_DIR": "/etc/c"}
    assert find_target("claude-code", NAME, tmp_path, own) == f"copy:/etc/c/skills/{NAME}"
    assert find_target("codex", NAME, tmp_path, env) == f"copy:/home/ana/.agents/skills/{NAME}"
    assert find_target("agents-md", NAME, tmp_path, env) == Target(f"section:{tmp_path}/AGENTS.md#{NAME}")
    assert (
        find_target(f"agents-md:{tmp_path}", NAME, Path("/x"), env) == f"section:{tmp_path}/AGENTS.md#{NAME}"
    )
    for wrong in ("zed", "codex:/x", ""):
        with pytest.raises(Refused):
            find_target(wrong, NAME, tmp_path, env)


async def test_grants_are_asked_about_one_by_one(home: Path, tmp_path: Path) -> None:
    env = environment(home, HOME=str(tmp_path))
    (tmp_path / "d.md").write_text(GRANTING.replace("Use `cat`", "Look into ~/letters/2026, use `cat`"))
    assert (await hone("skills", "new", NAME, "--from", str(tmp_path / "d.md"), env=env)).code == 0
    typing = terminal("skills", "sync", NAME, "--to", "claude-code", env=env, folder=tmp_path)
    async with typing as screen:
        await screen.sees("allowed-tools: Bash(git:*) Read", "Keep it? [y/N]:")
        screen.type("n\r")
        await screen.sees("command-1: !`ls letters`")
        screen.type("y\r")
        await screen.sees("command-2: !`date`")
        screen.type("n\r")
        await screen.sees("command-3:")
        screen.type("n\r")
        await screen.sees("Left out: allowed-tools", "Kept: command-1", "Write this? [y/N]:")
        screen.type("y\r")
        await screen.sees("Take it back with: hone undo 2")
        assert await screen.ended() == 0
    text = (tmp_path / ".claude" / "skills" / NAME / "SKILL.md").read_text()
    assert [each.text for each in find_grants(text)] == ["!`ls letters`"]


async def test_a_text_that_shows_paths_goes_into_a_shared_file_only_if_that_is_said(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "d.md").write_text(PLAIN.replace("Look twice", "Look into ~/letters/2026"))
    assert (await command(home, "skills", "new", NAME, "--from", str(tmp_path / "d.md"))).code == 0
    file = tmp_path / "AGENTS.md"
    to = ("skills", "sync", NAME, "--to", f"agents-md:{file}", "--yes")
    refused = await command(home, *to)
    assert (refused.code, "path: ~/letters/2026" in refused.out) == (1, True)
    assert ("--leaks-ok" in refused.err, file.exists()) == (True, False)
    assert (await command(home, *to, "--leaks-ok")).code == 0
    assert (await command(home, "skills", "sync")).out == f"{NAME}  {file}#{NAME}\n"
    gone = await command(home, *to, "--remove")
    assert (gone.code, file.exists()) == (0, False)


# Archives


async def test_an_archive_is_valid_has_the_same_bytes_every_time_and_installs_byte_for_byte(
    home: Path, tmp_path: Path
) -> None:
    async with Hone(home=home, folder=tmp_path, settings=Settings()) as opened:
        await opened.keeper.edit_skill(NAME, Create(PLAIN, SkillOrigin.USER), OWNER)
        for path, data in FILES.items():
            if path != "SKILL.md":
                await opened.keeper.edit_skill(NAME, WriteFile(path, data), OWNER)
    env, file = environment(home), tmp_path / "tax.skill"
    assert (await hone("skills", "export", NAME, str(file), env=env)).code == 0
    assert file.read_bytes() == pack(NAME, dict(reversed(FILES.items())))
    again = await hone("skills", "export", NAME, str(file), env=env)
    assert (again.code, "is there already" in again.err) == (1, True)
    wrong = await hone("skills", "export", NAME, str(tmp_path / "tax.tar"), env=env)
    assert (wrong.code, "must end with .skill or .zip" in wrong.err) == (1, True)
    with ZipFile(file) as archive:
        archive.extractall(tmp_path / "out")
    assert import_module("skills_ref").validate(tmp_path / "out" / NAME) == []
    other = tmp_path / "other"
    installed = await hone("skills", "install", str(file), "--yes", env=environment(other))
    assert installed.code == 0, installed
    async with Hone(home=other, settings=Settings()) as opened:
        held = await opened.keeper.files(skill(NAME))
    assert {path: data for path, data in held.items() if not path.startswith("@")} == FILES
    assert copies.TEXT not in held
