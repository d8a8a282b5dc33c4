"""`python -m benchmarks.recall_quality`: recall and MRR on both bundled sets, single and merged.

`--write` puts the tables into docs/recall.md, between its two marks. `--embedder local/minilm` measures with
that one, too; HONE_HOME is where its weights are.
"""

import argparse
import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from pathlib import Path

from benchmarks.bench import ROOT
from benchmarks.embedders import preparing
from benchmarks.table import placed
from hone.features.recall import report
from hone.features.recall.bundled import BundledMessage, BundledPerson, BundledQuestion, people
from hone.features.recall.evaluation import Evaluation, evaluate_people
from tests.recall.conversations import Conversation, Said, conversations

PAGE = ROOT / "docs" / "recall.md"
MARK = "<!-- figures: written by `python -m benchmarks.recall_quality --write` -->"
HOMES = {False: "one each", True: "one for all"}


def first_set() -> list[BundledPerson]:
    """Return the set that weights and word lists were tuned on."""
    return [converted(conversation) for conversation in conversations()]


def converted(conversation: Conversation) -> BundledPerson:
    questions = tuple(
        BundledQuestion(
            asked.kind,
            asked.question,
            asked.answer,
            tuple((place.session - 1, place.message - 1) for place in asked.evidence),
        )
        for asked in conversation.questions
    )
    sessions = tuple(tuple(message(said) for said in session) for session in conversation.sessions)
    return BundledPerson(conversation.person, sessions, questions, sessions[-1][-1].at)


def message(said: Said) -> BundledMessage:
    return BundledMessage(said.role, said.text, said.at.replace(tzinfo=UTC))


SETS: dict[str, Callable[[], Sequence[BundledPerson]]] = {"first": first_set, "second": people}


async def measured(embedders: Sequence[str]) -> dict[tuple[str, str], Evaluation]:
    """Return the results by set and home, by words alone and with each embedder."""
    found: dict[tuple[str, str], Evaluation] = {}
    for embedder in embedders or [""]:
        async with preparing(embedder) as prepare:
            for name, load in SETS.items():
                for merged in (False, True):
                    made = await evaluate_people(load(), merged=merged, prepare=prepare)
                    before = found.get((name, HOMES[merged]), made)
                    searches = {**before.searches, **made.searches}
                    found[name, HOMES[merged]] = Evaluation(made.name, searches)
    return found


def pictured(found: Mapping[tuple[str, str], Evaluation]) -> str:
    """Return Markdown: all questions of each set and home, then the second set by kind."""
    rows = [
        f"| {name} | {home} {row}"
        for (name, home), each in found.items()
        for row in report.markdown(each, kinds=False)
    ]
    kinds = [
        f"| {home} {row}"
        for (name, home), each in found.items()
        if name == "second"
        for row in report.markdown(each, kinds=True)
    ]
    whole, apart = report.head("set", "homes", "search"), report.head("homes", "search", "kind")
    return "\n".join([*whole, *rows, "", "The second set by kind:", "", *apart, *kinds])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_quality", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--embedder", action="append", default=[], help="such as local/minilm; repeatable")
    parser.add_argument("--page", type=Path, default=PAGE, help=argparse.SUPPRESS)
    options = parser.parse_args()
    figures = pictured(asyncio.run(measured(options.embedder)))
    if options.write:
        options.page.write_text(placed(options.page.read_text("utf-8"), figures, MARK), "utf-8")
    else:
        print(figures)


if __name__ == "__main__":
    main()
