"""Find the conversation to continue: the last one of this folder, one by its id, or one by its words.

A conversation of another folder is continued only by its id or by choice, never because it was the last one.
"""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.listing import title_of
from hone.cli.options import PICK, Options, at_terminal
from hone.cli.output import lay_out, number_of, screen_width
from hone.cli.terminal.screen import place
from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.loading import import_object
from hone.core.ports import SessionSummary
from hone.core.visible import one_line, path_to_text

PICKER = "hone.cli.terminal.picking:pick"
SHOWN = 60
"""The most characters of a title in a sentence."""
LISTED = 20
NONE = "There is no conversation to continue yet. Start one: hone"
LOOK = "To see them all: hone sessions list. To search what was said: hone sessions search WORDS"
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


class Candidates(Struct, frozen=True):
    """Matching conversations, latest first. `sure`: the first one is meant, and nobody needs to be asked."""

    found: Sequence[SessionSummary] = ()
    sure: bool = False


async def find_session(hone: Hone, options: Options) -> SessionId:
    """Return the conversation that the options name, and leave a notice that identifies it. Raises Missing if
    there is none, and Abort if the owner chose none."""
    every = await hone.sessions.list(None, own=options.last)
    here = path_to_text(hone.folder)
    if options.last:
        meant = _last(every, here)
    else:
        chosen = find_candidates(every, "" if options.resume == PICK else options.resume, here)
        if not chosen.found:
            return await _find_fork(hone, options.resume)
        meant = chosen.found[0] if chosen.sure else await _choose(chosen.found, here)
    hone.notices.append(describe(meant, here, datetime.now(UTC)))
    return meant.header.id


async def _find_fork(hone: Hone, words: str) -> SessionId:
    """Return one of the conversations that Hone had with itself. Raises Missing."""
    if words == PICK:
        raise Missing(NONE)
    try:
        return await hone.sessions.find(words)
    except Missing as error:
        raise Missing(f"There is no conversation “{one_line(words, SHOWN)}”. {LOOK}") from error


def find_candidates(every: Sequence[SessionSummary], words: str, folder: str) -> Candidates:
    """Find what an id, its beginning or words of a title can mean. Without words everything matches, and this
    folder's conversations come first."""
    by_id = [each for each in every if words and each.header.id.startswith(words)]
    exact = [each for each in by_id if each.header.id == words]
    if by_id:
        return Candidates(exact or by_id, sure=len(exact or by_id) == 1)
    fitting = [each for each in every if _fits(each, words)]
    own = [each for each in fitting if each.header.folder == folder]
    if words and len(own) == 1:
        return Candidates(own, sure=True)
    others = [each for each in fitting if each.header.folder != folder]
    return Candidates([*own, *(() if words and own else others)])


def _fits(summary: SessionSummary, words: str) -> bool:
    about = f"{summary.header.title} {summary.opening}".lower()
    return all(word in about for word in words.lower().split())


def _last(every: Sequence[SessionSummary], folder: str) -> SessionSummary:
    own = next((each for each in every if each.header.folder == folder), None)
    if own:
        return own
    if not every:
        raise Missing(NONE)
    latest = every[0]
    raise Missing(
        f"There is no conversation in this folder yet. The latest one is “{_title(latest)}” in "
        f"{place(latest.header.folder)}; to continue it: hone -r {latest.header.id}"
    )


async def _choose(found: Sequence[SessionSummary], folder: str) -> SessionSummary:
    """Ask the owner at a terminal. Elsewhere, print the matches and raise Missing."""
    now = datetime.now(UTC)
    if not at_terminal() or not sys.stdout.isatty():
        shown = found[:LISTED]
        for line in _table(shown, now):
            print(line, file=sys.stderr)
        more = f" The first {LISTED} are listed." if len(found) > LISTED else ""
        own = any(each.header.folder == folder for each in found)
        where = "" if own else ", none of them in this folder"
        count = number_of(len(found), "conversation fits", "conversations fit")
        raise Missing(f"{count}{where}.{more} Name one by its id: hone -r {shown[0].header.id}")
    rows = [describe_row(each, folder, now) for each in found]
    chosen: int | None = await import_object(PICKER)("Which conversation?", rows)
    if chosen is None:
        raise click.Abort
    return found[chosen]


def describe_row(each: SessionSummary, folder: str, now: datetime) -> str:
    """Describe a conversation on one line of a list. A narrow screen cuts off the end."""
    elsewhere = "" if each.header.folder == folder else f" · {place(each.header.folder)}"
    length = number_of(each.messages, "message")
    return f"{describe_age(now - each.updated)}{elsewhere} · {length} · {_title(each)} · {each.header.id}"


def _table(found: Sequence[SessionSummary], now: datetime) -> list[str]:
    rows = [
        (each.header.id, describe_age(now - each.updated), place(each.header.folder), title_of(each))
        for each in found
    ]
    return lay_out(("id", "last active", "folder", "about"), rows, screen_width())


def describe(summary: SessionSummary, folder: str, now: datetime) -> str:
    """Return which conversation is continued."""
    own = summary.header.folder == folder
    where = "in this folder" if own else f"in {place(summary.header.folder)}, where its tools work"
    age = describe_age(now - summary.updated)
    return f"Continuing “{_title(summary)}” ({summary.header.id}, last active {age}, {where})."


def describe_age(age: timedelta) -> str:
    """Say how long ago something was: `3 hours ago`."""
    seconds = age.total_seconds()
    unit, size = next(((unit, size) for unit, size in UNITS if seconds >= size), ("", 1))
    return f"{number_of(int(seconds // size), unit)} ago" if unit else "just now"


def _title(summary: SessionSummary) -> str:
    return one_line(title_of(summary), SHOWN) or "without words"
