"""`hone recall`: how search finds what was said."""

import click

from hone.features.recall.evaluating import evaluate, questions


@click.group(short_help="Measure how well search finds what was said.")
def recall() -> None:
    """Measure how well search finds what was said."""


recall.add_command(evaluate)
recall.add_command(questions)
