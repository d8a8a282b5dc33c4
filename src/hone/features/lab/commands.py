"""`hone lab`: a learning curve in a scripted world."""

import os
import sys
from collections.abc import Sequence

import click

from hone.cli.output import echo_json, number_of
from hone.features.lab.figures import sum_up
from hone.features.lab.learner import PROFILES
from hone.features.lab.play import LabArm, play_all
from hone.features.lab.report import table, to_data
from hone.features.lab.world import SESSIONS

EPILOG = """\b
Examples:
  hone lab
  hone lab --learner perfect --worlds 10 --plot lab.svg
"""


@click.command(epilog=EPILOG, short_help="Watch a learner improve in a scripted world.")
@click.option(
    "--learner",
    "learners",
    multiple=True,
    type=click.Choice(list(PROFILES)),
    help="Who learns, from no errors to many. Repeatable.  [default: honest, careless]",
)
@click.option("--worlds", type=click.IntRange(1, 1_000), default=3, show_default=True, help="How many.")
@click.option(
    "--first", type=click.IntRange(0), default=1, show_default=True, help="Number of the first world."
)
@click.option(
    "--sessions", type=click.IntRange(4, 200), default=SESSIONS, show_default=True, help="In a world."
)
@click.option("--workers", type=click.IntRange(1, 64), help="Worlds at a time.  [default: one per processor]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every point.")
def lab(
    learners: Sequence[str], worlds: int, first: int, sessions: int, workers: int | None, as_json: bool
) -> None:
    """Watch a scripted learner improve in scripted worlds, with learning on and off.

    A world has an owner with hidden rules, who asks for tasks and corrects what is wrong. Everything except
    the model is real: sessions, reviews, ledger and prompt. What the learner makes of a task depends only on
    what its prompt tells it. The same numbers give the same result.
    """
    seeds = range(first, first + worlds)
    arms = [LabArm(name, learns) for name in learners or ("honest", "careless") for learns in (True, False)]
    jobs = [(arm, seed, sessions) for arm in arms for seed in seeds]
    hidden = not sys.stderr.isatty()
    label = number_of(len(jobs), "world")
    with click.progressbar(length=len(jobs), label=label, file=sys.stderr, hidden=hidden) as bar:
        played = play_all(jobs, workers or os.cpu_count() or 1, lambda: bar.update(1))
    parts = [played[at : at + worlds] for at in range(0, len(played), worlds)]
    figures = [sum_up(arm.name, part, sessions) for arm, part in zip(arms, parts, strict=True)]
    if as_json:
        echo_json(to_data(figures, sessions, seeds))
    else:
        click.echo("\n".join(table(figures)))
