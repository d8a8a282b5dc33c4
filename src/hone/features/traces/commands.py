"""`hone traces`: export conversations to a file, import them again, and show the tree they form."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.context import in_home, with_home, writable_keeper
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED, Options, confirm, parse_age
from hone.cli.output import columns, create, echo, number_of
from hone.core.errors import HoneError
from hone.core.ids import SessionId
from hone.core.ports import Header, Sessions, SessionSummary
from hone.core.secrets import redact
from hone.core.visible import one_line, visible
from hone.features.traces.export import Tree, choose, gather
from hone.features.traces.export import export as write
from hone.features.traces.restore import FoundTrace, RestoreState, RestoreStep, compare, read, restore
from hone.files.exports import note_export
from hone.runtime.export import lineage
from hone.settings import home_folder

FAULTS = 10
"""How many invalid lines to report with their reason."""


@click.group(cls=CommandGroup)
def traces() -> None:
    """Export conversations to a file, import them, draw their tree."""


@traces.command(short_help="Write the conversations as JSON, each message once.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write a new file.")
@click.option(
    "--since", metavar="TIME", help="Active since then: 12h, 30d, 8w, or a date such as 2026-03-01."
)
@click.option("--session", "ids", metavar="ID", multiple=True, help="This one and what was forked from it.")
@click.option("--include-reviews/--no-reviews", "reviews", default=True, help="With what Hone learned from.")
@click.option(
    "--raw", is_flag=True, help="The exact bytes, secrets included. Only then do all hashes stay the same."
)
@click.pass_obj
def export(
    options: Options, output: Path | None, since: str | None, ids: tuple[str, ...], reviews: bool, raw: bool
) -> int:
    """Write the leaves as JSON, a line each: the conversations that no other one extends.

    What several share is written once. Secrets are taken out unless you say --raw.
    """
    limit = parse_since(since) if since else None

    async def act(hone: Hone) -> Tree:
        store = hone.sessions
        wanted = [await store.find(id) for id in ids]
        chosen = choose(await store.list(None, None), since=limit, sessions=wanted, reviews=reviews)
        return await gather(store, chosen, None if raw else redact)

    tree = with_home(options, act)
    lines = write(tree, redacted=not raw)
    if output is None or str(output) == "-":
        echo(lines)
    else:
        create(output, "".join(f"{line}\n" for line in lines))
        note_export(options.home or home_folder(), output)
        click.echo(f"Wrote {one_line(str(output), 200)}: {_contents(tree)}.")
    if raw:
        click.echo("Nothing was taken out: secrets that were said are in it.", err=True)
    for sentence in tree.damaged:
        click.echo(visible(sentence), err=True)
    return FAILED if tree.damaged else 0


def parse_since(text: str) -> datetime:
    """Parse an age, or a date in local time."""
    try:
        return datetime.combine(date.fromisoformat(text), time()).astimezone()
    except ValueError:
        return datetime.now(UTC) - parse_age(text)


@traces.command("import", short_help="Store the sessions of a file that export wrote.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--own", is_flag=True, help="Vouch for the file: the owner's words in it count as yours.")
@click.option("--dry-run", is_flag=True, help="Show what there is, and store nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def import_(options: Options, file: Path, own: bool, dry_run: bool, yes: bool) -> int:
    """Store the sessions of a FILE that `export` wrote, with the same ids and hashes.

    Hone shows first what it holds. It stores nothing twice and overwrites nothing. Invalid lines are left out
    and counted.
    """
    found = read(_read(file).split(b"\n"))

    async def act(hone: Hone) -> int:
        steps = await compare(hone.sessions, found.tree, own=own)
        _tell(found, steps, own=own)
        if dry_run:
            return 0
        writable_keeper(hone)
        return await _store(hone, found, steps, yes=yes)

    return with_home(options, act) or (FAILED if found.faults else 0)


def _read(file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise HoneError(f"{file} cannot be read: {error.strerror}.") from error


def _tell(found: FoundTrace, steps: Sequence[RestoreStep], *, own: bool) -> None:
    click.echo(f"Found {_contents(found.tree)}.")
    ids: dict[RestoreState, list[str]] = defaultdict(list)
    for step in steps:
        ids[step.state].append(step.trace.header.id)
    news, longer, same, other = (ids[each] for each in RestoreState)
    click.echo(f"{len(news):,} new, {len(longer):,} longer than here, {len(same):,} here already.")
    if other:
        click.echo(
            f"{number_of(len(other), 'session')} of the same name continued differently here and stay:"
        )
        click.echo(f"  {' '.join(other)}")
    if found.faults:
        click.echo(f"{number_of(len(found.faults), 'line')} did not hold and were left out:")
        for fault in found.faults[:FAULTS]:
            click.echo(f"  {one_line(fault, 200)}")
    if (news or longer) and not own:
        click.echo(
            "Their words count as foreign: lessons from them wait for you. --own vouches for the file."
        )


async def _store(hone: Hone, found: FoundTrace, steps: Sequence[RestoreStep], *, yes: bool) -> int:
    due = [step for step in steps if step.state in (RestoreState.NEW, RestoreState.LONGER)]
    count = number_of(len(due), "session")
    if not due:
        click.echo("There is nothing to store.")
        return 0
    alone = f"{count} would be stored. Hone cannot ask here. Add --yes."
    if not confirm(f"Store {count}?", alone, yes=yes):
        click.echo("Nothing was stored.")
        return FAILED
    failed = await restore(hone.sessions, found.tree, due)
    click.echo(f"Stored {number_of(len(due) - len(failed), 'session')}.")
    for step in failed:
        click.echo(f"{step.trace.header.id} has changed here meanwhile and stays unchanged.", err=True)
    return FAILED if failed else 0


def _contents(tree: Tree) -> str:
    marked = f"; secrets are taken out of {number_of(len(tree.redacted), 'message')}" if tree.redacted else ""
    leaves = number_of(len(tree.leaves()), "leaf", "leaves")
    return (
        f"{number_of(len(tree.traces), 'session')}, {leaves}, {number_of(len(tree.nodes), 'message')}{marked}"
    )


@traces.command(short_help="Draw which sessions came from which.")
@click.argument("session", required=False)
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many trees.")
@in_home
async def tree(hone: Hone, session: str | None, limit: int) -> Iterable[str]:
    """Draw which sessions came from which: branches, reviews, compressions and tasks given away.

    With a SESSION only the tree it belongs to.
    """
    store, found = hone.sessions, await hone.sessions.list(None, None)
    headers = {each.header.id: each.header for each in found}
    tops = {each.header.id: lineage(headers, each.header)[-1].id for each in found}
    roots = list(dict.fromkeys(tops.values()))[:limit]
    if session:
        roots = [tops[await store.find(session)]]
    shown = [each for each in found if tops[each.header.id] in roots]
    rows = {each.header.id: await _row(store, each) for each in shown}
    width = max(60, columns())
    lines = [one_line(line, width) for root in roots for line in _draw(root, rows)]
    return lines or "There are no conversations yet. Start one: hone"


class Row(Struct, frozen=True):
    header: Header
    words: str
    left: tuple[str, ...]
    """Its lines before it was shortened or moved."""


async def _row(store: Sessions, summary: SessionSummary) -> Row:
    header = summary.header
    spent = [each.usage for each in await store.spending(header.id)]
    tokens = sum(use.input + use.output for use in spent)
    origin = "branch" if header.parent and header.origin == "user" else header.origin
    shared = f" ({header.shared:,} shared)" if header.shared else ""
    counts = f"{number_of(summary.messages, 'message')}{shared}, {tokens:,} tokens"
    left = [
        f"before: {number_of(len(line.transcript), 'message')} under {line.prefix.model}"
        for line in await store.earlier(header.id)
    ]
    about = header.title or summary.opening if header.origin == "user" and not header.shared else header.title
    return Row(header, f"{origin}: {counts}" + (f" · {about}" if about else ""), tuple(left))


def _draw(root: SessionId, rows: Mapping[SessionId, Row]) -> Iterator[str]:
    """Draw the tree without recursion: a chain of branches can be longer than the stack."""
    children: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows.values(), key=lambda row: (row.header.shared, row.header.created, row.header.id)):
        if row.header.parent and row.header.id != root:
            children[row.header.parent].append(row)
    waiting = [(rows[root], "", "")]
    while waiting:
        row, lead, below = waiting.pop()
        yield f"{lead}{row.header.id} {row.words}"
        own = children[row.header.id]
        for words in row.left:
            yield f"{below}{'│' if own else ' '}  {words}"
        last = len(own) - 1
        for index in reversed(range(len(own))):
            corner, under = ("└─ ", "   ") if index == last else ("├─ ", "│  ")
            waiting.append((own[index], below + corner, below + under))
