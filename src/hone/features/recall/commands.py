"""`hone recall`: search by meaning as well as by words."""

import click

from hone.features.recall.choosing import status, use


@click.group(short_help="Search by meaning, too: choose how, and see how far it is.")
def recall() -> None:
    """Search by meaning, too: choose how, and see how far it is."""


recall.add_command(use)
recall.add_command(status)
