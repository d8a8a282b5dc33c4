"""`hone sessions`: list, search, read and manage past conversations."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from hone.app import Hone
from hone.cli import changes
from hone.cli.context import in_home, with_home, writable_keeper
from hone.cli.forget import counted, resting, withdrawn
from hone.cli.help_formatter import CommandGroup
from hone.cli.listing import as_json as printed
from hone.cli.listing import lines, table, transcript
from hone.cli.options import (
    FAILED,
    Options,
    at_terminal,
    complain,
    complete,
    confirm,
    limit_option,
    parse_age,
)
from hone.cli.output import create, echo, echo_prose, screen_width, to_json
from hone.cli.render import account, paint_for
from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.ports import SessionSummary, StoredSession
from hone.core.recall import Query
from hone.core.secrets import redact
from hone.core.turn import Origin
from hone.core.visible import one_line, visible
from hone.files.exports import note_export
from hone.registry import CHAT
from hone.runtime import export as exports
from hone.tools.recall import nothing

LESSONS = click.option(
    "--lessons",
    type=click.Choice(["keep", "withdraw"]),
    help="Keep or withdraw what was learned from them. [default: ask; kept with --yes]",
)


@click.group(cls=CommandGroup)
def sessions() -> None:
    """List, read, continue, copy and delete conversations.

    Name a session by its id. The beginning of the id is enough if it is unique.
    """


@sessions.command("list")
@limit_option("How many, latest first.")
@click.option("--all", "everything", is_flag=True, help="The forks Hone made for itself, too.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def list_(hone: Hone, limit: int, everything: bool, as_json: bool) -> str:
    """List sessions, the latest first."""
    found = await hone.sessions.list(limit, None if everything else Origin.USER)
    if as_json:
        return to_json([to_object(each) for each in found])
    return table(found, screen_width()) if found else "There are no conversations yet. Start one: hone"


@sessions.command(short_help="Find what was said in any of them.")
@click.argument("words", nargs=-1, required=True)
@limit_option("How many.", most=100, default=10)
@click.option(
    "--since", metavar="WHEN", help="Not older than a day like 2026-03-01, or an age: 12h, 30d, 8w."
)
@click.option("--all", "asides", is_flag=True, help="Also what Hone said to itself: reviews, helpers, notes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def search(
    options: Options, words: tuple[str, ...], limit: int, since: str | None, asides: bool, as_json: bool
) -> int:
    """Find what was said: a whole question, or WORDS, "phrases" and beginnings* of words.

    A message matches if it has any of the words; those with the most and the rarest words come first. A day
    or month in the question counts, too, and so does "I said" or "you suggested".
    """
    now = datetime.now(UTC)
    query = Query(
        " ".join(words),
        limit,
        _since(since, now) if since else None,
        today=now.astimezone().date(),
        asides=asides,
    )
    found = with_home(options, lambda hone: hone.recall.search(query))
    if as_json:
        click.echo(printed(found))
    elif found.hits:
        for line in lines(found, paint_for(sys.stdout)):
            print(line)
        if found.waiting:
            click.echo(f"{found.waiting:,} older messages cannot be found yet; search again.", err=True)
    else:
        echo_prose([nothing(found)])
    return 0 if found.hits else FAILED


@sessions.command()
@click.argument("id", shell_complete=complete("sessions"))
@click.option("--full", is_flag=True, help="Show calls and results whole.")
@click.option("--at", type=click.IntRange(1), help="Only the messages around this one.")
@click.option("--earlier", is_flag=True, help="As it was before notes took the place of older messages.")
@click.option("--json", "as_json", is_flag=True, help="Print what `export --format json` would.")
@in_home
async def show(
    hone: Hone, id: str, full: bool, at: int | None, earlier: bool, as_json: bool
) -> Iterable[str]:
    """Print the session ID as a readable transcript."""
    store, found = hone.sessions, await hone.sessions.find(id)
    lines = await store.earlier(found) if earlier else ()
    fitting = [line for line in lines if len(line.transcript) >= (at or 1)]
    stored, spent = fitting[-1] if fitting else await store.load(found), await store.spending(found)
    if as_json:
        return exported(stored, "json").removesuffix("\n")
    costs = ("", account(each.usage for each in spent)) if spent and at is None else ()
    paint, width = paint_for(sys.stdout), screen_width()
    return (*transcript(stored, paint, full=full, at=at, width=width), *costs)


@sessions.command()
@click.argument("id", shell_complete=complete("sessions"))
@click.pass_obj
def resume(options: Options, id: str) -> int:
    """Continue the session ID. The same as hone --resume ID."""
    code: int = import_object(CHAT)(options._replace(resume=id, last=False))
    return code


@sessions.command()
@click.argument("id", shell_complete=complete("sessions"))
@click.argument("title", nargs=-1, required=True)
@in_home
async def rename(hone: Hone, id: str, title: tuple[str, ...]) -> str:
    """Give the session ID a TITLE."""
    words, found = " ".join(" ".join(title).split()), await hone.sessions.find(id)
    await hone.sessions.rename(found, words)
    return f"{found} is now called {one_line(words, 100)!r}."


@sessions.command()
@click.argument("id", shell_complete=complete("sessions"))
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="markdown",
    show_default=True,
    help="Markdown to read, JSON for programs.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write a new file.")
@in_home
async def export(hone: Hone, id: str, form: str, output: Path | None) -> str:
    """Write the session ID as JSON or Markdown, with secrets taken out."""
    text = exported(await hone.sessions.load(await hone.sessions.find(id)), form)
    if output is None or str(output) == "-":
        return text.removesuffix("\n")
    create(output, text)
    note_export(hone.home, output)
    return f"Wrote {one_line(str(output), 200)}."


@sessions.command(short_help="Begin a new session with the messages of another.")
@click.argument("id", shell_complete=complete("sessions"))
@click.option("--at", type=int, help="The last message to copy, by its number in `show`. [default: all]")
@in_home
async def branch(hone: Hone, id: str, at: int | None) -> str:
    """Begin a new session with the messages of the session ID, and print its id."""
    writable_keeper(hone)
    return await hone.branch(id, at)


@sessions.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete("sessions"))
@LESSONS
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(options: Options, ids: tuple[str, ...], lessons: str | None, yes: bool) -> int:
    """Delete sessions for good.

    Messages that another session shares stay there, and the costs stay in the totals. If Hone learned
    something from the sessions, it asks whether to withdraw that, too. You can repeat the command: it names
    and skips sessions that are already deleted. An unknown id is an error; the others are deleted.
    """
    chosen, gone, unknown = with_home(options, lambda hone: _select(hone, ids))
    for id in gone:
        click.echo(f"Session {id} is already deleted.")
    for sentence in unknown:
        complain(sentence, FAILED)
    if not chosen:
        code = _unlearn(options, gone, lessons, ask=at_terminal() and not yes) if gone else 0
    else:
        code = _remove(options, chosen, lessons, gone, yes=yes)
    return FAILED if unknown else code


async def _select(
    hone: Hone, ids: Iterable[str]
) -> tuple[Sequence[SessionSummary], Sequence[SessionId], Sequence[str]]:
    """Return the matching sessions, those that were deleted before, and a sentence for each unknown id.
    Raises Missing if several sessions start with an id, and Refused in a read-only home."""
    writable_keeper(hone)
    every = {each.header.id: each for each in await hone.sessions.list(None, None)}
    chosen, gone, unknown = dict[SessionId, SessionSummary](), list[SessionId](), list[str]()
    for id in dict.fromkeys(ids):
        try:
            found = await hone.sessions.find(id)
            chosen[found] = every[found]
        except Missing as error:
            if any(each.startswith(id) for each in every):
                raise
            deleted = await hone.sessions.find_deleted(id)
            meant = [id] if id in deleted else deleted
            gone += [SessionId(each) for each in meant if len(meant) == 1]
            unknown += [str(error)] if len(meant) != 1 else []
    return [each for id, each in every.items() if id in chosen], list(dict.fromkeys(gone)), unknown


@sessions.command()
@click.option(
    "--older-than", "age", required=True, metavar="AGE", help="Since the last activity: 12h, 30d, 8w."
)
@LESSONS
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(options: Options, age: str, lessons: str | None, yes: bool) -> int:
    """Delete sessions that have been inactive for some time.

    Hone lists them first.
    """
    limit = datetime.now(UTC) - parse_age(age)
    every = with_home(options, lambda hone: hone.sessions.list(None, None))
    old = [each for each in every if each.updated < limit]
    if not old:
        click.echo(f"No session is older than {age}.")
        return 0
    return _remove(options, old, lessons, yes=yes)


def _since(when: str, now: datetime) -> datetime:
    try:
        return datetime.fromisoformat(when).astimezone(UTC)
    except ValueError:
        return now - parse_age(when)


def exported(stored: StoredSession, form: str) -> str:
    if form == "json":
        return exports.to_json(stored, redact)
    return exports.to_markdown(stored, lambda text: visible(redact(text)))


def to_object(each: SessionSummary) -> dict[str, object]:
    return {
        "session": each.header.id,
        "title": each.header.title,
        "opening": each.opening,
        "origin": each.header.origin,
        "source": each.source,
        "parent": each.header.parent,
        "folder": each.header.folder,
        "model": each.model,
        "messages": each.messages,
        "created": each.header.created.isoformat(),
        "updated": each.updated.isoformat(),
    }


def _remove(
    options: Options,
    chosen: Sequence[SessionSummary],
    lessons: str | None,
    gone: Sequence[SessionId] = (),
    *,
    yes: bool,
) -> int:
    """Say what will be deleted, ask, and delete it, if requested with what was learned from it and from
    sessions that were deleted before. Return the exit code."""
    count = "1 session" if len(chosen) == 1 else f"{len(chosen):,} sessions"
    click.echo(table(chosen, screen_width()))
    alone = f"{count} would be deleted. Hone cannot ask here. Add --yes."
    if not confirm(f"Delete {count} for good?", alone, yes=yes):
        click.echo("Nothing was deleted.")
        return FAILED
    ids = [each.header.id for each in chosen]
    code = _unlearn(options, [*ids, *gone], lessons, ask=at_terminal() and not yes)
    deleted = list[SessionId]()

    async def act(hone: Hone) -> None:
        for id in ids:
            with suppress(Missing):  # deleted with the session that it was a fork of, or by another process
                await hone.sessions.delete(id)
            deleted.append(id)

    try:
        with_home(options, act)
    finally:
        click.echo(f"Deleted {count}." if deleted == ids else f"Deleted {len(deleted):,} of {count}.")
    echo(with_home(options, lambda hone: hone.leftovers(ids)))
    return code


def _unlearn(options: Options, ids: Sequence[SessionId], lessons: str | None, *, ask: bool) -> int:
    """Keep what was learned from sessions that are about to be deleted, unless the owner wants it
    withdrawn."""
    found = with_home(options, lambda hone: resting(hone.keeper, ids))
    if not found:
        return 0
    click.echo(changes.table(found, screen_width()))
    wanted = lessons == "withdraw"
    if lessons is None and ask:
        wanted = click.confirm(f"Withdraw what was learned, too ({counted(found)})?")
    if wanted:
        entries = [each.entry for each in found]
        return with_home(options, lambda hone: withdrawn(hone.keeper, entries))
    authors = [each.entry.change.author for each in found]
    named = {id for by in authors for id in (by.session, by.parent, *(each.session for each in by.evidence))}
    ways = " and ".join(f"hone forget {id}" for id in ids if id in named)
    click.echo(f"The lessons stay. To withdraw them: {ways}")
    return 0
