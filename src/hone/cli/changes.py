"""Format changes for the terminal: their words first, or their exact diff."""

from collections.abc import Iterable, Iterator, Sequence

from hone.cli.output import day, measure, moment, pad, wrap_text
from hone.cli.render import Paint
from hone.core.events import Curated, Learned
from hone.core.jobs import Job, State
from hone.core.ledger import PROJECT, Target
from hone.core.visible import one_line
from hone.knowledge import descriptions
from hone.knowledge.descriptions import WAITS, DescribedChange, Sign, describe, stat
from hone.knowledge.folding import Step
from hone.knowledge.keeper import Keeper
from hone.knowledge.wording import SHELL, tell

PLAIN = Paint()
NOTHING = "nothing to save"
MARGIN = 24
"""The fewest characters of a text, however narrow the screen."""
TITLES = ("what", "id", "when", "by")
PIPED = 72
"""The most characters of the first column if no screen limits it. Longer texts push the others to the
right."""
ROWS = 3
"""The most rows for a text on a screen."""


def table(changes: Sequence[DescribedChange], width: int | None = None, paint: Paint = PLAIN) -> str:
    """Return a table of changes, their words first. `width` is that of the screen; in a pipe each is one
    line."""
    cells = [_cells(each) for each in changes]
    sizes = [max(len(row[at]) for row in (TITLES, *cells)) for at in (1, 2, 3)]
    most = PIPED if width is None else max(MARGIN, width - sum(sizes) - 2 * len(sizes))
    room = min(most, max(measure(row[0]) for row in (TITLES, *cells)))
    lines = [_row(TITLES[0], TITLES, room, sizes)]
    for change, row in zip(changes, cells, strict=True):
        first, *more = [row[0]] if width is None else wrap_text(row[0], room, ROWS)
        told = (_row(first, row, room, sizes), *more)
        lines += [paint.bold(each) if change.fate == WAITS else each for each in told]
    return "\n".join(lines)


def _row(text: str, cells: Sequence[str], room: int, sizes: Sequence[int]) -> str:
    _, id, when, by = cells
    return f"{pad(text, room)}  {id.rjust(sizes[0])}  {when.ljust(sizes[1])}  {by}"


def line(change: DescribedChange, width: int | None = None) -> str:
    """Return one change on one line."""
    text, id, when, by = _cells(change)
    tail = f" · change {id}, {when}, by {by}"
    return f"{text if width is None else one_line(text, max(MARGIN, width - len(tail)))}{tail}"


def _cells(change: DescribedChange) -> tuple[str, str, str, str]:
    entry = change.entry
    marks = "".join(f" ({mark})" for mark in change.marks)
    return f"{change.words}{marks}", str(entry.id), day(entry.at), one_line(entry.change.author.name, 40)


def called(target: Target) -> str:
    """Return a target's name on one line."""
    if target.startswith(PROJECT):
        return one_line(f"{PROJECT}{target.removeprefix(PROJECT).rpartition('/')[2] or '/'}", 40)
    return one_line(target, 70)


def heading(change: DescribedChange, paint: Paint = PLAIN) -> Iterator[str]:
    """Yield what it is, who made it, and why."""
    entry = change.entry
    made, author = entry.change, entry.change.author
    target = called(made.target) if not made.target.startswith(PROJECT) else one_line(made.target, 500)
    about = f" {made.about}" if made.about else ""
    lines = stat(change.steps)
    marks = "".join(f", {mark}" for mark in change.marks)
    yield paint.bold(f"Change {entry.id}: {target}, {one_line(made.kind, 40)}{about}{marks}")
    place = f", in session {one_line(author.session, 40)}" if author.session else ""
    tool = f", with {one_line(author.tool, 40)}" if author.tool else ""
    yield paint.dim(
        f"{moment(entry.at)}, by {one_line(author.name, 40)}{place}{tool}{f', {lines}' if lines else ''}"
    )
    if made.cause:
        yield (
            f"waits because: {one_line(made.cause, 500)}"
            if change.fate == WAITS
            else (f"noted: {one_line(made.cause, 500)}")
        )
    if author.reason:
        yield f"reason: {one_line(author.reason, 500)}"


def account(change: DescribedChange, paint: Paint = PLAIN) -> Iterator[str]:
    """Yield everything that the owner must see before agreeing."""
    for each in (change, *change.others):
        yield from heading(each, paint)
        yield from indented(diff(each.entry.change.target, each.steps, paint))
    if change.others:
        yield f"These {len(change.others) + 1} changes belong together."


def indented(rows: Iterable[str]) -> Iterator[str]:
    return (f"  {row}" if row else row for row in rows)


def diff(target: Target, steps: Iterable[Step], paint: Paint = PLAIN) -> Iterator[str]:
    """Yield a unified diff, with paths below the home."""
    colours = {
        Sign.HEAD: paint.bold,
        Sign.CAME: paint.green,
        Sign.WENT: paint.red,
        Sign.PLACE: paint.dim,
        Sign.END: paint.dim,
    }
    for sign, text in descriptions.diff(target, steps):
        yield colours[sign](text) if sign in colours else text


async def learned_lines(
    keeper: Keeper, learned: Learned | Curated, show: str, way: str = SHELL, width: int | None = None
) -> list[str]:
    """Tell what a review has learned as `learning.show` wants it: not at all, in its words, or all of it."""
    if show == "off":
        return []
    told = tell(learned.lessons, way, "" if isinstance(learned, Learned) else "curator", width)
    if show != "verbose":
        return told
    changes = await describe(keeper, learned.entries)
    return [*(told or [f"✎ {NOTHING}"]), *indented(row for each in changes for row in account(each))]


def failed_line(job: Job, way: str = SHELL) -> str:
    """Tell that a review failed: why, what happens next, and where to look."""
    error = one_line(job.error, 300).rstrip(".")
    again = (
        "It stays queued and is tried again later."
        if job.state is State.QUEUED
        else f"Hone gave up after {job.tries} tries; try again with: hone reviews retry {job.id}"
    )
    return f"✗ A review {'failed' if job.tries else 'has to wait'}: {error}. {again} · {way}reviews"
