"""`hone why`: say which lessons shaped an answer, and how to correct them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import Options
from hone.cli.output import echo, echo_json, number_of
from hone.core.errors import Missing
from hone.core.value import replace
from hone.features.attribution.answers import find_answer
from hone.features.attribution.citing import ask as ask_model
from hone.features.attribution.explaining import explain
from hone.features.attribution.report import to_data, verification_data, write_lines, write_verification
from hone.features.attribution.values import Explanation, JudgedItem, Method, Use
from hone.features.attribution.verifying import (
    PAIRS,
    Ablation,
    AblationVerdict,
    Progress,
    Verification,
    Verifier,
)

FEW = 5
"""How many items to verify unless some are named."""
EPILOG = """\b
Examples:
  hone why             the last answer
  hone why 3f2a:14     that of the turn with message 14
  hone why --verify    try the turn without each lesson
  hone why --item 2    only without the second one
"""


def parse_answer(_: click.Context, __: click.Parameter, value: str) -> tuple[str, int]:
    """Return the start of a session's id and a message's number; empty and 0 stand for the last ones."""
    session, colon, number = value.partition(":")
    if colon and not (number.isascii() and number.isdigit() and len(number) < 10):
        raise click.BadParameter(f"{value!r} is neither SESSION nor SESSION:MESSAGE, as in 3f2a:14.")
    return session, int(number) if colon else 0


@click.command(epilog=EPILOG, short_help="Say which lessons shaped an answer.")
@click.argument("answer", default="", callback=parse_answer, metavar="[ANSWER]")
@click.option("--all", "all_items", is_flag=True, help="List everything else in the prompt, too.")
@click.option("--ask", is_flag=True, help="Ask the model which of them it relied on: one call.")
@click.option("--verify", is_flag=True, help="Run the turn again without each of them, several times.")
@click.option("--item", "numbers", type=click.IntRange(1), multiple=True, help="Verify this one. Repeatable.")
@click.option(
    "--pairs",
    type=click.IntRange(6, 40),
    default=PAIRS,
    show_default=True,
    help="Pairs of runs for each of them, at most.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with everything that was in the prompt.")
@click.pass_obj
def why(
    options: Options,
    /,
    answer: tuple[str, int],
    all_items: bool,
    ask: bool,
    verify: bool,
    numbers: tuple[int, ...],
    pairs: int,
    as_json: bool,
) -> None:
    """Say which journal entries, skills, templates and memories shaped an answer.

    ANSWER is SESSION or SESSION:MESSAGE; without it, the last answer of the last conversation is meant. What
    was in the prompt is read from the stored conversation. Skills that were read are known by record, entries
    by a measure that needs no model. --verify finds out by running the turn again, in a copy of the folder
    and without network.
    """

    async def act(hone: Hone) -> tuple[Explanation, Verification | None]:
        explanation = await explain(hone, await find_answer(hone.sessions, *answer))
        if ask:
            explanation = await ask_model(hone, explanation)
        if not verify and not numbers:
            return explanation, None
        chosen = choose_items(explanation, numbers)
        with show_progress(len(chosen), pairs) as tell:
            verifier = Verifier(hone, explanation.answer, pairs)
            found = await verifier.verify([each.item for each in chosen], tell)
        return add_ablations(explanation, found.ablations), found

    explanation, found = with_home(options, act)
    if as_json:
        echo_json(to_data(explanation) | (verification_data(found) if found else {}))
        return
    echo(write_lines(explanation, all_items=all_items))
    if found:
        echo(("", *write_verification(found)))


def choose_items(explanation: Explanation, numbers: Sequence[int]) -> list[JudgedItem]:
    """Return the items to verify: those with these numbers, or the first that shaped the answer."""
    used = explanation.used
    if not used and not numbers:
        raise Missing("Nothing that Hone knows left a trace in this answer, so there is nothing to verify.")
    if wrong := [number for number in numbers if number > len(used)]:
        raise Missing(
            f"{wrong[0]} is not in the list, which has {number_of(len(used), 'item')}. See hone why."
        )
    return [used[number - 1] for number in numbers] if numbers else list(used[:FEW])


def add_ablations(explanation: Explanation, ablations: Sequence[Ablation]) -> Explanation:
    """Return an explanation in which an ablation has the last word."""
    found = {each.item: each for each in ablations if each.verdict is not AblationVerdict.UNTRIED}

    def judge(judged: JudgedItem) -> JudgedItem:
        ablation = found.get(judged.item)
        if ablation is None:
            return judged
        use = Use.USED if ablation.verdict is AblationVerdict.NEEDED else Use.UNLIKELY
        return replace(judged, use=use, by=(*judged.by, Method.ABLATION))

    return replace(explanation, items=tuple(map(judge, explanation.items)))


@contextmanager
def show_progress(items: int, pairs: int) -> Iterator[Progress]:
    """Show progress on standard error, if somebody watches."""
    most = pairs * (items + 1)
    with click.progressbar(
        length=most,
        label="Running the turn again",
        file=sys.stderr,
        show_pos=True,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        yield lambda done: bar.update(done - bar.pos)
