"""Settings are explained, told with their source, and never give a key away."""

import stat
import tomllib
from pathlib import Path

import msgspec
import pytest

from hone.cli.config import KEYS, rows, template
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import lines
from hone.settings import ProviderSettings, Settings
from tests.cli.driving import environment, hone

SECRET = "sk-live-DO-NOT-PRINT-0123456789"


def test_every_key_is_explained_and_no_other() -> None:
    assert set(KEYS) == set(Settings.__struct_fields__)


def test_the_file_that_init_writes_changes_nothing() -> None:
    assert tomllib.loads(template()) == {}


def test_the_file_that_init_writes_is_right_once_its_comments_are_taken_away() -> None:
    text = "\n".join(line.removeprefix("#") for line in template().splitlines() if not line.startswith("# "))
    values = tomllib.loads(text)
    settings = msgspec.convert(values, Settings)
    assert set(values) == set(KEYS)
    changed = {key for key in KEYS if getattr(settings, key) != getattr(Settings(), key)}
    assert changed == {"permissions", "sampling", "projects", "providers", "prices", "models"}


def test_a_key_pasted_where_a_name_belongs_is_not_shown() -> None:
    settings = Settings(providers={"mine": ProviderSettings("http://127.0.0.1:1", key=SECRET)})
    assert SECRET not in "\n".join(rows(settings, {}))


async def test_values_are_shown_with_where_they_come_from(home: Path) -> None:
    (home / "hone.toml").write_text('model = "openai/a"\ncalls = 7\n')
    env = environment(home, OPENAI_API_KEY=SECRET, HONE_FALLBACK="openai/b")
    shown = await hone("config", env=env)
    assert shown.code == 0
    for expected in (
        'model = "openai/a"  (hone.toml)',
        'fallback = "openai/b"  ($HONE_FALLBACK)',
        "calls = 7  (hone.toml)",
        "tries = 4  (default)",
        "model in use: openai/a\n    named in hone.toml",
        "OPENAI_API_KEY: set",
        "ANTHROPIC_API_KEY: not set",
    ):
        assert expected in shown.out
    assert SECRET not in shown.out + shown.err


@pytest.mark.parametrize(
    ("arguments", "more", "reason"),
    [
        (["--model", "openai/x"], {"OPENAI_API_KEY": "k"}, "openai/x\n    named with --model"),
        ([], {"HONE_MODEL": "openai/y", "OPENAI_API_KEY": "k"}, "openai/y\n    named with $HONE_MODEL"),
        ([], {"OPENAI_API_KEY": "k"}, "openai/gpt-5.4\n    the first key that is set is OPENAI_API_KEY"),
        ([], {}, "none\n    No model to talk to yet."),
    ],
)
async def test_the_model_in_use_is_told_with_the_reason(
    home: Path, arguments: list[str], more: dict[str, str], reason: str
) -> None:
    shown = await hone(*arguments, "config", env=environment(home, **more))
    assert shown.code == 0
    assert f"model in use: {reason}" in shown.out


async def test_a_file_is_written_once_and_only_for_its_owner(home: Path) -> None:
    env = environment(home / "new")
    assert (await hone("config", "path", env=env)).out == f"{home}/new/hone.toml\n"
    assert (await hone("config", "init", env=env)).code == 0
    file = home / "new" / "hone.toml"
    assert file.read_text() == template()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.write_text("calls = 3\n")
    again = await hone("config", "init", env=env)
    assert (again.code, file.read_text()) == (1, "calls = 3\n")


async def test_an_edit_is_checked_when_the_editor_is_done(home: Path, tmp_path: Path) -> None:
    none = await hone("config", "edit", env=environment(home))
    assert (none.code, (home / "hone.toml").exists()) == (2, False)
    assert str(home / "hone.toml") in none.err
    editor = tmp_path / "my editor"
    editor.write_text("#!/bin/sh\necho 'calls = 0' >> \"$2\"\n")
    editor.chmod(0o700)
    edited = await hone("config", "edit", env=environment(home, EDITOR=f"'{editor}' --wait"))
    assert (edited.code, "at least 1" in edited.err) == (2, True)
    missing = await hone("config", "edit", env=environment(home, VISUAL="/no/such/editor"))
    assert (missing.code, "cannot be started" in missing.err) == (2, True)
    assert (await hone("config", "path", env=environment(home))).code == 0


async def test_an_endpoint_of_ones_own_is_used_as_it_is_written_in_the_file(home: Path) -> None:
    async with FakeProvider(lines("Hello."), key="k1") as stage:
        (home / "hone.toml").write_text(
            f'model = "mine/scripted"\n[providers.mine]\nurl = "{stage.url}/v1"\nkey = "MY_KEY"\n'
        )
        ended = await hone("run", "hi", env=environment(home, MY_KEY="k1"))
    assert (ended.code, ended.out) == (0, "Hello.\n")
