"""F2, F3: with an embedder, what was said is found by its meaning; erased text leaves no vector behind."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from hone import Hone
from hone.cli.detach import After, leave
from hone.cli.worker import stay_behind
from hone.core.embedding import Coverage, Embedder
from hone.core.recall import Query
from hone.features.erasing.plan import plan_words
from hone.features.erasing.service import Erasing
from hone.features.recall.part import RecallPart
from hone.models.scripted import Scripted, rounds
from hone.settings import Settings
from hone.settings.sections import ProviderSettings, RecallSettings
from tests.doubles.embeddings import EmbeddingServer

SAID = "Tell nobody: dormitory."
SAME_LETTERS = "dirty room"
"""The double counts letters, so that these words mean the same to it."""


def settings(server: EmbeddingServer, model: str = "letters") -> Settings:
    return Settings(
        recall=RecallSettings(embedder=f"near/{model}"),
        providers={"near": ProviderSettings(url=server.url, format="openai")},
    )


def open_hone(home: Path, chosen: Settings) -> Hone:
    return Hone(home=home, settings=chosen, model=Scripted(rounds("Yes.")), learning="background")


async def covered(hone: Hone) -> Coverage:
    """Wait until nothing is missing. The test's own time limit ends it if that never happens."""
    part = hone.part(RecallPart)
    embedder = await part.embedder()
    assert embedder is not None
    while (found := await hone.stores.vectors.coverage(embedder.id)).left:
        await part.maker.fill()
    return found


async def found(hone: Hone, words: str) -> list[str]:
    return [hit.passage.text for hit in (await hone.recall.search(Query(words))).hits]


async def test_what_was_said_is_found_by_meaning_after_the_turn(home: Path) -> None:
    with EmbeddingServer() as server:
        async with open_hone(home, settings(server)) as hone:
            session = await hone.session()
            for words in (SAID, "My pump is broken.", "Which bus runs at night?"):
                await session.send(words)
            assert await covered(hone) == Coverage(4, 0)  # "Yes." is one content
            assert SAID in await found(hone, SAME_LETTERS)
        async with Hone(home=home, settings=Settings(), model=Scripted(rounds("Yes."))) as plain:
            assert SAID not in await found(plain, SAME_LETTERS)
        texts = [text for asked in server.requests for text in asked["input"]]
    assert sum(SAID in text for text in texts) == 1


async def test_another_model_makes_all_vectors_again(home: Path) -> None:
    with EmbeddingServer() as server:
        for model in ("letters", "others"):
            async with open_hone(home, settings(server, model)) as hone:
                await (await hone.session()).send(f"A word for {model}.")
                made = await covered(hone)
        asked: list[Any] = [
            text for each in server.requests if each["model"] == "others" for text in each["input"]
        ]
    assert made.left == 0
    assert {"A word for letters.", "A word for others.", "Yes."} <= {*asked}


async def test_erased_words_leave_no_vector(home: Path) -> None:
    with EmbeddingServer() as server:
        async with open_hone(home, settings(server)) as hone:
            session = await hone.session()
            await session.send(SAID)
            await covered(hone)
            await hone.stores.vectors.cache("any", {SAID: b"1"})
            rows = apsw.Connection(str(home / "hone.db"))
            before = rows.execute("SELECT vector FROM vectors ORDER BY content").fetchall()
            await Erasing(hone).erase(plan_words(["dormitory"]))
            after = rows.execute("SELECT vector FROM vectors").fetchall()
            assert before[0] not in after
            assert rows.execute("SELECT count(*) FROM meanings").get == 0


async def test_what_a_short_visit_leaves_is_done_by_the_process_it_leaves_behind(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("HONE_LEARNING", raising=False)
    with EmbeddingServer() as server:
        chosen = settings(server)
        async with Hone(home=home, settings=chosen, model=Scripted(rounds("Yes.")), learning="off") as visit:
            await (await visit.session()).send("Which bus runs at night?")
            assert await leave(visit) is After.QUIET
        async with Hone(home=home, settings=chosen, model=Scripted(rounds("Yes.")), learning="off") as worker:
            assert await stay_behind(worker) == 0
            assert await leave(worker) is After.NONE
            assert await worker.stores.vectors.coverage((await part_of(worker)).id) == Coverage(2, 0)


async def part_of(hone: Hone) -> Embedder:
    embedder = await hone.part(RecallPart).embedder()
    assert embedder is not None
    return embedder
