"""`hone skills checks`: list the skills that carry checks, and how these ended."""

import click

from hone.app import Hone
from hone.cli.context import in_home
from hone.cli.output import lay_out, screen_width, to_json
from hone.features.checks.part import ChecksPart

TITLES = ("skill", "checks", "last run", "result")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def checks(hone: Hone, as_json: bool) -> str:
    """List the skills that carry checks, and how these ended.

    A skill whose check failed is switched off; hone skills show NAME prints the output. hone skills check
    runs the checks now.
    """
    found = await hone.part(ChecksPart).checker.list()
    if as_json:
        return to_json(found)
    rows = [tuple(str(each[title]) for title in ("name", "checks", "at", "result")) for each in found]
    return "\n".join(lay_out(TITLES, rows, screen_width())) if rows else "No skill carries checks."
