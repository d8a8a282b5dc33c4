"""Show the result of an evaluation: a table for the terminal, Markdown for a page, a value for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins

from hone.features.recall.evaluation import WORDS, Evaluation
from hone.features.recall.metrics import Standing

COLUMNS = ("R@1", "R@5", "R@10", "MRR")
CELL = 6


def lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield a table: a row for each kind, four figures for each search."""
    names = list(evaluation.searches)
    first = evaluation.searches[names[0]]
    width = max(map(len, ("kind", *first)))
    yield evaluation.name
    if len(names) > 1:
        block = CELL * len(COLUMNS)
        yield (" " * (width + 12) + "".join(f"  {_title(name):<{block - 2}}" for name in names)).rstrip()
    heads = "".join(f"{head:>{CELL}}" for head in COLUMNS) * len(names)
    yield f"{'kind':<{width}}  questions {heads}"
    for kind, shown in first.items():
        cells = "".join(f"{cell:>{CELL}}" for name in names for cell in figures(_of(evaluation, name, kind)))
        yield f"{kind:<{width}}  {shown.questions:>9,} {cells}"


def markdown(evaluation: Evaluation, *, kinds: bool) -> Iterator[str]:
    """Yield the rows of a Markdown table: the search, with `kinds` the kind, the questions, the figures."""
    for name, found in evaluation.searches.items():
        for number, (kind, standing) in enumerate(found.items()):
            if kinds or not number:
                cells = [
                    _title(name),
                    *([kind] if kinds else []),
                    str(standing.questions),
                    *figures(standing),
                ]
                yield f"| {' | '.join(cells)} |"


def head(*columns: str) -> tuple[str, str]:
    """Return the header of a Markdown table with these columns before the questions and the figures."""
    measured = ("questions", *COLUMNS)
    return f"| {' | '.join((*columns, *measured))} |", f"|{'---|' * len(columns)}{'---:|' * len(measured)}"


def figures(standing: Standing) -> Sequence[str]:
    values = (standing.recall_1, standing.recall_5, standing.recall_10, standing.mrr)
    return [f"{value:.3f}" for value in values]


def data(evaluation: Evaluation) -> Any:
    return to_builtins(evaluation)


def _of(evaluation: Evaluation, name: str, kind: str) -> Standing:
    return evaluation.searches[name][kind]


def _title(name: str) -> str:
    """Describe a search: an embedder has the form PROVIDER/MODEL."""
    return "words alone" if name == WORDS else f"with {name}" if "/" in name else name
