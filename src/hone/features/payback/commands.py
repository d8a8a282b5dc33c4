"""`hone payback`: what each lesson cost and saved."""

from collections.abc import Iterable

import click

from hone.app import Hone
from hone.cli.context import in_home, ledger_of
from hone.cli.output import lay_out, screen_width, to_json
from hone.features.payback import report
from hone.features.payback.matching import compare
from hone.features.payback.reading import DAYS, read_account
from hone.features.payback.unused import find_unused, tell_unused, unused_data

YEAR = 365
EPILOG = """\b
Examples:
  hone payback                  # every lesson
  hone payback 42               # of change 42
  hone payback release-notes    # a skill
"""


@click.command(epilog=EPILOG, short_help="Show what each lesson cost and what it saved.")
@click.argument("lesson", default="")
@click.option(
    "--days",
    type=click.IntRange(1, 3_660),
    help="How far to look back. [default: 30, for one lesson 365]",
)
@click.option("--unused", is_flag=True, help="List entries that were in many prompts and never used.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with exact amounts.")
@in_home
async def payback(hone: Hone, lesson: str, days: int | None, unused: bool, as_json: bool) -> Iterable[str]:
    """Show what lessons cost: their part of the reviews that wrote them, their bytes in every later request,
    and the curator. The parts add up to the whole bill.

    With LESSON (a change number, a skill's name or words of an entry), also show what it saved: by
    experiments, and by conversations before and after.
    """
    ledger_of(hone)
    if unused:
        found = await find_unused(hone)
        return to_json([unused_data(each) for each in found]) if as_json else tell_unused(found)
    span = days or (YEAR if lesson else DAYS)
    account = await read_account(hone, span)
    if not lesson:
        rows = await report.list_rows(hone, account)
        if as_json:
            return to_json(report.bill_data(account, rows))
        table = lay_out(report.TITLES, report.cells(rows, account.bill), screen_width(), report.RIGHT)
        if not account.bill.calls and not rows:
            return ["No model was called in this time, and nothing is known yet."]
        return [*report.summarize(account.bill, span), "", *table]
    one = account.lessons.find(lesson)
    row = await report.make_row(hone, account, one)
    comparison = await compare(hone, account, one)
    return to_json(report.detail_data(row, comparison)) if as_json else report.describe(row, comparison, span)
