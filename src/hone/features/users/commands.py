"""`hone users`: add people to a team's Hone, give them keys and limits, and see what they used."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import to_builtins

from hone.cli.help_formatter import CommandGroup
from hone.cli.options import Options, parse_age
from hone.cli.output import echo_json, lay_out, moment, screen_width
from hone.core.users import AuditEvent, UserLimits
from hone.features.users.service import check_name, make_key, open_admin
from hone.settings import home_folder

if TYPE_CHECKING:
    from hone.stores.postgres.user_admin import UserKeyRecord, UserRecord

F = TypeVar("F", bound=Callable[..., Any])
KINDS = click.Choice(["person", "program"])
FIRST = "first"
"""The name of the key that a new user gets."""
EPILOG = """\b
Examples:
  hone users add alice --cost-per-day 5
  hone users key alice --for program --expires 90d
  hone users disable alice
  hone users usage
"""
MEGABYTE = 1_000_000
LIMITS = (
    ("--requests-per-minute", "requests_per_minute", click.IntRange(1), "Requests in a minute."),
    ("--cost-per-day", "cost_per_day", click.FloatRange(0), "US dollars in a day (UTC), learning included."),
    ("--storage", "storage_mb", click.IntRange(0), "Megabytes that the user may keep."),
    ("--reviews", "reviews", click.IntRange(0), "Reviews that may wait to be done."),
    ("--turns", "turns", click.IntRange(1), "Turns under way at a time, in one server process."),
)


def limited(command: F) -> F:
    """Add the options for limits."""
    for option, name, kind, meaning in reversed(LIMITS):
        command = click.option(option, name, type=kind, help=meaning)(command)
    return command


@click.group(
    cls=CommandGroup,
    short_help="Add people to a team's Hone; their keys, limits and audit log.",
    epilog=EPILOG,
)
def users() -> None:
    """Add people to a team's Hone, give them keys and limits, and see what they used.

    Users share one PostgreSQL database and see nothing of each other. You see numbers, and never what they
    say. docs/teams.md explains it.
    """


@users.command(short_help="Add a user and print their key, once.")
@click.argument("name")
@limited
@click.pass_obj
def add(options: Options, /, name: str, **limits: float | None) -> None:
    """Add the user NAME and print a key for them. Only a digest of it is stored: it cannot be shown again."""
    admin = open_admin(options.home or home_folder())
    admin.add(check_name(name), _given(limits))
    click.echo(make_key(admin, name, FIRST, "person", None))
    click.echo(f"{name} signs in to the page with this key. It is not shown again.", err=True)


@users.command("list", short_help="List the users, or their keys.")
@click.option("--keys", is_flag=True, help="List the keys of all users, without their text.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, keys: bool, as_json: bool) -> None:
    """List the users with their limits, or their keys."""
    admin = open_admin(options.home or home_folder())
    known, issued = admin.users(), admin.list_keys() if keys else ()
    if as_json:
        echo_json([to_builtins(each) for each in (issued if keys else known)])
    elif not known:
        click.echo("There are no users. Add one: hone users add NAME")
    elif keys:
        titles = ("user", "key", "for", "state", "last used", "expires")
        _table(titles, [(*_name_key(each), _when(each.used), _when(each.expires)) for each in issued])
    else:
        _table(("user", "state", "added", "own limits"), [_describe_user(each) for each in known])


@users.command(short_help="Stop a user at once, at every server.")
@click.argument("name")
@click.pass_obj
def disable(options: Options, name: str) -> None:
    """Stop the user NAME. No key, cookie or link of theirs is valid, and what they have open ends. Their data
    stays."""
    open_admin(options.home or home_folder()).switch(name, off=True)
    click.echo(f"{name} is disabled. Let them in again: hone users enable {name}")


@users.command(short_help="Let a disabled user in again.")
@click.argument("name")
@click.pass_obj
def enable(options: Options, name: str) -> None:
    """Let the user NAME in again, with the keys they had."""
    open_admin(options.home or home_folder()).switch(name, off=False)
    click.echo(f"{name} is active.")


@users.command(short_help="Make a key for a user and print it, once; or revoke one.")
@click.argument("user")
@click.option("--for", "kind", type=KINDS, default="person", show_default=True, help="Who will use it.")
@click.option("--name", default="", help="A name to revoke it by. [default: the kind and the date]")
@click.option("--expires", default="", help="When it ends, such as 12h, 90d or 8w. [default: never]")
@click.option("--revoke", default="", metavar="NAME", help="Revoke this key instead; it stops at once.")
@click.pass_obj
def key(options: Options, user: str, kind: str, name: str, expires: str, revoke: str) -> None:
    """Make a key for USER and print it. A program's key reaches /v1 and /mcp only, and its words count as
    foreign text."""
    admin = open_admin(options.home or home_folder())
    if revoke:
        admin.revoke(user, revoke)
        click.echo(f"Revoked {revoke} of {user}.")
        return
    chosen = name or f"{kind}-{datetime.now().astimezone():%Y-%m-%d-%H%M%S}"
    click.echo(make_key(admin, user, chosen, kind, parse_age(expires) if expires else None))
    click.echo(f"{chosen} is a key of {user} for a {kind}. It is not shown again.", err=True)


@users.command(short_help="Change the limits of a user.")
@click.argument("name")
@limited
@click.option("--reset", is_flag=True, help="Forget all limits of the user first: those of hone.toml hold.")
@click.pass_obj
def limits(options: Options, /, name: str, reset: bool, **given: float | None) -> None:
    """Change the limits of the user NAME. A limit that is not set is that of [serve] in hone.toml."""
    cleared = {column: None for _, column, _, _ in LIMITS} if reset else {}
    chosen = {**cleared, **_given(given)}
    if not chosen:
        raise click.UsageError("Name a limit to change, or use --reset. See: hone users list")
    open_admin(options.home or home_folder()).limit(name, chosen)
    click.echo(f"Changed the limits of {name}.")


@users.command(short_help="Show what users used, in numbers.")
@click.argument("name", default="")
@click.option(
    "--days", type=click.IntRange(1, 366), default=30, show_default=True, help="How far to look back."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def usage(options: Options, name: str, days: int, as_json: bool) -> None:
    """Show what users used: requests, calls of models, tokens, cost, storage and reviews that wait. Nothing
    that they said is read."""
    admin = open_admin(options.home or home_folder())
    names = [name] if name else [each.name for each in admin.users()]
    found = list(admin.usage(names, days))
    if as_json:
        echo_json([to_builtins(each) for each in found])
        return
    rows = [
        (
            each.user,
            f"{each.requests:,}",
            f"{each.refused:,}",
            f"{each.calls:,}",
            f"{each.input + each.output:,}",
            f"${each.cost:.2f}",
            f"${each.today:.2f}",
            f"{each.storage / MEGABYTE:.1f} MB",
            f"{each.reviews:,}",
        )
        for each in found
    ]
    titles = ("user", "requests", "too many", "model calls", "tokens", "cost", "today", "storage", "waiting")
    _table(titles, rows, right=titles[1:])


@users.command(short_help="Show who came in, who was refused, and what was changed.")
@click.option("--user", default="", help="Only of this user.")
@click.option("--event", default="", help='Only of this kind, such as "key refused".')
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Rows, the latest."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def audit(options: Options, user: str, event: str, limit: int, as_json: bool) -> None:
    """Show who came in, who was refused, and what was changed. What is alike within a minute is one row with
    a count. Nothing that users say is in it."""
    if event and event not in tuple(AuditEvent):
        raise click.UsageError(f"There is no event {event!r}. These exist: {', '.join(AuditEvent)}.")
    found = open_admin(options.home or home_folder()).audit(user, event, limit)
    if as_json:
        echo_json([to_builtins(each) for each in found])
    elif found:
        rows = [
            (
                moment(each.last),
                each.user or "-",
                f"{each.count:,}",
                each.address or "-",
                each.event,
                each.detail,
            )
            for each in found
        ]
        _table(("when", "user", "times", "address", "event", "detail"), rows, right=("times",))
    else:
        click.echo("Nothing is written down.")


@users.command(short_help="Erase a disabled user with all their data, for good.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def erase(options: Options, name: str, yes: bool) -> None:
    """Erase the disabled user NAME with every row of theirs: conversations, journal, skills, reviews, keys.
    The audit log keeps what happened at the door."""
    admin = open_admin(options.home or home_folder())
    if not yes:
        click.confirm(f"Erase {name} and all their data for good?", abort=True, err=True)
    gone = {table: count for table, count in admin.erase(check_name(name)).items() if count}
    notes = admin.rewrite(gone) if gone else ()
    click.echo(f"Erased {name}: {sum(gone.values()):,} rows in {len(gone)} tables.")
    for sentence in notes:
        click.echo(sentence, err=True)
    click.echo(
        f"Files of {name} on the servers are left: delete users/{name} and their workspace there.", err=True
    )


def describe_limits(limits: UserLimits) -> str:
    known = (
        (limits.requests_per_minute, "{} requests/min"),
        (limits.cost_per_day, "${:g}/day"),
        (limits.storage_mb, "{} MB"),
        (limits.reviews, "{} reviews"),
        (limits.turns, "{} turns"),
    )
    return ", ".join(form.format(value) for value, form in known if value is not None) or "-"


def _given(limits: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: value for name, value in limits.items() if value is not None}


def _describe_user(each: "UserRecord") -> tuple[str, ...]:
    state = f"disabled {moment(each.disabled)}" if each.disabled else "active"
    return each.name, state, moment(each.created), describe_limits(each.limits)


def _name_key(key: "UserKeyRecord") -> tuple[str, ...]:
    is_over = key.expires and key.expires <= datetime.now(key.expires.tzinfo)
    state = "revoked" if key.revoked else "expired" if is_over else "valid"
    return key.user, key.name, key.kind, state


def _when(at: datetime | None) -> str:
    return moment(at) if at else "never"


def _table(titles: tuple[str, ...], rows: Sequence[Sequence[str]], right: tuple[str, ...] = ()) -> None:
    click.echo("\n".join(lay_out(titles, rows, screen_width(), right)))
