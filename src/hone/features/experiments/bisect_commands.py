"""`hone bisect`: find the change that broke a task."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import Options
from hone.cli.output import echo_json, number_of
from hone.core.ledger import ChangeId, LessonText
from hone.core.visible import one_line
from hone.features.experiments.bisecting import (
    MOST,
    Bisector,
    BisectResult,
    Progress,
    SuspectChange,
    read_history,
)
from hone.features.experiments.bisection import CERTAIN, Suspicion
from hone.features.experiments.part import ExperimentsPart
from hone.knowledge.wording import find_lessons

SHOWN = 3
"""How many changes to name if none is certain."""
EPILOG = """\b
Examples:
  hone bisect --task notes
  hone bisect --task notes --since 40
"""


@click.command(epilog=EPILOG, short_help="Find the change that broke a task.")
@click.option("--task", "name", required=True, metavar="NAME", help="A task of hone experiment.")
@click.option(
    "--since",
    type=click.IntRange(0),
    metavar="ID",
    help="The last change with which it worked. [default: when the task was recorded]",
)
@click.option(
    "--runs", type=click.IntRange(1, 10_000), default=MOST, show_default=True, help="How many at most."
)
@click.option("--model", default="", metavar="PROVIDER/NAME", help="Use this model instead of yours.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every count.")
@click.pass_obj
def bisect(options: Options, name: str, since: int | None, runs: int, model: str, as_json: bool) -> None:
    """Find the change of what Hone knows that made a task fail.

    Hone runs the task with what it knew at different times, each run in its own folder and home. A run may
    succeed or fail by chance, so each change has a probability, and Hone stops at 98%. Runs are not kept.
    """

    async def act(hone: Hone) -> tuple[BisectResult, dict[ChangeId, str]]:
        task = hone.part(ExperimentsPart).studies.task(name)
        history = await read_history(
            hone, Path(task.folder), None if since is None else ChangeId(since), task
        )
        with show_progress(name, len(history.suspects), runs) as tell:
            found = await Bisector(hone, model or options.model).find(task, history, runs, tell)
        return found, await _describe(hone, [each for _, each in _rank(found)])

    found, texts = with_home(options, act)
    if as_json:
        echo_json(_to_dict(name, found, texts))
    else:
        click.echo("\n".join(_tell(found, texts)))


@contextmanager
def show_progress(name: str, changes: int, most: int) -> Iterator[Progress]:
    """Show on standard error how many runs are done, if somebody watches."""
    hidden = not sys.stderr.isatty()
    label = f"{name}: {number_of(changes, 'change')}"
    with click.progressbar(length=most, label=label, file=sys.stderr, show_pos=True, hidden=hidden) as bar:

        def tell(done: int, _: Suspicion) -> None:
            bar.update(done - bar.pos)

        yield tell


def _rank(found: BisectResult) -> list[tuple[float, SuspectChange]]:
    """Return the most suspicious changes first."""
    weighed = zip(found.suspicion.changes, found.history.suspects, strict=True)
    return sorted(weighed, key=lambda each: -each[0])[:SHOWN]


async def _describe(hone: Hone, suspects: list[SuspectChange]) -> dict[ChangeId, str]:
    texts: dict[ChangeId, str] = {}
    for each in suspects:
        lessons: tuple[LessonText, ...] = tuple(await find_lessons(hone.ledger, each.entries))
        texts[each.id] = one_line("; ".join(lesson.text or lesson.replaced for lesson in lessons), 200)
    return texts


def _tell(found: BisectResult, texts: dict[ChangeId, str]) -> Iterator[str]:
    first, last = found.tallies[0], found.tallies[-1]
    yield f"Before: {first.successes} of {first.successes + first.failures} runs succeeded."
    yield f"Now: {last.successes} of {last.successes + last.failures} runs succeeded."
    ranked = _rank(found)
    if found.nothing:
        yield found.nothing
    elif found.culprit is not None:
        share, culprit = ranked[0]
        yield f"Change {culprit.id} broke it ({share:.0%}): {texts[culprit.id]}"
        yield f"Look at it: hone show {culprit.id}   Take it back: hone undo {culprit.id}"
    elif found.suspicion.none >= CERTAIN:
        yield "None of these changes broke it: it fails as often without them."
    else:
        yield "No change is certain yet. The most likely ones:"
        yield from (f"  {share:.0%}  change {each.id}: {texts[each.id]}" for share, each in ranked)
        yield f"More runs may decide: --runs {2 * max(found.runs, 1)}"
    yield f"It took {number_of(found.runs, 'run')} over {number_of(len(found.history.suspects), 'change')}."


def _to_dict(name: str, found: BisectResult, texts: dict[ChangeId, str]) -> dict[str, object]:
    culprit = found.culprit
    return {
        "task": name,
        "changes": len(found.history.suspects),
        "runs": found.runs,
        "culprit": culprit.id if culprit else None,
        "none": found.suspicion.none,
        "nothing": found.nothing,
        "suspects": [
            {"change": each.id, "probability": share, "text": texts[each.id]} for share, each in _rank(found)
        ],
        "states": [
            {"after": each.id, "successes": tally.successes, "failures": tally.failures}
            for each, tally in zip(found.history.suspects, found.tallies[1:], strict=True)
        ],
    }
