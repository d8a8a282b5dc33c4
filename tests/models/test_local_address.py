"""A server of one's own is known by its address, whatever its name and port, and Hone is no model of Hone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.errors import SettingsError
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.providers import Provider, is_local, is_local_address
from hone.models.scripted import echo, lines
from hone.runtime.model_factory import LARGE, SMALL
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from tests.web.rig import running

OWN = (
    *(
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "127.0.0.1",
        "127.1",
        "127.9.9.9",
        "0.0.0.0",
        "[::1]",
        "[::]",
    ),
    *("10.0.0.7", "172.16.0.1", "172.31.255.255", "192.168.1.20", "169.254.10.1", "100.64.0.1"),
    *(
        "[fe80::1%25eth0]",
        "[fd00::7]",
        "[::ffff:192.168.1.20]",
        "[::ffff:127.0.0.1]",
        "gpu",
        "gpu.local",
        "local",
    ),
)
OTHERS = (
    *("api.openai.com", "example.org", "127.example.org", "localhost.example.org", "gpu.local.example.org"),
    *("8.8.8.8", "172.15.0.1", "172.32.0.1", "192.169.0.1", "11.0.0.1", "100.63.0.1", "1.0.0.127"),
    *("[2001:4860:4860::8888]", "[::ffff:8.8.8.8]", "", "[", "[::1"),
)


@given(
    host=st.sampled_from([*OWN, *OTHERS]),
    scheme=st.sampled_from(["http", "https"]),
    port=st.sampled_from(["", ":1", ":443", ":8420", ":11434", ":65535"]),
    path=st.sampled_from(["", "/", "/v1", "/api/localhost"]),
    name=st.sampled_from(["ollama", "openai", "mine"]),
)
def test_neither_name_nor_port_nor_path_makes_a_server_local(
    host: str, scheme: str, port: str, path: str, name: str
) -> None:
    url = f"{scheme}://{host}{port}{path}"
    expected = host in OWN
    assert is_local_address(url) is expected
    assert is_local(Provider(name, url), {}) is expected
    assert is_local(Provider(name, "https://api.example.org", address="PLACE"), {"PLACE": url}) is expected
    for said in (True, False):
        assert is_local(Provider(name, url, local=said), {}) is said
        assert is_local(Provider(name, url, local=not said), {"HONE_LOCAL": str(said).lower()}) is said


def test_a_socket_is_on_this_machine() -> None:
    assert is_local_address("unix:/run/model.sock")


@pytest.mark.parametrize(("said", "window"), [(None, SMALL), (True, SMALL), (False, LARGE)])
async def test_a_server_named_in_the_settings_is_found_on_any_port_and_has_a_small_window(
    said: bool | None, window: int, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HONE_LOCAL")
    async with FakeProvider(lines("hi")) as stage:
        settings = Settings(providers={"mine": ProviderSettings(f"{stage.url}/v1", local=said)})
        async with Hone(home=home, folder=tmp_path, settings=settings) as hone:
            found = await hone.models.find("")
            assert (found.name, found.window, found.local) == ("mine/scripted", window, said is not False)
            assert hone.models.is_local is found.local


async def test_hone_is_not_taken_for_a_model_and_says_so(home: Path, tmp_path: Path) -> None:
    async with running(home / "server", tmp_path, echo) as visit:
        itself = {"me": ProviderSettings(f"{visit.url}/v1", key="HONE_KEY")}
        for wanted in ("me/hone", "me"):
            settings = Settings(model=wanted, providers=itself)
            for key in (visit.key, "sk-wrong-0123456789"):
                said = await explained(home / "client", tmp_path, settings, key)
                assert "The address of me is Hone's own endpoint (hone serve)" in said
                assert "hone setup" in said
        assert visit.stage.bodies == []
        assert (await visit.get("/api/sessions"))["sessions"] == []
        asked = {"messages": [{"role": "user", "content": "hi"}]}
        looped = await visit.client.post("/v1/chat/completions", json=asked, headers={"user-agent": "hone"})
        assert (looped.status_code, looped.json()["error"]["code"]) == (400, "hone_itself")
        assert visit.stage.bodies == []


async def explained(home: Path, folder: Path, settings: Settings, key: str) -> str:
    """Return the error of a turn whose model is at a Hone's own address."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HONE_KEY", key)
        async with Hone(home=home, folder=folder, settings=settings) as hone:
            try:
                turn = await hone.run("hi")
            except SettingsError as error:
                return str(error)
    assert turn.stop is Stop.FAILED
    return turn.text
