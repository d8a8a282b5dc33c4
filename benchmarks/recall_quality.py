"""`python -m benchmarks.recall_quality`: recall and MRR on both bundled sets, single and merged.

`--write` puts the tables into docs/recall.md, between its two marks.
"""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

from benchmarks.bench import ROOT
from hone.features.recall import report
from hone.features.recall.bundled import BundledMessage, BundledPerson, BundledQuestion, people
from hone.features.recall.evaluation import Evaluation, Prepare, by_words, evaluate_people
from tests.recall.conversations import Conversation, Said, conversations

PAGE = ROOT / "docs" / "recall.md"
BEGIN, END = (
    "<!-- figures: written by `python -m benchmarks.recall_quality --write` -->",
    "<!-- end of figures -->",
)
HEAD = ("| search | kind | questions | R@1 | R@5 | R@10 | MRR |", "|---|---|---:|---:|---:|---:|---:|")


def first_set() -> list[BundledPerson]:
    """The set that weights and word lists were tuned on."""
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


SETS = {"first set, tuned on": first_set, "second set, kept apart": lambda: list(people())}


async def measured(prepare: Prepare = by_words) -> list[tuple[str, Evaluation]]:
    found = []
    for name, load in SETS.items():
        for merged in (False, True):
            found.append((name, await evaluate_people(load(), merged=merged, prepare=prepare)))
    return found


def pictured(found: Sequence[tuple[str, Evaluation]]) -> str:
    """Markdown: all questions of each set and home first, then the second set by kind."""
    tables = [tabled(f"{name}: {each.name}", [each], kinds=False) for name, each in found]
    second = [each for name, each in found if name.startswith("second")]
    tables += [tabled(f"By kind, {each.name}", [each], kinds=True) for each in second]
    return "\n\n".join(tables)


def tabled(title: str, evaluations: Sequence[Evaluation], *, kinds: bool) -> str:
    rows = [row for each in evaluations for row in report.markdown(each, kinds=kinds)]
    return "\n".join([f"{title[:1].upper()}{title[1:]}:", "", *HEAD, *rows])


def placed(page: str, figures: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_quality", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--page", type=Path, default=PAGE, help=argparse.SUPPRESS)
    options = parser.parse_args()
    figures = pictured(asyncio.run(measured()))
    if options.write:
        options.page.write_text(placed(options.page.read_text("utf-8"), figures), "utf-8")
    else:
        print(figures)


if __name__ == "__main__":
    main()
