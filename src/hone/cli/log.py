"""`hone log`, `hone show`, `hone diff`: list and show changes."""

import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from hone.app import Hone
from hone.cli import changes
from hone.cli.context import in_home, ledger_of
from hone.cli.options import limit_option, parse_age
from hone.cli.output import day, screen_width, to_json
from hone.cli.render import paint_for
from hone.core.errors import Refused
from hone.core.ledger import (
    COPY,
    ITEM,
    MEMORY,
    PROJECT,
    SECTION,
    SKILL,
    USER,
    Actor,
    ChangeId,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Entry,
    project,
    skill,
)
from hone.core.messages import digest
from hone.core.visible import one_line, path_to_text
from hone.knowledge import descriptions, places, wording
from hone.knowledge.chains import Link, read_chain
from hone.knowledge.folding import Files, Step, fold, load_held, steps
from hone.knowledge.journal import entries
from hone.knowledge.keeper import Keeper
from hone.knowledge.sections import find_new_entries
from hone.knowledge.skills.facts import content_digest
from hone.knowledge.snapshots import journals
from hone.knowledge.sources import quote

ACTORS = ("owner", "agent", "review", "curator", "experiment", "client")
ID = click.IntRange(1)


def _moment(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    if not text:
        return None
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).astimezone()
    try:
        return datetime.now(UTC) - parse_age(text)
    except click.UsageError:
        raise click.UsageError(
            f"{text!r} is neither an age nor a date. Write 12h, 30d or 8w, or 2026-11-01."
        ) from None


@click.command(short_help="List the changes to what Hone knows.")
@click.option(
    "--target",
    "-t",
    default="",
    metavar="TARGET",
    help="memory, user, project (this folder), project:FOLDER or a skill's name; skill: means all skills, "
    "item: all memory items.",
)
@click.option("--actor", "-a", type=click.Choice(ACTORS), help="Who changed it.")
@click.option(
    "--since", metavar="WHEN", callback=_moment, help="An age like 12h, 2d, 8w, or a date like 2026-11-01."
)
@limit_option("How many, newest first.")
@click.option("--chain", type=ID, metavar="ID", help="What change ID replaced, and what replaced it.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def log(
    hone: Hone,
    target: str,
    actor: str | None,
    since: datetime | None,
    limit: int,
    chain: ChangeId | None,
    as_json: bool,
) -> Iterable[str]:
    """List the changes of the journal and the skills, the newest first.

    Each line begins with the text of the change. A change that waits for you has no effect yet: see hone
    pending. An unconfirmed change is in effect, but you did not say it in these words: read it, and undo it
    if it is wrong.
    """
    keeper = ledger_of(hone)
    # Merge the owner's manual edits first, so that they are in the log like everything else.
    for place in journals(hone.folder):
        await keeper.text(place)
    await hone.library.listed()
    if chain:
        links = await read_chain(keeper.ledger, chain)
        return to_json([link_data(each) for each in links]) if as_json else map(tell_link, links)
    entries = await keeper.ledger.entries(
        ChangeQuery(
            target=target_of(target, path_to_text(hone.folder)) if target else "",
            actor=Actor(actor) if actor else None,
            since=since,
            limit=limit,
        )
    )
    found = await descriptions.describe(keeper, entries)
    if as_json:
        return to_json([descriptions.data(each) for each in found])
    parts = () if target or actor or since else hone.parts("log_lines")
    others = [line for part in parts for line in await part.log_lines(limit)]
    own = [changes.table(found, screen_width(), paint_for(sys.stdout))] if found else []
    if own or others:
        return (*own, *others)
    return "No change matches." if target or actor or since else "Nothing has been learned or changed yet."


@click.command(short_help="Show one change: who made it, why, and what it did.")
@click.argument("id", type=ID)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@in_home
async def show(hone: Hone, id: ChangeId, as_json: bool) -> Iterable[str]:
    """Show the change ID: who made it, why, what it rests on, what it did."""
    keeper, paint = ledger_of(hone), paint_for(sys.stdout)
    entry = await keeper.ledger.entry(id)
    grounds = [each async for each in _grounds(hone, entry)]
    [change] = await descriptions.describe(keeper, [entry])
    if as_json:
        return to_json(descriptions.data(change))
    diff = changes.diff(entry.change.target, change.steps, paint)
    links = await read_chain(keeper.ledger, id)
    chain = map(tell_link, links) if len(links) > 1 else ()
    return (*changes.heading(change, paint), *grounds, *await _measured(hone, entry), *diff, *chain)


async def _measured(hone: Hone, entry: Entry) -> Sequence[str]:
    """Return what was measured about a change's lessons that are still in effect."""
    target, keeper = entry.change.target, hone.keeper
    if target.startswith(SKILL):
        files = await keeper.files(target)
        return (
            await hone.findings("skill", target.removeprefix(SKILL), content_digest(files)) if files else ()
        )
    if places.is_outside(target) or not entry.change.deltas:
        return ()
    there = entries(await keeper.text(target))
    came = [text for text in await find_new_entries(keeper, entry) if text in there]
    found = [await hone.findings("entry", target, digest(text.encode())) for text in sorted(came)]
    return [line for lines in found for line in lines]


def tell_link(each: Link) -> str:
    """Describe one step of a chain of replacements."""
    entry = each.entry
    name = one_line(entry.change.author.name, 40)
    added = "brought back" if entry.change.kind is ChangeKind.UNDO else "added"
    deed = added if not each.before else "replaced it with" if each.now else "removed"
    text = each.now or " / ".join(each.before)
    return f"{day(entry.at)}  change {entry.id}, by {name}, {deed}: {one_line(text, 300)}"


def link_data(link: Link) -> dict[str, object]:
    """Return a step for programs."""
    entry = link.entry
    return {
        "change": entry.id,
        "at": entry.at.isoformat(),
        "actor": entry.change.author.actor,
        "deed": entry.change.kind,
        "replaced": list(link.before),
        "text": link.now,
    }


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
@in_home
async def diff(hone: Hone, id: ChangeId, other: ChangeId | None) -> Iterable[str]:
    """Show what the change ID did, as a unified diff.

    With OTHER, compare what the target held after each of the two changes.
    """
    keeper = ledger_of(hone)
    entry = await keeper.ledger.entry(id)
    last = await keeper.ledger.entry(other) if other is not None else None
    made = await (_between(keeper, entry, last) if last else wording.steps(keeper.ledger, entry))
    return changes.diff(entry.change.target, made, paint_for(sys.stdout))


async def _between(keeper: Keeper, first: Entry, last: Entry) -> Sequence[Step]:
    if first.change.target != last.change.target:
        raise Refused(
            f"Change {first.id} is about {first.change.target}, change {last.id} about {last.change.target}; "
            "only changes to the same target can be compared."
        )
    for entry in (first, last):
        if entry.change.standing is ChangeState.PENDING:
            raise Refused(
                f"Change {entry.id} did not take effect. To see what it would do: hone diff {entry.id}"
            )
    return steps(*[await _held_after(keeper, entry) for entry in (first, last)])


async def _held_after(keeper: Keeper, last: Entry) -> Files:
    """Return what the target held then: its changes up to that one, in order."""
    held: dict[str, str] = {}
    for entry in reversed(await keeper.ledger.entries(ChangeQuery(target=last.change.target))):
        if entry.id <= last.id and entry.change.standing is ChangeState.ACTIVE:
            held = fold(held, entry.change)
    return await load_held(keeper.ledger, held)


def target_of(word: str, folder: str) -> str:
    """Return the ledger's name of a target; with a final colon, it matches all that begin with it."""
    if word in (MEMORY, USER, SKILL, PROJECT) or word.startswith((SKILL, ITEM, COPY, SECTION)):
        return word
    if word == PROJECT[:-1]:
        return project(folder)
    if word.startswith(PROJECT):
        return project(path_to_text(Path(word.removeprefix(PROJECT)).expanduser().resolve()))
    return skill(word)
