"""Settings are explained, told with their source, and never give a key away."""

import stat
import tomllib
from pathlib import Path

import msgspec
import pytest

from hone.cli.config import KEYS, rows, template
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import lines
from hone.settings import Settings
from hone.settings.sections import McpServerSettings, McpSettings, ProviderSettings
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
    assert changed == {"hooks", "mcp", "permissions", "sampling", "projects", "providers", "prices", "models"}


def test_a_key_pasted_where_a_name_belongs_is_not_shown() -> None:
    server = McpServerSettings(
        "x", env={"TOKEN": SECRET, "OTHER": "${OTHER}"}, headers={"A": f"Bearer {SECRET}"}
    )
    settings = Settings(
        providers={"mine": ProviderSettings("http://127.0.0.1:1", key=SECRET)}, mcp=McpSettings({"x": server})
    )
    shown = "\n".join(rows(settings, {}))
    assert SECRET not in shown
    assert "${OTHER}" in shown


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


async def test_a_file_with_faults_is_explained_repaired_and_never_in_the_way(home: Path) -> None:
    file = home / "hone.toml"
    file.write_text(
        '# mine\ncalls = "many"  # a lot\ncals = 3\n[learning]\nturns = -1\nagent = "sometimes"\n'
        '[providers.mine]\nformat = "openai"\n[models."a/b"]\nwindow = 10\n'
    )
    env = environment(home)
    faults = [
        "line 2: calls must be a whole number.",
        "line 3: there is no key cals (did you mean calls?).",
        "line 5: learning.turns must be at least 0.",
        'line 6: learning.agent must be one of "auto", "ask", "off".',
        "line 7: providers.mine needs url.",
        "line 10: window of a model must be 0 or at least 4000.",
    ]
    checked = await hone("config", "check", env=env)
    assert (checked.code, checked.err.splitlines()) == (2, [f"{file}, {each}" for each in faults])
    shown = await hone("config", env=env)
    assert shown.code == 2
    assert all(each in shown.err for each in faults)
    assert "calls = 90  (default)" in shown.out
    ran = await hone("run", "x", env=env)
    assert (ran.code, f"{file}, {faults[0]} It is one of 6 faults" in ran.err) == (2, True)
    for key, value in (("calls", "7"), ("learning.agent", "ask"), ("learning.turns", "5")):
        assert (await hone("config", "set", key, value, env=env)).code == 0
    assert file.read_text().startswith("# mine\ncalls = 7  # a lot\ncals = 3\n[learning]\nturns = 5\n")
    file.write_text("calls = = 3\n")
    for command in (["config"], ["config", "check"], ["config", "set", "tries", "3"]):
        broken = await hone(*command, env=env)
        assert (broken.code, "is not valid TOML: Invalid value (at line 1" in broken.err) == (2, True)
    assert file.read_text() == "calls = = 3\n"
    file.write_text("[learning]\n[memory]\n[learning]\n")
    shown = await hone("config", env=env | {"HONE_MODEL": "openai/mine"})
    assert 'model = "openai/mine"  ($HONE_MODEL)' in shown.out
    ran = await hone("run", "x", env=env)
    assert ran.err.startswith(f"{file} is not valid TOML: Cannot declare learning twice (at line 3")
    assert ran.err.endswith(". To fix it: hone config edit\n")


async def test_single_settings_are_read_and_changed_by_their_key(home: Path) -> None:
    env, file = environment(home), home / "hone.toml"
    for key, *value in (
        ("learning.turns", "5"),
        ("sandbox.read", "/tmp", "/srv"),
        ("guardrails.same_call", "3", "6"),
        ("checkpoints.enabled", "no"),
        ('models."a/b".window', "64000"),
        ("sampling.temperature", "0.3"),
        ("memory.url", f"postgres://me:{SECRET}@db/hone"),
    ):
        assert (await hone("config", "set", key, *value, env=env)).code == 0
    values = tomllib.loads(file.read_text())
    assert values["sandbox"] == {"read": ["/tmp", "/srv"]}
    assert (values["checkpoints"], values["sampling"]) == ({"enabled": False}, {"temperature": 0.3})
    before = file.read_text()
    for wrong, word, reason in (
        ("learning.tuns", "5", "There is no key learning.tuns (did you mean learning.turns?)."),
        ("modle", "x", "There is no key modle (did you mean model?)."),
        ("mode", "planning", 'mode must be one of "plan", "ask", "auto", "full".'),
        ("calls", "0", "Nothing was changed: calls must be at least 1."),
        ("calls", "many", "calls must be a whole number."),
        ("learning", "5", "learning is a table."),
        ("calls.x", "5", "calls is a whole number and holds no keys."),
    ):
        refused = await hone("config", "set", wrong, word, env=env)
        assert (refused.code, reason in refused.err) == (2, True), refused.err
    assert file.read_text() == before
    got = [(await hone("config", "get", key, env=env)).out for key in ("learning.turns", "sandbox.read")]
    assert got == ["5\n", '["/tmp","/srv"]\n']
    memory = await hone("config", "get", "memory", env=env)
    assert SECRET not in memory.out
    assert "memory.deadline = 0.3\n" in memory.out
    for key in ("learning.turns", "sandbox.read", "learning.turns"):
        assert (await hone("config", "unset", key, env=env)).code == 0
    values = tomllib.loads(file.read_text())
    assert (values["learning"], values["sandbox"], values["checkpoints"]) == ({}, {}, {"enabled": False})
    for wrong, reason in (("learning.tuns", "(did you mean learning.turns?)"), ("memory", "is a table.")):
        refused = await hone("config", "unset", wrong, env=env)
        assert (refused.code, reason in refused.err) == (2, True), refused.err
