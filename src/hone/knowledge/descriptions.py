"""Describe changes for people and programs: what they did, and whether they are still in effect."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hone.core.ledger import SKILL, ChangeKind, ChangeState, Entry, Target
from hone.core.messages import digest
from hone.core.value import replace
from hone.core.visible import one_line, visible
from hone.knowledge import journal, places
from hone.knowledge.folding import Step, load_steps
from hone.knowledge.items import readable
from hone.knowledge.keeper import Keeper
from hone.knowledge.metadata import metadata

WAITS = "waits"
KINDS = {
    ChangeKind.CREATE: "created",
    ChangeKind.REWRITE: "rewritten",
    ChangeKind.PATCH: "patched",
    ChangeKind.ARCHIVE: "archived",
    ChangeKind.AGE: "archived",
    ChangeKind.MERGE: "merged",
}
SHELL, CHAT = "hone ", "/"
"""How a command is called where the line is read."""


class DescribedChange(Struct, frozen=True):
    """A change with what it did; `fate` is what became of it, in a few words. `others` are answered or undone
    with it."""

    entry: Entry
    steps: tuple[Step, ...]
    fate: str = ""
    others: tuple["DescribedChange", ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        change = self.entry.change
        sure = change.confirmed or self.fate.startswith("confirmed")
        doubtful = change.standing is ChangeState.ACTIVE and bool(change.deltas) and not sure
        return tuple(mark for mark in (self.fate, "unconfirmed" if doubtful else "") if mark)


async def describe(keeper: Keeper, entries: Iterable[Entry]) -> list[DescribedChange]:
    return [
        DescribedChange(entry, await steps(keeper, entry), await fate(keeper, entry)) for entry in entries
    ]


async def describe_groups(keeper: Keeper, entries: Iterable[Entry]) -> list[DescribedChange]:
    """Describe one change of each group, with the others in it."""
    found: list[DescribedChange] = []
    seen: set[str] = set()
    for entry in entries:
        group = entry.change.group
        if not group or group not in seen:
            seen.add(group)
            others = [each for each in await keeper.together(entry) if each.id != entry.id]
            [change] = await describe(keeper, [entry])
            found.append(replace(change, others=tuple(await describe(keeper, others))))
    return found


async def steps(keeper: Keeper, entry: Entry) -> tuple[Step, ...]:
    """Return what a change did."""
    found = await load_steps(keeper.ledger, entry.change)
    return tuple(readable(step) for step in found if step.before != step.after)


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
    """Count lines that came and lines that went; empty where no line did."""
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
    """Yield a unified diff, with paths below the home."""
    folder = places.folder_of(target)
    for step in steps:
        place = visible(f"{folder}/{step.path}" if folder else step.path)
        if step.path.startswith("@"):
            yield Sign.HEAD, f"{step.path}: {_fact(step.before)} → {_fact(step.after)}"
        elif _is_text(step):
            yield Sign.HEAD, f"--- a/{place}" if step.before is not None else "--- /dev/null"
            yield Sign.HEAD, f"+++ b/{place}" if step.after is not None else "+++ /dev/null"
            for row in rows(step, around=3):
                yield from _signed(row)
        else:
            yield Sign.HEAD, f"{place}: {_binary(step.before)} → {_binary(step.after)}"


def rows(step: Step, around: int) -> list[str]:
    """Return the lines of a diff without its head; none for what is no text."""
    if step.path.startswith("@") or not _is_text(step):
        return []
    before, after = (journal.lines((data or b"").decode()) for data in (step.before, step.after))
    return list(unified_diff(before, after, n=around, lineterm=""))[2:]


def _signed(row: str) -> Iterator[tuple[Sign, str]]:
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
    return "nothing" if data is None else f"{len(data):,} bytes, sha256 {digest(data)}"


def summarize(changes: Sequence[DescribedChange], way: str = SHELL, who: str = "learned") -> str:
    """Return what was learned, in one line; empty if there is nothing to say."""
    active = [each for each in changes if each.entry.change.standing is ChangeState.ACTIVE]
    parts = [f"{who}: {', '.join(_targets(active))} ({_way_back(active, way)})"] if active else []
    waiting = len(changes) - len(active)
    if waiting:
        parts.append(f"{'1 lesson waits' if waiting == 1 else f'{waiting} lessons wait'} ({way}pending)")
    return f"✎ {'; '.join(parts)}" if parts else ""


def _targets(changes: Sequence[DescribedChange]) -> Iterator[str]:
    """Yield one part for each target, in the order they came."""
    for target in dict.fromkeys(each.entry.change.target for each in changes):
        own = [each for each in changes if each.entry.change.target == target]
        if places.is_item(target):
            yield f"memory item {one_line(places.name_of(target), 70)}"
        else:
            yield _skill(target, own) if target.startswith(SKILL) else _journal(target, own)


def _skill(target: Target, changes: Sequence[DescribedChange]) -> str:
    kinds = dict.fromkeys(KINDS.get(each.entry.change.kind, "changed") for each in changes)
    return f"skill {one_line(places.name_of(target), 70)} {' and '.join(kinds)}"


def _journal(target: Target, changes: Sequence[DescribedChange]) -> str:
    """Count entries that came and entries that went."""
    came = gone = 0
    for step in (step for each in changes for step in each.steps):
        before, after = (
            Counter(journal.entries((data or b"").decode())) for data in (step.before, step.after)
        )
        came, gone = came + (after - before).total(), gone + (before - after).total()
    counts = [f"+{came}"] if came else []
    counts += [f"−{gone}"] if gone else []
    return " ".join([places.name_of(target), *(counts or ["changed"])])


def _way_back(changes: Sequence[DescribedChange], way: str) -> str:
    ids = [str(each.entry.id) for each in changes]
    groups = {each.entry.change.group for each in changes}
    if len(ids) == 1 or (len(groups) == 1 and "" not in groups):
        return f"{way}undo {ids[0]}"
    return f"{way}log: {', '.join(ids)}"


def data(change: DescribedChange) -> dict[str, Any]:
    """Return a change for programs: the texts as they are."""
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
