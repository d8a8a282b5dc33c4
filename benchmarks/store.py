"""The session store: so many messages a second brought in, and how long a search over all of them takes.

Both sides get the same made-up conversations and the same queries, each in the form that its own search tool
asks for. They take turns: a part of the messages here, the same part there, until all are in.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import ROOT, Bench, Sample, Samples, Take, alternate, environment, lodged, play, row
from benchmarks.figures import Row, Side
from benchmarks.recall import BEGUN, PREFIX, SESSION, TOGETHER, Language, asked, indexed, quantile, session
from hone.core.messages import user
from hone.core.recall import Query
from hone.core.trust import Trust
from hone.stores.database import Database
from hone.stores.question import EMPTY
from hone.stores.recall import SqliteRecall
from hone.stores.sqlite import SqliteSessions
from hone.tools.recall import told

COUNT, SINGLE, QUERIES = 50_000, 2_000, 100
"""Messages, how many of them to store one by one in each part, and queries of each kind."""
PARTS = 5
"""The parts in which messages are imported, and in which queries are sent."""
CLOCKS = ("wall", "cpu")
QUESTION = "question of 5"
KINDS = ("rare", "common", QUESTION, "phrase", "CJK", "CJK, two letters")

Corpus = dict[str, Any]


@dataclass(slots=True)
class Shelf:
    """The databases of a side, and the part that it gets next."""

    peer: Path | None
    home: Path
    parts: Sequence[Path]
    next: dict[str, int] = field(default_factory=dict)

    def take(self, work: str) -> Sample:
        number = self.next.get(work, 0)
        self.next[work] = number + 1
        found = self.run(work, self.parts[number])
        count = sum(len(each["texts"]) for each in read(self.parts[number])["sessions"])
        count = min(count, SINGLE) if work == "single" and not self.peer else count
        return Sample(count / found["wall"], found["cpu"] * 1000 / count)

    def run(self, work: str, file: Path) -> dict[str, Any]:
        database = self.home / ("whole.db" if self.is_whole(work) else "single.db")
        environ = environment(self.home)
        if self.peer:
            environ |= lodged(self.peer, self.home, "http://127.0.0.1:9")
        command = [self.peer or sys.executable, "-m", f"benchmarks.{'peer.' if self.peer else ''}store"]
        found: dict[str, Any] = json.loads(play([*command, file, database, work], environ, ROOT))
        return found

    def is_whole(self, work: str) -> bool:
        """Tell whether to use the database that was filled as a whole; for a search, the usual one of each
        side."""
        return work == "whole" or (work == "search" and not self.peer)


def store(bench: Bench) -> Iterator[Row]:
    count, queries, parts = (400, 5, 1) if bench.quick else (COUNT, QUERIES, PARTS)
    files, questions = corpus(bench.folder(), count, queries, parts)
    hone = Shelf(None, bench.folder(), files)
    peer = Shelf(bench.peer, bench.folder(), files) if bench.peer else None
    whole = taken(bench, partial(hone.take, "whole"), partial(peer.take, "single") if peer else None)
    yield row(f"{count:,} messages brought in, the peer one by one", "messages/s", 10_000, whole, lead=20)
    again = taken(bench, None, partial(peer.take, "whole") if peer else None)
    yield row("the same, the peer whole sessions at once", "messages/s", None, {**whole, **again}, lead=1)
    single = {**whole, **taken(bench, partial(hone.take, "single"), None)}
    yield row("messages stored one by one", "messages/s", None, single, lead=1)
    yield from searches(bench, hone, peer, questions, count)


def taken(bench: Bench, hone: Take | None, peer: Take | None) -> Samples:
    takes: dict[Side, Take] = {}
    if hone:
        takes["hone"] = hone
    if peer:
        takes["peer"] = peer
    return alternate(bench, 1 if bench.quick else PARTS, takes, warm=True) if takes else {}


def searches(
    bench: Bench, hone: Shelf, peer: Shelf | None, questions: Mapping[Side, Sequence[Path]], count: int
) -> Iterator[Row]:
    """Search in rounds: some queries of each kind here, the same ones there."""
    found: dict[Side, list[dict[str, Any]]] = {"hone": [], "peer": []}
    for number, files in enumerate(zip(questions["hone"], questions["peer"], strict=True), 1):
        found["hone"].append(hone.run("search", files[0]))
        if peer:
            found["peer"].append(peer.run("search", files[1]))
        bench.tell(number, len(questions["hone"]))
    yield slow(f"search over {count:,} messages, 95 of 100 within", found, KINDS, lead=5)
    for kind in KINDS:
        yield slow(f"search: {kind}, 95 of 100 within", found, (kind,), lead=1)


def slow(
    name: str, found: Mapping[Side, Sequence[dict[str, Any]]], kinds: Sequence[str], lead: float | None
) -> Row:
    """Return the 95th percentile of each round: there its slowest twentieth begins."""
    samples: dict[Side, list[Sample]] = {}
    for side, rounds in found.items():
        for each in rounds:
            wall, cpu = ([took for kind in kinds for took in each[kind][clock]] for clock in CLOCKS)
            if wall:
                samples.setdefault(side, []).append(Sample(quantile(wall, 0.95), quantile(cpu, 0.95)))
    return row(name, "ms", None, samples, lead)


def corpus(folder: Path, count: int, queries: int, parts: int) -> tuple[list[Path], dict[Side, list[Path]]]:
    """Return the messages in parts, and the queries of each side."""
    language, files, sample = Language(7), [], list[str]()
    for part in range(parts):
        sessions = []
        for number in range(part * count // parts, (part + 1) * count // parts, SESSION):
            texts = [language.message() for _ in range(SESSION)]
            sample += texts[:50]
            at = (BEGUN + timedelta(minutes=number)).timestamp()
            sessions.append({"id": f"s{number:09}", "at": at, "texts": texts})
        files.append(written(folder / f"part-{part}.json", {"sessions": sessions}))
    found = asked(language, sample, queries)
    questions = {**found, "CJK, two letters": [each[:2] for each in found["CJK"]]}
    for_peer = {**questions, QUESTION: [any_of(each) for each in found[QUESTION]]}
    return files, {
        "hone": in_rounds(folder, "hone", questions, parts),
        "peer": in_rounds(folder, "peer", for_peer, parts),
    }


def in_rounds(folder: Path, side: Side, questions: Mapping[str, Sequence[str]], rounds: int) -> list[Path]:
    return [
        written(
            folder / f"{side}-{number}.json",
            {"queries": {kind: some[number::rounds] for kind, some in questions.items()}},
        )
        for number in range(rounds)
    ]


def any_of(question: str) -> str:
    """Return the content words, as the description of the peer's tool asks for in a broad search."""
    words = [word for word in question.rstrip("?").split() if word not in EMPTY]
    return " OR ".join(words)


def written(path: Path, value: Corpus) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def read(path: Path) -> Corpus:
    found: Corpus = json.loads(path.read_text(encoding="utf-8"))
    return found


async def whole(database: Database, found: Corpus) -> dict[str, float]:
    """Store as an import does: a session at a time, many at once. Then index all of them."""
    store = SqliteSessions(database)
    made = [
        session(each["id"], each["texts"], datetime.fromtimestamp(each["at"], UTC))
        for each in found["sessions"]
    ]
    begun, used = time.perf_counter(), time.process_time()
    for batch in range(0, len(made), TOGETHER):
        starts = (
            store.start(header, PREFIX, chain.nodes) for header, chain in made[batch : batch + TOGETHER]
        )
        await asyncio.gather(*starts)
    await indexed(database)
    return {"wall": time.perf_counter() - begun, "cpu": time.process_time() - used}


async def single(database: Database, found: Corpus) -> dict[str, float]:
    """Store as a conversation does: each message is on disk before the next one is stored."""
    store = SqliteSessions(database)
    texts = [text for each in found["sessions"] for text in each["texts"]][:SINGLE]
    name = f"single-{found['sessions'][0]['id']}"
    header, chain = session(name, texts[:1], datetime.now(UTC))
    begun, used = time.perf_counter(), time.process_time()
    await store.start(header, PREFIX, chain.nodes)
    for text in texts[1:]:
        chain = chain.then(user(text), Trust.OWNER, datetime.now(UTC))
        await store.append(header.id, chain.nodes[-1:])
    await indexed(database)
    return {"wall": time.perf_counter() - begun, "cpu": time.process_time() - used}


async def search(recall: SqliteRecall, found: Corpus) -> dict[str, Any]:
    """Search as the tool does, including its text for the model."""
    answers: dict[str, Any] = {}
    for kind, queries in found["queries"].items():
        answers[kind] = {"wall": [], "cpu": []}
        for query in (queries[0], *queries):  # the first one, twice: it does not count
            begun, used = time.perf_counter(), time.process_time()
            hits = await recall.search(Query(query))
            told(hits)
            answers[kind]["wall"].append((time.perf_counter() - begun) * 1000)
            answers[kind]["cpu"].append((time.process_time() - used) * 1000)
            if not hits.hits:
                raise SystemExit(f"nothing was found for: {query}")
        answers[kind] = {clock: some[1:] for clock, some in answers[kind].items()}
    return answers


async def perform(file: Path, place: Path, work: str) -> dict[str, Any]:
    database, found = Database.open(place), read(file)
    try:
        if work == "search":
            return await search(SqliteRecall(database), found)
        return await (whole if work == "whole" else single)(database, found)
    finally:
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("database", type=Path)
    parser.add_argument("work", choices=("whole", "single", "search"))
    options = parser.parse_args()
    print(json.dumps(asyncio.run(perform(options.file, options.database, options.work))))


if __name__ == "__main__":
    main()
