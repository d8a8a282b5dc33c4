"""`hone recall`: search by meaning as well as by words, and how well it finds."""

import click

from hone.cli.help_formatter import CommandGroup
from hone.features.recall.choosing import status, use
from hone.features.recall.evaluating import evaluate, questions


@click.group(cls=CommandGroup, short_help="Set up search by meaning, and measure how well search works.")
def recall() -> None:
    """Search by meaning, too: choose how, see how far it is, and measure how well search finds."""


recall.add_command(use)
recall.add_command(status)
recall.add_command(evaluate)
recall.add_command(questions)
