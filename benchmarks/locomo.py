"""`python -m benchmarks.locomo PATH`: recall@10 on the LoCoMo set, beside a plain BM25.

The set is public, and its license forbids shipping it: get data/locomo10.json from the repository
snap-research/locomo on GitHub. Nothing in Hone was tuned on it. Adversarial questions are left out.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from math import log
from pathlib import Path
from typing import Any

from benchmarks.bench import ROOT
from benchmarks.embedders import preparing
from benchmarks.table import placed
from hone.core.recall import Hit, Passage, Query, SearchResult, said, stem
from hone.features.recall import report
from hone.features.recall.bundled import PACE, BundledMessage, BundledPerson, BundledQuestion
from hone.features.recall.evaluation import Evaluation, Prepare, Searches, evaluate_people
from hone.stores.home import Stores

PAGE = ROOT / "docs" / "recall.md"
MARK = "<!-- figures: written by `python -m benchmarks.locomo PATH --write` -->"
HOMES = {False: "one each", True: "one for all"}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}
PLACE = re.compile(r"D:?(\d+):(\d+)")
WORD = re.compile(r"\w+")
REFERENCE = "BM25"
K, B = 1.2, 0.75
COMMON = frozenset(
    WORD.findall(
        """
        a about an and are as at be been but by can did do does for from had has have he her his
        how i if in is it its me my of on or our s she so t that the their them they this to was
        we were what when where which who whom why will with would you your
        """
    )
)


class PlainBm25:
    """The textbook version: stems without the most common words, and no neighbors, dates, speakers or
    phrases."""

    def __init__(self, hits: list[Hit]) -> None:
        self.hits = hits
        words = [Counter(stems(hit.passage.text)) for hit in hits]
        self.mean = sum(each.total() for each in words) / len(words)
        self.found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for number, each in enumerate(words):
            for word, count in each.items():
                self.found[word].append((number, count, each.total()))

    async def search(self, query: Query) -> SearchResult:
        scores: dict[int, float] = defaultdict(float)
        for word in set(stems(query.words)) & self.found.keys():
            places = self.found[word]
            rarity = log(1 + (len(self.hits) - len(places) + 0.5) / (len(places) + 0.5))
            for number, count, length in places:
                scores[number] += rarity * count * (K + 1) / (count + K * (1 - B + B * length / self.mean))
        best = sorted(scores, key=lambda number: (-scores[number], number))
        return SearchResult(tuple(self.hits[number] for number in best[: query.limit]))


def stems(text: str) -> list[str]:
    return [stem(word) for word in WORD.findall(text.lower()) if word not in COMMON]


def beside(prepare: Prepare) -> Prepare:
    """Return Hone's own searches, and the reference over the same messages."""

    @asynccontextmanager
    async def both(stores: Stores) -> AsyncIterator[Searches]:
        async with prepare(stores) as searches:
            yield {**searches, REFERENCE: PlainBm25(await stored(stores))}

    return both


async def stored(stores: Stores) -> list[Hit]:
    hits = []
    for summary in await stores.sessions.list(None, None):
        session = await stores.sessions.load(summary.header.id)
        for number, node in enumerate(session.transcript.nodes, 1):
            passage = Passage(number, node.message.role, node.trust, node.at, said(node.message))
            hits.append(Hit(session.header, session.header.id, passage))
    return hits


def load(path: Path) -> list[BundledPerson]:
    """Load each conversation as a person: one speaker is the user, the other the assistant."""
    samples: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return [person(sample) for sample in samples]


def person(sample: dict[str, Any]) -> BundledPerson:
    sessions: list[tuple[BundledMessage, ...]] = []
    places: dict[str, tuple[int, int]] = {}
    for number, (turns, at) in enumerate(conversation(sample["conversation"])):
        sessions.append(tuple(message(turn, sample, at, place) for place, turn in enumerate(turns)))
        places |= {turn["dia_id"]: (number, place) for place, turn in enumerate(turns)}
    questions = tuple(asked for each in sample["qa"] if (asked := question(each, places)))
    return BundledPerson(sample["sample_id"], tuple(sessions), questions, sessions[-1][-1].at)


def conversation(raw: dict[str, Any]) -> Iterator[tuple[list[dict[str, Any]], datetime]]:
    for number in range(1, 100):
        if turns := raw.get(f"session_{number}"):
            told = f"{raw[f'session_{number}_date_time'].lower()} +0000"
            yield turns, datetime.strptime(told, "%I:%M %p on %d %B, %Y %z")


def message(turn: dict[str, Any], sample: dict[str, Any], at: datetime, place: int) -> BundledMessage:
    role = "user" if turn["speaker"] == sample["conversation"]["speaker_a"] else "assistant"
    picture = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    text = f"{turn['speaker']}: {turn['text']}{picture}"
    return BundledMessage(role, text, at + place * PACE)


def question(raw: dict[str, Any], places: dict[str, tuple[int, int]]) -> BundledQuestion | None:
    """Return a question; None for one without evidence. Some references are oddly written, and a few lead
    nowhere."""
    named = (f"D{int(one)}:{int(two)}" for one, two in PLACE.findall(" ".join(raw.get("evidence", ()))))
    evidence = tuple(dict.fromkeys(places[each] for each in named if each in places))
    if raw["category"] not in CATEGORIES or not evidence:
        return None
    return BundledQuestion(CATEGORIES[raw["category"]], raw["question"], str(raw.get("answer", "")), evidence)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locomo", description=__doc__)
    parser.add_argument("path", type=Path, help="locomo10.json")
    parser.add_argument("--merged", action="store_true", help="only all conversations in one home")
    parser.add_argument("--single", action="store_true", help="only each conversation in a home")
    parser.add_argument("--embedder", default="", help="measure with it, too, such as local/minilm")
    parser.add_argument("--write", action="store_true", help=f"the table, into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    both = options.merged == options.single
    rows = []
    for merged in (False, True):
        if both or merged == options.merged:
            found = asyncio.run(measured(options.path, options.embedder, merged=merged))
            print(*report.lines(found), sep="\n", flush=True)
            rows += [f"| {HOMES[merged]} {row}" for row in report.markdown(found, kinds=False)]
    if options.write:
        figures = "\n".join([*report.head("homes", "search"), *rows])
        PAGE.write_text(placed(PAGE.read_text("utf-8"), figures, MARK), "utf-8")


async def measured(path: Path, embedder: str, *, merged: bool) -> Evaluation:
    def tell(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done:,} of {total:,}", end="\r\n"[done == total], file=sys.stderr)

    async with preparing(embedder) as prepare:
        return await evaluate_people(load(path), merged=merged, prepare=beside(prepare), tell=tell)


if __name__ == "__main__":
    main()
