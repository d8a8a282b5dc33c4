"""`python -m benchmarks.recall`: search over very many messages: how fast, how large, and beside writers."""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hone.core.ids import SessionId
from hone.core.messages import assistant, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.recall import Query
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores import passages
from hone.stores.database import Database
from hone.stores.question import EMPTY, kinship
from hone.stores.recall import SqliteRecall
from hone.stores.sqlite import SqliteSessions

COUNT, SESSION, TOGETHER = 100_000, 200, 50
VOCABULARY = 80_000
HAN = 3_000
"""The letters to draw from. Some are frequent, as in words."""
FASTEST, FAST, BOUNDED, LARGEST = 10_000, 20.0, 60.0, 3.0
"""The targets: messages per second of the processor, its milliseconds for a query and for one within a time,
and bytes per byte of text."""
BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
PREFIX = Prefix("bench/model", "You are a benchmark.")


class Language:
    """Words with a natural frequency: some in every sentence, most of them hardly ever. Some have
    synonyms."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        spelling = Random(1)
        made = {
            "".join(spelling.choice(SYLLABLES) for _ in range(spelling.randint(2, 4)))
            for _ in range(VOCABULARY)
        }
        made |= {word for words in kinship().values() for word in words} - EMPTY
        self.words = [*sorted(EMPTY), *sorted(made)]
        self.letters = [chr(0x4E00 + number) for number in range(HAN)]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        self._frequent = list(accumulate(1 / (rank + 10) for rank in range(HAN)))
        spelling.shuffle(made_words := self.words[len(EMPTY) :])
        self.words[len(EMPTY) :] = made_words

    def message(self) -> str:
        if self.random.random() < 0.05:
            return "".join(
                self.random.choices(self.letters, cum_weights=self._frequent, k=self.random.randint(20, 120))
            )
        return " ".join(
            self.random.choices(self.words, cum_weights=self._weights, k=self.random.randint(8, 120))
        )


SYLLABLES = [one + two for one in "bcdfghklmnprstvwz" for two in ("a", "e", "i", "o", "u", "an", "er", "is")]


def main() -> None:
    options = parsed()
    if options.write:
        asyncio.run(write(options.write, options.seed))
        return
    with TemporaryDirectory(prefix="hone-bench-", dir=options.folder) as scratch:
        print(f"{options.count:,} messages in sessions of {SESSION}, {options.queries} queries of each kind")
        print(asyncio.run(measured(Path(scratch) / "hone.db", options.count, options.queries)))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="messages [%(default)s]; try 1000000")
    parser.add_argument("--queries", type=int, default=100, help="of each kind [%(default)s]")
    parser.add_argument("--folder", type=Path, help="where the database is made")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args()


async def measured(path: Path, count: int, queries: int) -> str:
    database = Database.open(path)
    store, recall, language = SqliteSessions(database), SqliteRecall(database), Language(7)
    rate, busy, text, sample = await fill(database, language, count)
    told = f"{rate:,.0f} messages/s ({busy:,.0f} a second of the processor)"
    rows = [("bulk insert", told, f"≥ {FASTEST:,}", busy >= FASTEST)]
    header, chain = session("last", [language.message()], BEGUN)
    await store.start(header, PREFIX, chain.nodes)  # with the next write the log becomes small again
    size = sum(os.path.getsize(each) for each in path.parent.iterdir())
    rows.append(("size on disk", f"{size / text:.2f} × the text", f"≤ {LARGEST:g} ×", size / text <= LARGEST))
    queried = asked(language, sample, queries)
    for kind, questions in queried.items():
        rows.append(spread(kind, FAST, await timed(recall, [Query(each) for each in questions])))
    for days in (7, 365):
        last = BEGUN + timedelta(minutes=count)
        within = [Query(each, since=last - timedelta(days=days)) for each in queried["question of 5"]]
        rows.append(spread(f"question, the last {days} days", BOUNDED, await timed(recall, within)))
    rows.append(await beside(path, recall, [Query(each) for each in queried["question of 5"]]))
    await database.close()
    lines = ["| what | measured | aim | reached |", "|---|---|---|---|"]
    lines += [
        f"| {what} | {found} | {aim} | {'yes' if reached else 'no'} |" for what, found, aim, reached in rows
    ]
    return "\n".join(lines)


Row = tuple[str, str, str, bool]


def spread(kind: str, aim: float, took: Sequence[tuple[float, float]]) -> Row:
    (half, _), (most, busy) = (
        [quantile(each, share) for each in zip(*took, strict=True)] for share in (0.5, 0.95)
    )
    found = f"p50 {half:.1f} ms, p95 {most:.1f} ms ({busy:.1f} ms of the processor)"
    return f"search: {kind}", found, f"p95 ≤ {aim:g} ms of the processor", busy <= aim


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def indexed(database: Database) -> None:
    """Index. Hone does this after storing, and the figures include its time."""
    while await database.write(passages.fill):
        pass


async def fill(database: Database, language: Language, count: int) -> tuple[float, float, int, list[str]]:
    """Fill. Return messages per second in wall and processor time, bytes of text, and some of the texts."""
    store = SqliteSessions(database)
    text, spent, worked, sample = 0, 0.0, 0.0, []
    for batch in range(0, count, SESSION * TOGETHER):
        made = []
        for number in range(batch, min(batch + SESSION * TOGETHER, count), SESSION):
            texts = [language.message() for _ in range(min(SESSION, count - number))]
            text += sum(len(each.encode()) for each in texts)
            sample.append(texts[0])
            made.append(session(f"s{number:09}", texts, BEGUN + timedelta(minutes=number)))
        begun, busy = time.perf_counter(), time.process_time()
        await asyncio.gather(*(store.start(header, PREFIX, chain.nodes) for header, chain in made))
        await indexed(database)
        spent += time.perf_counter() - begun
        worked += time.process_time() - busy
    return count / spent, count / worked, text, sample


def session(name: str, texts: Sequence[str], at: datetime) -> tuple[Header, Transcript]:
    chain = Transcript(PREFIX.digest)
    for place, text in enumerate(texts):
        message, trust = (assistant(text), Trust.AGENT) if place % 2 else (user(text), Trust.OWNER)
        chain = chain.then(message, trust, at + timedelta(minutes=place))
    return Header(SessionId(name), at), chain


def asked(language: Language, sample: Sequence[str], queries: int) -> dict[str, list[str]]:
    """Return queries of each kind, all of which have an answer."""
    random, first = Random(11), len(EMPTY)
    plain = [text.split() for text in sample if " " in text and len(text.split()) > 30]
    han = [text for text in sample if " " not in text and len(text) > 30]
    rank = {word: place for place, word in enumerate(language.words)}

    def rare() -> Iterator[str]:
        words = random.choice(plain)
        yield max(words, key=lambda word: rank[word])

    def common() -> Iterator[str]:
        yield " ".join(language.words[first + place] for place in random.sample(range(60), 2))

    def question(size: int) -> Iterator[str]:
        words = [word for text in random.choices(plain, k=size // 5) for word in text if word not in EMPTY]
        told = random.sample(words, min(size, len(words)))
        yield f"what was it that you said about the {' and the '.join(told)} when we talked?"

    def phrase() -> Iterator[str]:
        words = random.choice(plain)
        start = random.randrange(len(words) - 4)
        yield '"' + " ".join(words[start : start + 4]) + '"'

    def prefix() -> Iterator[str]:
        word = max(random.choice(plain), key=len)
        yield f"{word[: random.randint(3, len(word) - 1)]}*"

    def letters() -> Iterator[str]:
        text = random.choice(han)
        start = random.randrange(len(text) - 4)
        yield text[start : start + 4]

    kinds: dict[str, Callable[[], Iterator[str]]] = {
        "rare": rare,
        "common": common,
        "question of 5": partial(question, 5),
        "question of 20": partial(question, 20),
        "phrase": phrase,
        "prefix": prefix,
        "CJK": letters,
    }
    return {kind: [next(make()) for _ in range(queries)] for kind, make in kinds.items()}


async def timed(recall: SqliteRecall, queries: Sequence[Query]) -> list[tuple[float, float]]:
    """Return milliseconds of wall and processor time: on a shared machine the latter is more reliable."""
    took = []
    for query in queries:
        begun, busy = time.perf_counter(), time.process_time()
        found = await recall.search(query)
        took.append(((time.perf_counter() - begun) * 1000, (time.process_time() - busy) * 1000))
        if not found.hits and query.since is None:
            raise SystemExit(f"nothing was found for: {query.words}")
    return took


async def beside(path: Path, recall: SqliteRecall, queries: Sequence[Query]) -> Row:
    """Run the same questions while three other processes write, one message after the other."""
    command = (sys.executable, "-m", "benchmarks.recall", "--write", str(path), "--seed")
    writers = [subprocess.Popen((*command, str(seed)), stdout=subprocess.PIPE) for seed in range(3)]
    try:
        for writer in writers:
            await asyncio.to_thread(writer.stdout.readline if writer.stdout else bytes)
        took = await timed(recall, queries)
        failed = sum(writer.poll() is not None for writer in writers)
    finally:
        for writer in writers:
            writer.terminate()
            writer.communicate()
    what, found, aim, reached = spread("question, three processes write", 2 * BOUNDED, took)
    longest = max(each for each, _ in took)
    return what, f"{found}, the longest {longest:.1f} ms, {failed} errors", aim, reached and not failed


async def write(path: Path, seed: int) -> None:
    """Add one message after the other until it is stopped."""
    language, store = Language(100 + seed), SqliteSessions(Database.open(path))
    header, chain = session(f"w{seed}-{os.getpid()}", [language.message()], datetime.now(UTC))
    await store.start(header, PREFIX, chain.nodes)
    print("writing", flush=True)
    while True:
        chain = chain.then(user(language.message()), Trust.OWNER, datetime.now(UTC))
        await store.append(header.id, chain.nodes[-1:])


if __name__ == "__main__":
    main()
