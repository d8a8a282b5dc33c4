"""Changes of what is known, on the screen: one line each, and to the letter what they did."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hone.cli.listing import moment
from hone.cli.paint import Paint
from hone.cli.render import WIDE
from hone.core.ledger import PROJECT, Entry, Standing, Target
from hone.core.visible import one_line, visible
from hone.knowledge import places
from hone.knowledge.folding import Step
from hone.knowledge.keeper import Keeper
from hone.memory.journal import MARK, lines

PLAIN = Paint()
TITLES = ("id", "when", "by", "target", "change", "lines", "about")


@dataclass(frozen=True, slots=True)
class Told:
    """A change with what it did; `fate` is what became of it, in a few words. `others` are those that are
    settled with it."""

    entry: Entry
    steps: tuple[Step, ...]
    fate: str = ""
    others: tuple["Told", ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        change = self.entry.change
        doubtful = change.standing is Standing.ACTIVE and bool(change.deltas) and not change.confirmed
        return tuple(mark for mark in (self.fate, "unconfirmed" if doubtful else "") if mark)


async def told(keeper: Keeper, entries: Iterable[Entry]) -> list[Told]:
    return [Told(entry, await steps(keeper, entry), await fate(keeper, entry)) for entry in entries]


async def whole(keeper: Keeper, entries: Iterable[Entry]) -> list[Told]:
    """Like `told`, with one for each group, which has the others with it."""
    found: list[Told] = []
    seen: set[str] = set()
    for entry in entries:
        group = entry.change.group
        if not group or group not in seen:
            seen.add(group)
            others = [each for each in await keeper.together(entry) if each.id != entry.id]
            [change] = await told(keeper, [entry])
            found.append(replace(change, others=tuple(await told(keeper, others))))
    return found


async def steps(keeper: Keeper, entry: Entry) -> tuple[Step, ...]:
    deltas = entry.change.deltas
    contents = await keeper.ledger.contents(
        {each for delta in deltas for each in (delta.before, delta.after) if each}
    )
    return tuple(
        Step(delta.path, *(contents[each] if each else None for each in (delta.before, delta.after)))
        for delta in deltas
        if delta.before != delta.after
    )


async def fate(keeper: Keeper, entry: Entry) -> str:
    waited = entry.change.standing is Standing.PENDING
    if not entry.settled:
        return "waits" if waited else ""
    by = await keeper.ledger.entry(entry.settled)
    if waited:
        return f"{'approved' if by.change.deed == 'approve' else 'rejected'} by {by.id}"
    return f"undone by {by.id}" + (", and back again" if await keeper.is_standing(entry) else "")


def table(changes: Sequence[Told], width: int = WIDE, paint: Paint = PLAIN) -> str:
    rows = [TITLES, *map(_cells, changes)]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    room = max(20, width - sum(widths) - 2 * len(widths))
    return "\n".join(_row(row, widths, room, paint) for row in rows)


def line(change: Told, width: int = WIDE) -> str:
    """One change by itself."""
    return one_line("  ".join(cell for cell in _cells(change) if cell), width)


def _cells(change: Told) -> tuple[str, ...]:
    entry = change.entry
    actor, about = entry.change.author.actor, entry.change.about
    deed = one_line(entry.change.deed, 20) + (f" {about}" if about else "")
    marks = "".join(f"({mark}) " for mark in change.marks)
    return (
        *(str(entry.id), moment(entry.at), actor, called(entry.change.target), deed, stat(change.steps)),
        marks + gist(change),
    )


def _row(row: Sequence[str], widths: Sequence[int], room: int, paint: Paint) -> str:
    id, *cells, about = row
    padded = (cell.ljust(width) for cell, width in zip(cells, widths[1:], strict=True))
    text = "  ".join((id.rjust(widths[0]), *padded, one_line(about, room))).rstrip()
    return paint.bold(text) if about.startswith("(waits)") else text


def called(target: Target) -> str:
    """A target as it is named on one line."""
    if target.startswith(PROJECT):
        return one_line(f"{PROJECT}{target.removeprefix(PROJECT).rpartition('/')[2] or '/'}", 40)
    return one_line(target, 70)


def gist(change: Told, width: int = WIDE) -> str:
    """Why it was made, or else the first words that came, or that went."""
    if change.entry.change.author.reason:
        return one_line(change.entry.change.author.reason, width)
    rows = [row for step in change.steps for row in _rows(step, around=0)]
    for sign in "+-":
        for row in rows:
            words = row[1:].removeprefix(MARK).strip()
            if row[0] == sign and any(letter.isalnum() for letter in words):
                return one_line(words, width)
    return ""


def stat(steps: Iterable[Step]) -> str:
    """Lines that came and lines that went; empty where no line did."""
    signs = [row[0] for step in steps for row in _rows(step, around=0)]
    return f"+{signs.count('+')} −{signs.count('-')}" if signs else ""


def heading(change: Told, paint: Paint = PLAIN) -> Iterator[str]:
    """What it is, by whom, why."""
    entry = change.entry
    made, author = entry.change, entry.change.author
    target = called(made.target) if not made.target.startswith(PROJECT) else one_line(made.target, 500)
    about = f" {made.about}" if made.about else ""
    lines = stat(change.steps)
    marks = "".join(f", {mark}" for mark in change.marks)
    yield paint.bold(f"Change {entry.id}: {target}, {one_line(made.deed, 40)}{about}{marks}")
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


def account(change: Told, paint: Paint = PLAIN) -> Iterator[str]:
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
    folder = places.folder_of(target)
    for step in steps:
        place = visible(f"{folder}/{step.path}" if folder else step.path)
        if step.path.startswith("@"):
            yield paint.bold(f"{step.path}: {_fact(step.before)} → {_fact(step.after)}")
        elif _is_text(step):
            yield paint.bold(f"--- a/{place}" if step.before is not None else "--- /dev/null")
            yield paint.bold(f"+++ b/{place}" if step.after is not None else "+++ /dev/null")
            for row in _rows(step, around=3):
                yield from _shown(row, paint)
        else:
            yield paint.bold(f"{place}: {_binary(step.before)} → {_binary(step.after)}")


def _rows(step: Step, around: int) -> list[str]:
    """The lines of a diff without its head; none for what is no text."""
    from difflib import unified_diff

    if step.path.startswith("@") or not _is_text(step):
        return []
    before, after = (lines((data or b"").decode()) for data in (step.before, step.after))
    return list(unified_diff(before, after, n=around, lineterm=""))[2:]


def _shown(row: str, paint: Paint) -> Iterator[str]:
    """To the byte: an end of line that is another one can be seen."""
    text = visible(row.removesuffix("\n"))
    colours = {"+": paint.green, "-": paint.red, "@": paint.dim}
    yield colours[row[0]](text) if row[0] in colours else text
    if not row.endswith("\n") and row[0] != "@":
        yield paint.dim("\\ No newline at end of file")


def _is_text(step: Step) -> bool:
    try:
        texts = [(data or b"").decode() for data in (step.before, step.after)]
    except UnicodeDecodeError:
        return False
    return not any("\0" in text for text in texts)


def _fact(data: bytes | None) -> str:
    return "nothing" if data is None else one_line(data.decode("utf-8", "backslashreplace"), 500)


def _binary(data: bytes | None) -> str:
    from hone.core.messages import digest

    return "nothing" if data is None else f"{len(data):,} bytes, sha256 {digest(data)}"


def data(change: Told) -> dict[str, Any]:
    """For programs: the texts as they are."""
    from hone.knowledge.metadata import metadata

    entry, made = change.entry, change.entry.change
    author = made.author
    return {
        "id": entry.id,
        "at": entry.at.isoformat(),
        "actor": author.actor,
        "target": made.target,
        "deed": made.deed,
        "about": made.about,
        "standing": made.standing,
        "confirmed": made.confirmed,
        "cause": made.cause,
        "settled": entry.settled,
        "group": made.group or None,
        "fate": change.fate,
        "reason": author.reason,
        "metadata": metadata(author),
        "ground": author.ground.name.lower(),
        "evidence": [
            {"session": each.session, "message": each.message, "trust": each.trust.name.lower()}
            | {"digest": each.digest}
            for each in author.evidence
        ],
        "contents": [
            {"path": delta.path, "before": delta.before, "after": delta.after} for delta in made.deltas
        ],
        "diff": "\n".join(diff(made.target, change.steps)),
    }
