"""Describe changes for people and programs: what they did, and whether they are still in effect."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hone.core.ledger import Change, ChangeKind, ChangeState, Entry, LessonText, Target
from hone.core.messages import digest
from hone.core.skill import FAILED
from hone.core.value import replace
from hone.core.visible import one_line, visible
from hone.knowledge import places
from hone.knowledge.folding import Step
from hone.knowledge.keeper import Keeper
from hone.knowledge.metadata import metadata
from hone.knowledge.wording import is_text, phrase, read_lessons, rows, steps

WAITS, BACK = "waits", ", and back again"
ROUTINE = (ChangeKind.AGE, ChangeKind.WAKE, ChangeKind.DEMOTE, ChangeKind.RECOVER)
"""Changes that follow from counting or checking, and teach nothing."""


class DescribedChange(Struct, frozen=True):
    """A change with what it did; `fate` is its outcome in a few words. `others` are answered or undone with
    it. `answered` is the text of the change that this one is about, if it changed nothing itself."""

    entry: Entry
    steps: tuple[Step, ...]
    fate: str = ""
    others: tuple["DescribedChange", ...] = ()
    answered: tuple[LessonText, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        holds = not self.fate or self.fate.endswith(BACK)
        doubtful = holds and is_doubtful(self.entry.change)
        return tuple(mark for mark in (self.fate, "unconfirmed" if doubtful else "") if mark)

    @property
    def lessons(self) -> tuple[LessonText, ...]:
        own = read_lessons(self.entry, self.steps)
        return own if self.steps else tuple(replace(each, kind=own[0].kind) for each in self.answered) or own

    @property
    def words(self) -> str:
        """Return its text on one line."""
        first, *more = self.lessons
        about = self.entry.change.about
        return "; ".join(
            (phrase(first, about), *(phrase(replace(each, kind=ChangeKind.OTHER)) for each in more))
        )


def is_doubtful(change: Change) -> bool:
    """Tell whether a change took effect without the owner saying or doing it."""
    active = change.standing is ChangeState.ACTIVE and bool(change.deltas)
    return active and not change.confirmed and change.kind not in ROUTINE


async def describe(keeper: Keeper, entries: Iterable[Entry]) -> list[DescribedChange]:
    return [
        DescribedChange(
            entry,
            await steps(keeper.ledger, entry),
            await fate(keeper, entry),
            answered=await _answered(keeper, entry),
        )
        for entry in entries
    ]


async def _answered(keeper: Keeper, entry: Entry) -> tuple[LessonText, ...]:
    """Return the text of the change that this one is about; nothing if it changed something itself."""
    if entry.change.deltas or entry.change.about is None:
        return ()
    other = await keeper.ledger.entry(entry.change.about)
    return read_lessons(other, await steps(keeper.ledger, other))


async def describe_groups(keeper: Keeper, entries: Iterable[Entry]) -> list[DescribedChange]:
    """Describe one change of each group, together with the others in it."""
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


async def fate(keeper: Keeper, entry: Entry) -> str:
    waited = entry.change.standing is ChangeState.PENDING
    if not entry.settled:
        return WAITS if waited else ""
    by = await keeper.ledger.entry(entry.settled)
    if waited:
        return f"{'approved' if by.change.kind is ChangeKind.APPROVE else 'rejected'} by {by.id}"
    if by.change.kind is ChangeKind.CONFIRM:
        return f"confirmed by {by.id}"
    return f"undone by {by.id}" + (BACK if await keeper.is_standing(entry) else "")


def stat(steps: Iterable[Step]) -> str:
    """Count added and removed lines; empty if there are none."""
    signs = [row[0] for step in steps for row in rows(step, around=0)]
    return f"+{signs.count('+')} −{signs.count('-')}" if signs else ""


class Sign(StrEnum):
    """The type of a row of a diff."""

    HEAD = "head"
    PLACE = "@"
    CAME = "+"
    WENT = "-"
    SAME = " "
    END = "end"
    """A line without a line ending."""


def diff(target: Target, steps: Iterable[Step]) -> Iterator[tuple[Sign, str]]:
    """Yield a unified diff, with paths below the home, or below / for files elsewhere."""
    folder = places.folder_of(target)
    for step in steps:
        place = visible(f"{folder}/{step.path}" if folder else step.path).lstrip("/")
        if step.path.startswith("@") and step.path != FAILED:
            yield Sign.HEAD, f"{step.path}: {_fact(step.before)} → {_fact(step.after)}"
        elif is_text(step):
            yield Sign.HEAD, f"--- a/{place}" if step.before is not None else "--- /dev/null"
            yield Sign.HEAD, f"+++ b/{place}" if step.after is not None else "+++ /dev/null"
            for row in rows(step, around=3):
                yield from _signed(row)
        else:
            yield Sign.HEAD, f"{place}: {_binary(step.before)} → {_binary(step.after)}"


def _signed(row: str) -> Iterator[tuple[Sign, str]]:
    """Compare to the byte, so that a changed line ending shows."""
    sign = Sign(row[0])
    yield sign, visible(row.removesuffix("\n"))
    if not row.endswith("\n") and sign is not Sign.PLACE:
        yield Sign.END, "\\ No newline at end of file"


def _fact(data: bytes | None) -> str:
    return "nothing" if data is None else one_line(data.decode("utf-8", "backslashreplace"), 500)


def _binary(data: bytes | None) -> str:
    return "nothing" if data is None else f"{len(data):,} bytes, sha256 {digest(data)}"


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
