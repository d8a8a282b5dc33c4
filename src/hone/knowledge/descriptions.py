"""Changes of what is known, told to people and programs: what they did, and what became of them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Any

from hone.core.ledger import ChangeKind, ChangeState, Entry, Target
from hone.core.value import dataclass
from hone.core.visible import one_line, visible
from hone.knowledge import places
from hone.knowledge.folding import Step
from hone.knowledge.journal import lines
from hone.knowledge.keeper import Keeper

WAITS = "waits"


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
        sure = change.confirmed or self.fate.startswith("confirmed")
        doubtful = change.standing is ChangeState.ACTIVE and bool(change.deltas) and not sure
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
    waited = entry.change.standing is ChangeState.PENDING
    if not entry.settled:
        return WAITS if waited else ""
    by = await keeper.ledger.entry(entry.settled)
    if waited:
        return f"{'approved' if by.change.kind is ChangeKind.APPROVE else 'rejected'} by {by.id}"
    if by.change.kind is ChangeKind.CONFIRM:
        return f"confirmed by {by.id}"
    return f"undone by {by.id}" + (", and back again" if await keeper.is_standing(entry) else "")


def stat(steps: Iterable[Step]) -> str:
    """Lines that came and lines that went; empty where no line did."""
    signs = [row[0] for step in steps for row in rows(step, around=0)]
    return f"+{signs.count('+')} −{signs.count('-')}" if signs else ""


class Sign(StrEnum):
    """What a row of a diff is."""

    HEAD = "head"
    PLACE = "@"
    CAME = "+"
    WENT = "-"
    SAME = " "
    END = "end"
    """A line that has no end."""


def diff(target: Target, steps: Iterable[Step]) -> Iterator[tuple[Sign, str]]:
    """A unified diff, with paths below the home."""
    folder = places.folder_of(target)
    for step in steps:
        place = visible(f"{folder}/{step.path}" if folder else step.path)
        if step.path.startswith("@"):
            yield Sign.HEAD, f"{step.path}: {_fact(step.before)} → {_fact(step.after)}"
        elif _is_text(step):
            yield Sign.HEAD, f"--- a/{place}" if step.before is not None else "--- /dev/null"
            yield Sign.HEAD, f"+++ b/{place}" if step.after is not None else "+++ /dev/null"
            for row in rows(step, around=3):
                yield from _shown(row)
        else:
            yield Sign.HEAD, f"{place}: {_binary(step.before)} → {_binary(step.after)}"


def rows(step: Step, around: int) -> list[str]:
    """The lines of a diff without its head; none for what is no text."""
    from difflib import unified_diff

    if step.path.startswith("@") or not _is_text(step):
        return []
    before, after = (lines((data or b"").decode()) for data in (step.before, step.after))
    return list(unified_diff(before, after, n=around, lineterm=""))[2:]


def _shown(row: str) -> Iterator[tuple[Sign, str]]:
    """To the byte: an end of line that is another one can be seen."""
    sign = Sign(row[0])
    yield sign, visible(row.removesuffix("\n"))
    if not row.endswith("\n") and sign is not Sign.PLACE:
        yield Sign.END, "\\ No newline at end of file"


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
        "deed": made.kind,
        "about": made.about,
        "standing": made.standing,
        "confirmed": made.confirmed,
        "cause": made.cause,
        "settled": entry.settled,
        "group": made.group or None,
        "fate": change.fate,
        "reason": author.reason,
        "metadata": metadata(author),
        "ground": author.trust_floor.name.lower(),
        "evidence": [
            {"session": each.session, "message": each.message, "trust": each.trust.name.lower()}
            | {"digest": each.digest}
            for each in author.evidence
        ],
        "contents": [
            {"path": delta.path, "before": delta.before, "after": delta.after} for delta in made.deltas
        ],
        "diff": "\n".join(text for _, text in diff(made.target, change.steps)),
    }
