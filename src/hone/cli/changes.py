"""Format changes for the terminal: one line each, or with their exact diff."""

from collections.abc import Iterable, Iterator, Sequence

from hone.cli.output import lay_out, moment
from hone.cli.render import WIDE, Paint
from hone.core.events import Curated, Learned
from hone.core.ledger import PROJECT, Target
from hone.core.visible import one_line
from hone.knowledge import descriptions
from hone.knowledge.descriptions import SHELL, DescribedChange, Sign, describe, rows, stat, summarize
from hone.knowledge.folding import Step
from hone.knowledge.journal import MARK
from hone.knowledge.keeper import Keeper

PLAIN = Paint()
NOTHING = "nothing to save"
TITLES = ("id", "when", "by", "target", "change", "lines", "about")


def table(changes: Sequence[DescribedChange], width: int = WIDE, paint: Paint = PLAIN) -> str:
    cells = [_cells(each) for each in changes]
    title, *lines = lay_out(TITLES, cells, width, right={"id"})
    shown = (
        paint.bold(line) if row[-1].startswith("(waits)") else line
        for line, row in zip(lines, cells, strict=True)
    )
    return "\n".join((title, *shown))


def line(change: DescribedChange, width: int = WIDE) -> str:
    """One change by itself."""
    return one_line("  ".join(cell for cell in _cells(change) if cell), width)


def _cells(change: DescribedChange) -> tuple[str, ...]:
    entry = change.entry
    actor, about = entry.change.author.actor, entry.change.about
    kind = one_line(entry.change.kind, 20) + (f" {about}" if about else "")
    marks = "".join(f"({mark}) " for mark in change.marks)
    return (
        *(str(entry.id), moment(entry.at), actor, called(entry.change.target), kind, stat(change.steps)),
        marks + gist(change),
    )


def called(target: Target) -> str:
    """A target as it is named on one line."""
    if target.startswith(PROJECT):
        return one_line(f"{PROJECT}{target.removeprefix(PROJECT).rpartition('/')[2] or '/'}", 40)
    return one_line(target, 70)


def gist(change: DescribedChange, width: int = WIDE) -> str:
    """Why it was made, or else the first words that came, or that went."""
    if change.entry.change.author.reason:
        return one_line(change.entry.change.author.reason, width)
    found = [row for step in change.steps for row in rows(step, around=0)]
    for sign in "+-":
        for row in found:
            words = row[1:].removeprefix(MARK).strip()
            if row[0] == sign and any(letter.isalnum() for letter in words):
                return one_line(words, width)
    return ""


def heading(change: DescribedChange, paint: Paint = PLAIN) -> Iterator[str]:
    """What it is, by whom, why."""
    entry = change.entry
    made, author = entry.change, entry.change.author
    target = called(made.target) if not made.target.startswith(PROJECT) else one_line(made.target, 500)
    about = f" {made.about}" if made.about else ""
    lines = stat(change.steps)
    marks = "".join(f", {mark}" for mark in change.marks)
    yield paint.bold(f"Change {entry.id}: {target}, {one_line(made.kind, 40)}{about}{marks}")
    place = f", in session {one_line(author.session, 40)}" if author.session else ""
    tool = f", with {one_line(author.tool, 40)}" if author.tool else ""
    yield paint.dim(f"{moment(entry.at)}, by {author.actor}{place}{tool}{f', {lines}' if lines else ''}")
    if made.cause:
        yield (
            f"waits because: {one_line(made.cause, 500)}"
            if change.fate == "waits"
            else (f"noted: {one_line(made.cause, 500)}")
        )
    if author.reason:
        yield f"reason: {one_line(author.reason, 500)}"


def account(change: DescribedChange, paint: Paint = PLAIN) -> Iterator[str]:
    """All that must be seen before somebody agrees."""
    for each in (change, *change.others):
        yield from heading(each, paint)
        yield from indented(diff(each.entry.change.target, each.steps, paint))
    if change.others:
        yield f"These {len(change.others) + 1} changes belong together."


def indented(rows: Iterable[str]) -> Iterator[str]:
    return (f"  {row}" if row else row for row in rows)


def diff(target: Target, steps: Iterable[Step], paint: Paint = PLAIN) -> Iterator[str]:
    """A unified diff, with paths below the home."""
    colours = {
        Sign.HEAD: paint.bold,
        Sign.CAME: paint.green,
        Sign.WENT: paint.red,
        Sign.PLACE: paint.dim,
        Sign.END: paint.dim,
    }
    for sign, text in descriptions.diff(target, steps):
        yield colours[sign](text) if sign in colours else text


async def learned_lines(keeper: Keeper, learned: Learned | Curated, show: str, way: str = SHELL) -> list[str]:
    """Tell what a review has learned as `learning.show` wants it: not at all, in one line, or all of it."""
    if show == "off":
        return []
    changes = await describe(keeper, learned.entries)
    first = summarize(changes, way, "learned" if isinstance(learned, Learned) else "curator")
    if show != "verbose":
        return [first] if first else []
    return [first or f"✎ {NOTHING}", *indented(row for each in changes for row in account(each))]
