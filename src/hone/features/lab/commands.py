"""`hone lab`: a learning curve in a scripted world."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import Options, confirm
from hone.cli.output import create, echo_json, number_of
from hone.core.errors import Refused
from hone.core.model import total
from hone.features.lab.figures import sum_up
from hone.features.lab.learner import PROFILES
from hone.features.lab.play import LabArm, Played, play_all
from hone.features.lab.plot import Panel, picture
from hone.features.lab.real import LabBudget, LabEstimate, RealRun, estimate
from hone.features.lab.report import table, to_data
from hone.features.lab.world import SESSIONS, build
from hone.learning.lookback import Schedule

WORLDS = 3
USUAL = ("honest", "careless")
TITLE = "Tasks that succeed at the first answer, by session"
ALONE = "A real model costs money, and Hone cannot ask here. Add --yes."
UNSET = "Unset it: env -u HONE_LEARNING hone lab"
EPILOG = """\b
Examples:
  hone lab
  hone lab --learner perfect --worlds 10 --plot lab.svg
  hone lab --model openai/gpt-5.4-mini --budget 2
"""


class LabOptions(Struct, frozen=True):
    """What to play: see the options of the command."""

    learners: tuple[str, ...] = ()
    model: str = ""
    budget: float = 1.0
    worlds: int | None = None
    first: int = 1
    sessions: int = SESSIONS
    workers: int | None = None

    @property
    def seeds(self) -> range:
        return range(self.first, self.first + (self.worlds or (1 if self.model else WORLDS)))


@click.command(epilog=EPILOG, short_help="Watch a learner improve in a scripted world.")
@click.option(
    "--learner",
    "learners",
    multiple=True,
    type=click.Choice(list(PROFILES)),
    help="Who learns, from no errors to many. Repeatable.  [default: honest, careless]",
)
@click.option("--model", default="", metavar="PROVIDER/NAME", help="Let a real model learn instead.")
@click.option(
    "--budget", type=click.FloatRange(0.01), default=1.0, show_default=True, help="US dollars, with --model."
)
@click.option("--worlds", type=click.IntRange(1, 1_000), help="How many.  [default: 3, or 1 with --model]")
@click.option(
    "--first", type=click.IntRange(0), default=1, show_default=True, help="Number of the first world."
)
@click.option(
    "--sessions", type=click.IntRange(4, 200), default=SESSIONS, show_default=True, help="In a world."
)
@click.option("--workers", type=click.IntRange(1, 64), help="Worlds at a time.  [default: one per processor]")
@click.option("--plot", type=click.Path(path_type=Path), help="Save the curves as an SVG file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every point.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def lab(options: Options, /, plot: Path | None, as_json: bool, yes: bool, **chosen: Any) -> None:
    """Watch a scripted learner improve in scripted worlds, with learning on and off.

    A world has an owner with hidden rules, who asks for tasks and corrects what is wrong. Everything except
    the model is real: sessions, reviews, ledger and prompt. What the learner makes of a task depends only on
    what its prompt tells it. The same numbers give the same result.

    With --model, a real model does the tasks. Hone says what that may cost, and stops at the budget.
    """
    wanted = LabOptions(**chosen)
    if wanted.model and wanted.learners:
        raise click.UsageError("--learner is a scripted model and --model a real one: use one of them.")
    if os.environ.get("HONE_LEARNING") == Schedule.OFF:
        raise click.UsageError(f"HONE_LEARNING=off turns learning off in the lab, too. {UNSET}")
    panels = [_play_real(options, wanted, yes=yes)] if wanted.model else list(_play_scripted(wanted))
    figures = [arm for panel in panels for arm in panel.arms]
    if plot:
        create(plot, picture(panels, TITLE))
    if as_json:
        echo_json(to_data(figures, wanted.sessions, wanted.seeds))
    else:
        click.echo("\n\n".join("\n".join(table(each.title, each.arms)) for each in panels))


def _play_scripted(wanted: LabOptions) -> Iterator[Panel]:
    seeds, sessions, learners = wanted.seeds, wanted.sessions, wanted.learners or USUAL
    arms = [LabArm(name, learns) for name in learners for learns in (True, False)]
    jobs = [(arm, seed, sessions) for arm in arms for seed in seeds]
    hidden, label = not sys.stderr.isatty(), number_of(len(jobs), "world")
    with click.progressbar(length=len(jobs), label=label, file=sys.stderr, hidden=hidden) as bar:
        played = play_all(jobs, wanted.workers or os.cpu_count() or 1, lambda: bar.update(1))
    parts = [played[at : at + len(seeds)] for at in range(0, len(played), len(seeds))]
    figures = [sum_up(arm.name, part, sessions) for arm, part in zip(arms, parts, strict=True)]
    for at, name in enumerate(learners):
        yield Panel(name, tuple(figures[2 * at : 2 * at + 2]))


def _play_real(options: Options, wanted: LabOptions, *, yes: bool) -> Panel:
    seeds, sessions, budget = wanted.seeds, wanted.sessions, LabBudget(wanted.budget)

    async def act(hone: Hone) -> Panel:
        name = (await hone.models.find(wanted.model)).name
        every = 2 * len(seeds) * (sessions + len(build(seeds[0], sessions).exam))
        click.echo(_announce(name, estimate(hone.models.terms(name), every), every, budget), err=True)
        if not confirm("Start?", ALONE, yes=yes):
            raise Refused("Nothing was started.")
        run = RealRun(hone, name, budget)
        arms: dict[bool, list[Played]] = {True: [], False: []}
        hidden = not sys.stderr.isatty()
        with click.progressbar(length=every, label=name, file=sys.stderr, hidden=hidden) as bar:
            for seed in seeds:
                for learns, played in arms.items():
                    played.append(await run.play(build(seed, sessions), lambda: bar.update(1), learns=learns))
        click.echo(_tell_costs(run), err=True)
        if run.cut_off:
            raise Refused(
                "The budget is spent before the worlds are over. Set more with --budget, or fewer --sessions."
            )
        figures = [
            sum_up(f"{name}, learning {'on' if learns else 'off'}", played, sessions)
            for learns, played in arms.items()
        ]
        return Panel(name, tuple(figures))

    return with_home(options, act)


def _announce(name: str, needed: LabEstimate, sessions: int, budget: LabBudget) -> str:
    """Say what a run may cost, before it starts."""
    millions = f"{needed.tokens / 1e6:.1f} million tokens"
    size = f"{sessions} sessions with {name}: about {needed.calls:,} calls and {millions}"
    if needed.dollars is None:
        return f"{size}. Its price is not known; Hone stops after {budget.tokens / 1e6:.1f} million tokens."
    return f"{size}, ${needed.dollars:.2f} without a cache. Hone stops at ${budget.dollars:.2f}."


def _tell_costs(run: RealRun) -> str:
    usage = total(each.usage for each in run.costs)
    cost = "" if usage.cost is None else f", ${usage.cost:.2f}"
    return f"It took {number_of(len(run.costs), 'call')}, {usage.input + usage.output:,} tokens{cost}."
