"""I5: which model is talked to, by its name, by the keys that are set, by the servers that answer."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from hone.core.clock import SystemClock
from hone.core.errors import SettingsError
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.faults import refusing
from hone.models.http import Http
from hone.models.providers import KNOWN, Provider, address, choose, is_local
from hone.models.scripted import lines

KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "OPENROUTER_API_KEY": "c"}
REMOTE = tuple(each for each in KNOWN if not is_local(each, {}))


@asynccontextmanager
async def client() -> AsyncIterator[Http]:
    http = Http(SystemClock())
    try:
        yield http
    finally:
        await http.close()


async def chosen(wanted: str, environ: Mapping[str, str], *providers: Provider) -> tuple[str, str]:
    async with client() as http:
        provider, name = await choose(wanted, (*providers, *REMOTE), environ, http)
    return provider.url, name


@pytest.mark.parametrize(
    ("wanted", "environ", "provider"),
    [
        ("", KEYS, "anthropic"),
        ("", {key: KEYS[key] for key in ("OPENROUTER_API_KEY", "OPENAI_API_KEY")}, "openai"),
        ("", {"OPENROUTER_API_KEY": "c"}, "openrouter"),
        ("", KEYS | {"ANTHROPIC_API_KEY": ""}, "openai"),
        ("openrouter", KEYS, "openrouter"),
    ],
)
async def test_the_first_key_that_is_set_decides_with_its_providers_default(
    wanted: str, environ: Mapping[str, str], provider: str
) -> None:
    known = next(each for each in KNOWN if each.name == provider)
    assert await chosen(wanted, environ) == (known.url, f"{provider}/{known.default}")


async def test_a_name_is_taken_as_it_stands_slashes_included() -> None:
    _, name = await chosen("openrouter/some/model:free", KEYS)
    assert name == "openrouter/some/model:free"


async def test_an_endpoint_of_ones_own_takes_the_place_of_a_known_one() -> None:
    mine = Provider("openai", "http://127.0.0.1:9/v1")
    assert await chosen("openai/m", {}, mine) == ("http://127.0.0.1:9/v1", "openai/m")


@pytest.mark.parametrize(
    ("environ", "name"), [({}, "ollama/scripted"), (KEYS, f"anthropic/{KNOWN[0].default}")]
)
async def test_without_a_key_the_first_server_that_answers_is_asked_what_it_has(
    environ: Mapping[str, str], name: str
) -> None:
    with refusing() as nobody:
        async with FakeProvider(lines("hi")) as stage:
            silent = Provider("lmstudio", f"{nobody}/v1", local=True)
            there = Provider("ollama", f"{stage.url}/v1", local=True)
            assert (await chosen("", environ, silent, there))[1] == name


@pytest.mark.parametrize(
    ("wanted", "explanation"),
    [
        ("openai/gpt", "No key for openai. Store it with: hone keys set openai (or export OPENAI_API_KEY=…)"),
        (
            "nobody/gpt",
            "'nobody/gpt' does not name a known provider. Write provider/name with one of: anthropic, openai",
        ),
        ("", "export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, OPENROUTER_API_KEY)"),
    ],
)
async def test_where_nothing_fits_it_says_what_to_do(wanted: str, explanation: str) -> None:
    with pytest.raises(SettingsError) as error:
        await chosen(wanted, {})
    assert explanation in str(error.value)


async def test_without_a_model_it_names_the_servers_it_looked_for() -> None:
    with refusing() as nobody, pytest.raises(SettingsError) as error:
        await chosen("", {}, Provider("ollama", f"{nobody}/v1", local=True))
    assert f"I looked for ollama ({nobody}/v1)" in str(error.value)


def test_every_format_is_reachable_by_its_variable() -> None:
    openai = next(each for each in KNOWN if each.name == "openai")
    assert address(openai, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"}) == "http://127.0.0.1:9/v1"
    assert address(openai, {}) == openai.url
    assert {each.name for each in KNOWN} >= {
        "anthropic",
        "openai",
        "openrouter",
        "ollama",
        "vllm",
        "llamacpp",
        "lmstudio",
    }
