"""`hone doctor`: is everything there, what is in force, and what to do about the rest."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import click

from hone.cli.main import FAILED, Options
from hone.core.visible import visible


@click.command(short_help="Check the home folder, the model and the sandbox.")
@click.pass_obj
def doctor(options: Options) -> int:
    """Check the home folder, the model and the sandbox, and say what to do about what is missing."""

    async def act() -> bool:
        well = True
        async for fine, line in examine(options):
            well = well and fine
            click.echo(f"{'✓' if fine else '✗'} {visible(line)}")
        return well

    return 0 if asyncio.run(act()) else FAILED


async def examine(options: Options) -> AsyncIterator[tuple[bool, str]]:
    """What was found, line by line, and whether it is as it should be."""
    from hone.app import Hone
    from hone.core.errors import HoneError

    async with Hone(home=options.home) as hone:
        yield _home(hone.home)
        try:
            count = len(await hone.sessions.list(None, None))
            yield True, f"sessions: {count} can be listed"
        except HoneError as error:
            yield False, f"sessions: {error}"
        try:
            session = await hone.session(options.model)
            yield True, f"model: {session.agent.prefix.model}"
        except HoneError as error:
            first, *more = str(error).splitlines()
            yield False, f"model: {first}" + (" See hone config." if more else "")
        trusted = "trusted" if hone.folders.trusts(hone.folder) else "not trusted; see hone trust --help"
        yield True, f"folder: {hone.folder} is {trusted}"
        held, lines = await hone.sandbox()
        for number, line in enumerate(lines):
            yield held or number > 0, line


def _home(home: Path) -> tuple[bool, str]:
    if not home.exists():
        return True, f"home: {home} is made with the first message"
    mode = home.stat().st_mode & 0o077
    if mode:
        return False, f"home: {home} can be entered by others; close it with: chmod 700 {home}"
    if not os.access(home, os.W_OK):
        return False, f"home: {home} cannot be written; conversations are not kept"
    return True, f"home: {home}"
