"""The home for the length of one command. What there is to say beside the result goes to standard error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from hone.app import Hone
from hone.cli.main import Options
from hone.cli.opening import news
from hone.core.errors import HoneError, Refused
from hone.core.visible import visible
from hone.knowledge.keeper import Keeper
from hone.knowledge.snapshots import journals

Result = TypeVar("Result")


def with_home(options: Options, act: Callable[[Hone], Awaitable[Result]]) -> Result:
    async def whole() -> Result:
        async with Hone(home=options.home) as hone:
            try:
                result = await act(hone)
            except HoneError as error:
                tell(hone, but=str(error))
                raise
            tell(hone)
            return result

    return asyncio.run(whole())


def with_keeper(options: Options, act: Callable[[Hone, Keeper], Awaitable[Result]]) -> Result:
    """For what needs the ledger. Raises Refused where there is none to open."""
    return with_home(options, lambda hone: act(hone, ledger_of(hone)))


def ledger_of(hone: Hone) -> Keeper:
    keeper = hone.keeper
    if keeper.rules.closed:
        raise Refused(f"{keeper.rules.closed} Its log cannot be opened either.")
    return keeper


def tell(hone: Hone, but: str = "") -> None:
    for sentence in news(hone):
        if sentence not in but:
            click.echo(visible(sentence), err=True)


async def look_around(hone: Hone) -> None:
    """Takes in what the owner has edited by hand, so that it is in the log like everything else."""
    for target in journals(hone.folder):
        await hone.keeper.text(target)
    await hone.library.listed()
