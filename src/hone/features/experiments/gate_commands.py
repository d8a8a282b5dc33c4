"""`hone experiment gate`: which lessons have to prove themselves on held-out tasks, and how far they are."""

from collections.abc import Iterator
from typing import Any

import click

from hone.app import Hone
from hone.cli.context import with_home, writable_keeper
from hone.cli.options import Options
from hone.cli.output import echo, echo_json
from hone.features.experiments.gate import FEWEST, Gate, GateItem
from hone.features.experiments.held_out import TaskPool
from hone.features.experiments.values import PAIRS

OFF = "The gate is off. To try learned skills on your tasks: hone config set learning.gate skills"


@click.command(short_help="Show which lessons have to prove themselves, and how far they are.")
@click.option(
    "--run", "runs", is_flag=True, help="Run the pairs now, until all is decided or today's budget is spent."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def gate(options: Options, runs: bool, as_json: bool) -> None:
    """Show which lessons have to prove themselves on held-out tasks, and how far they are.

    Two of three sessions with recorded tasks are held out. Hone tries a lesson on those that it was not
    learned from, in the background and within learning.daily. A lesson that helps is confirmed, one that
    harms is proposed for removal, any other stays as it is. Set learning.gate to skills or all to turn this
    on.
    """

    async def act(hone: Hone) -> dict[str, Any]:
        made, said = Gate(hone), list[str]()
        if runs:
            writable_keeper(hone)
        while runs and (lines := await made.step()) is not None:
            said += lines
        pool, items = TaskPool(hone), await made.survey()
        return {
            "gate": hone.settings.learning.gate,
            "tasks": len(pool.tasks),
            "held_out": len(pool.held_out),
            "budget": await made.over_budget(),
            "lessons": [_data(each) for each in items],
            "said": said,
        }

    found = with_home(options, act)
    if as_json:
        echo_json(found)
    else:
        echo(_describe(found))


def _data(item: GateItem) -> dict[str, Any]:
    decision = item.finding.decision if item.finding else None
    return {
        "lesson": item.label,
        "change": item.candidate.change,
        "state": item.state,
        "tasks": len(item.tasks),
        "pairs": decision.pairs if decision else 0,
        "wins": decision.wins if decision else 0,
        "losses": decision.losses if decision else 0,
    }


def _describe(found: dict[str, Any]) -> Iterator[str]:
    yield from found["said"]
    if found["gate"] == "off":
        yield OFF
        return
    tasks = "1 task is recorded" if found["tasks"] == 1 else f"{found['tasks']} tasks are recorded"
    yield f"The gate is on: {found['gate']}. {tasks}, {found['held_out']} held out."
    for each in found["lessons"]:
        yield f"{each['lesson']} (change {each['change']}): {each['state']}"
    if not found["lessons"]:
        yield "No lesson has to prove itself."
    if found["held_out"] < FEWEST:
        yield f"At least {FEWEST} held-out tasks are needed. Record more: hone experiment new --from SESSION"
    yield found["budget"] or f"A lesson takes {2 * PAIRS} runs at most, within learning.daily."
