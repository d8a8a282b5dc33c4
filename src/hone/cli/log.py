"""`hone log`, `hone show`, `hone diff`: what was changed in what Hone knows, by whom and how."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from hone.app import Hone
from hone.cli import changes
from hone.cli.context import look_around, with_keeper
from hone.cli.options import Options, parse_age
from hone.cli.output import columns, echo, echo_json
from hone.cli.render import paint_for
from hone.core.errors import Refused
from hone.core.ledger import (
    MEMORY,
    PROJECT,
    SKILL,
    USER,
    Actor,
    ChangeId,
    ChangeQuery,
    ChangeState,
    Entry,
    Target,
    project,
    skill,
)
from hone.knowledge import descriptions
from hone.knowledge.descriptions import DescribedChange
from hone.knowledge.folding import Step, steps
from hone.knowledge.keeper import Keeper
from hone.knowledge.sources import quote

ACTORS = ("owner", "agent", "review", "curator", "experiment")
ID = click.IntRange(1)


@click.command(short_help="List what was changed in what Hone knows.")
@click.option(
    "--target",
    "-t",
    default="",
    metavar="TARGET",
    help="memory, user, project (this folder), project:FOLDER or a skill's name; skill: means all skills.",
)
@click.option("--actor", "-a", type=click.Choice(ACTORS), help="Who changed it.")
@click.option("--since", metavar="WHEN", help="An age like 12h, 2d, 8w, or a date like 2026-11-01.")
@click.option(
    "--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many, newest first."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def log(
    options: Options, target: str, actor: str | None, since: str | None, limit: int, as_json: bool
) -> None:
    """List the changes of the journal and the skills, the newest first.

    A change that waits for you has no effect yet: see hone pending. One that is unconfirmed rests on
    nothing you said or did yourself.
    """
    start = moment_of(since) if since else None

    async def act(hone: Hone, keeper: Keeper) -> list[DescribedChange]:
        await look_around(hone)
        entries = await keeper.ledger.entries(
            ChangeQuery(
                target=target_of(target, str(hone.folder)) if target else "",
                actor=Actor(actor) if actor else None,
                since=start,
                limit=limit,
            )
        )
        return await descriptions.describe(keeper, entries)

    found = with_keeper(options, act)
    if as_json:
        echo_json([descriptions.data(each) for each in found])
    elif found:
        click.echo(changes.table(found, columns(), paint_for(sys.stdout)))
    else:
        anything = target or actor or since
        click.echo("No change is like this." if anything else "Nothing was learned or changed yet.")


@click.command(short_help="Show one change: by whom, why, from what, and how.")
@click.argument("id", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def show(options: Options, id: ChangeId, as_json: bool) -> None:
    """Show the change ID: who made it, why, what it rests on, what it did."""
    paint = paint_for(sys.stdout)

    async def act(hone: Hone, keeper: Keeper) -> tuple[DescribedChange, list[str]]:
        entry = await keeper.ledger.entry(id)
        grounds = [each async for each in _grounds(hone, entry)]
        return (await descriptions.describe(keeper, [entry]))[0], grounds

    change, grounds = with_keeper(options, act)
    if as_json:
        echo_json(descriptions.data(change))
        return
    echo((*changes.heading(change, paint), *grounds))
    echo(changes.diff(change.entry.change.target, change.steps, paint))


async def _grounds(hone: Hone, entry: Entry) -> AsyncIterator[str]:
    author = entry.change.author
    if author.parent:
        yield f"its session is a fork or branch of {author.parent}"
    for each in author.evidence:
        place = f"message {each.message} of session {each.session}"
        yield f"rests on {place} ({each.trust.name.lower()}): {await quote(hone.sessions, each)}"
    if author.evidence:
        yield f"least trusted in the conversation so far: {author.trust_floor.name.lower()}"
    for source in entry.change.sources:
        yield f"made from change {source}"


@click.command()
@click.argument("id", type=ID)
@click.argument("other", type=ID, required=False)
@click.pass_obj
def diff(options: Options, id: ChangeId, other: ChangeId | None) -> None:
    """Show what the change ID did, as a unified diff.

    With OTHER: the difference between what its target held after the one and after the other change.
    """

    async def act(_: Hone, keeper: Keeper) -> tuple[Target, Sequence[Step]]:
        entry = await keeper.ledger.entry(id)
        if other is None:
            return entry.change.target, await descriptions.steps(keeper, entry)
        return entry.change.target, await _between(keeper, entry, await keeper.ledger.entry(other))

    target, steps = with_keeper(options, act)
    echo(changes.diff(target, steps, paint_for(sys.stdout)))


async def _between(keeper: Keeper, first: Entry, last: Entry) -> Sequence[Step]:
    if first.change.target != last.change.target:
        raise Refused(
            f"Change {first.id} is about {first.change.target}, change {last.id} about {last.change.target}; "
            "only two states of the same can be compared."
        )
    for entry in (first, last):
        if entry.change.standing is ChangeState.PENDING:
            raise Refused(
                f"Change {entry.id} did not take effect, and so nothing was held after it. "
                f"What it would do: hone diff {entry.id}"
            )
    return steps(*[await _held_after(keeper, entry) for entry in (first, last)])


async def _held_after(keeper: Keeper, last: Entry) -> dict[str, bytes]:
    """What the target held then: its changes up to that one, in their order."""
    held: dict[str, str] = {}
    for entry in reversed(await keeper.ledger.entries(ChangeQuery(target=last.change.target))):
        if entry.id <= last.id and entry.change.standing is ChangeState.ACTIVE:
            for delta in entry.change.deltas:
                held.pop(delta.path, None)
                held |= {delta.path: delta.after} if delta.after else {}
    contents = await keeper.ledger.contents(set(held.values()))
    return {path: contents[name] for path, name in held.items()}


def target_of(word: str, folder: str) -> str:
    """What the ledger calls it; with a colon at the end, all that begin like this."""
    if word in (MEMORY, USER) or word in (SKILL, PROJECT) or word.startswith(SKILL):
        return word
    if word == PROJECT[:-1]:
        return project(folder)
    if word.startswith(PROJECT):
        return project(str(Path(word.removeprefix(PROJECT)).expanduser().resolve()))
    return skill(word)


def moment_of(text: str) -> datetime:
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).astimezone()
    try:
        return datetime.now(UTC) - parse_age(text)
    except click.UsageError:
        raise click.UsageError(
            f"{text!r} is neither an age nor a date. Write 12h, 30d or 8w, or 2026-11-01."
        ) from None
