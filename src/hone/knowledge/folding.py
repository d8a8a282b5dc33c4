"""Convert between contents and deltas: what a change did, what reverts it, and what it would do now.

It also holds changes before they are recorded.
"""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.ledger import (
    START,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Delta,
    Entry,
    Ledger,
    Target,
)
from hone.core.messages import digest
from hone.core.skill import ARCHIVED
from hone.core.value import replace
from hone.core.visible import visible
from hone.knowledge.journal import lines
from hone.knowledge.merge import Clash, by_entry, merge
from hone.knowledge.verdicts import Verdict

Files = Mapping[str, bytes]
"""The contents of a target, by path; @facts included."""


class Loaded(Struct, frozen=True):
    """What targets hold. `latest` is the last change included; None if unknown. `kinds` are those of the
    changes after `since`, if known."""

    files: Mapping[Target, Files]
    latest: ChangeId | None = None
    since: ChangeId = START
    kinds: frozenset[ChangeKind] | None = None


async def load(ledger: Ledger, target: Target) -> Files:
    """Return what the ledger says a target holds."""
    return await load_held(ledger, await ledger.held(target))


async def load_held(ledger: Ledger, held: Mapping[str, str]) -> Files:
    """Load the bytes of files by their digests."""
    contents = await ledger.contents(set(held.values()))
    return {path: contents[each] for path, each in held.items()}


def fold(held: Mapping[str, str], change: Change) -> dict[str, str]:
    """Return what is held, by digest, after the change has taken effect."""
    after = dict(held)
    for delta in change.deltas:
        after.pop(delta.path, None)
        if delta.after:
            after[delta.path] = delta.after
    return after


async def was_aged(ledger: Ledger, target: Target) -> bool:
    """Tell whether aging archived a skill, rather than a person or a merge."""
    for entry in await ledger.entries(ChangeQuery(target=target)):
        change = entry.change
        came = any(each.path == ARCHIVED and each.before is None for each in change.deltas)
        if came and change.standing is ChangeState.ACTIVE:
            if change.kind is ChangeKind.APPROVE and change.about:
                change = (await ledger.entry(change.about)).change
            return change.kind is ChangeKind.AGE
    return False


class Step(Struct, frozen=True):
    """One content before and after; None: it is not there."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def reverse(self) -> "Step":
        return Step(self.path, self.after, self.before)


async def load_steps(ledger: Ledger, change: Change) -> tuple[Step, ...]:
    """Return what a change did, with the unchanged contents that it names."""
    return (await load_all_steps(ledger, [change]))[0]


async def load_all_steps(ledger: Ledger, changes: Sequence[Change]) -> Sequence[tuple[Step, ...]]:
    """Return what each change did. All contents are read at once."""
    deltas = [delta for change in changes for delta in change.deltas]
    contents = await ledger.contents(
        {each for delta in deltas for each in (delta.before, delta.after) if each}
    )
    return [
        tuple(
            Step(delta.path, *(contents[each] if each else None for each in (delta.before, delta.after)))
            for delta in change.deltas
        )
        for change in changes
    ]


def steps(before: Files, after: Files) -> tuple[Step, ...]:
    paths = sorted({*before, *after})
    return tuple(
        Step(path, before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)
    )


def picture(before: Files, after: Files) -> tuple[Step, ...]:
    """Return `steps` with the contents that stay unchanged."""
    return tuple(Step(path, before.get(path), after.get(path)) for path in sorted({*before, *after}))


def deltas(made: Sequence[Step]) -> tuple[tuple[Delta, ...], dict[str, bytes]]:
    """Return the steps by digest, and the contents they name."""
    contents: dict[str, bytes] = {}

    def named(data: bytes | None) -> str | None:
        if data is None:
            return None
        contents[digest(data)] = data
        return digest(data)

    return tuple(Delta(step.path, named(step.before), named(step.after)) for step in made), contents


class Draft(Struct, frozen=True):
    """A change that is not recorded yet."""

    target: Target
    kind: ChangeKind
    before: Files
    after: Files
    about: ChangeId | None = None
    reason: str = ""
    sources: tuple[ChangeId, ...] = ()


class Move(Struct, frozen=True):
    """The desired state of a skill, and its state when that was decided."""

    name: str
    kind: ChangeKind
    before: Files
    after: Files
    reason: str
    sources: tuple[ChangeId, ...] = ()


class Batch(Struct, frozen=True):
    """Moves that are made, and undone, together or not at all. `counted`: they follow from counting, and
    bring no new words."""

    moves: tuple[Move, ...]
    author: Author
    counted: bool = False


def changes(
    drafts: Sequence[Draft], author: Author, verdict: Verdict, group: str
) -> tuple[list[Change], dict[str, bytes]]:
    """Return drafts as changes to record, and the contents they name. Raises Refused if nothing changes."""
    made: list[Change] = []
    contents: dict[str, bytes] = {}
    if all(draft.before == draft.after for draft in drafts):
        raise Refused("Nothing would change.")
    for draft in drafts:
        compare = picture if group else steps
        named, bodies = deltas(compare(draft.before, draft.after))
        if not named:
            raise Refused("Nothing would change.")
        contents |= bodies
        # The owner's words stay in the conversation, so that deleting it deletes them.
        by = replace(author, quotes=(), said=(), reason=draft.reason or author.reason)
        change = Change(draft.target, draft.kind, named, by, verdict.standing, verdict.confirmed)
        made.append(
            replace(change, cause=verdict.cause, about=draft.about, sources=draft.sources, group=group)
        )
    return made, contents


def new_group() -> str:
    """Return a unique name for a group."""
    return os.urandom(8).hex()


def replay(files: Files, made: Sequence[Step], *, entries: bool) -> dict[str, bytes]:
    """Return the contents after steps that were made on other contents. Raises Refused where they meet a
    later change. `entries`: the text is a journal's."""
    after = dict(files)
    for step in made:
        content = _replay(files.get(step.path), step, entries=entries)
        if content is None:
            after.pop(step.path, None)
        else:
            after[step.path] = content
    return after


def _replay(now: bytes | None, step: Step, *, entries: bool) -> bytes | None:
    if now == step.before:
        return step.after
    if now == step.after:
        return now
    sides = (step.before, now, step.after)
    texts = [text for text in map(_text, sides) if text is not None]
    if step.path.startswith("@") or len(texts) < len(sides) or (None in sides and not entries):
        raise Refused(f"{step.path} has changed since, as a whole; nothing was changed.")
    base, ours, theirs = texts
    merged = merge(base, ours, theirs, by_entry if entries else lines)
    if merged.clashes:
        both = describe(merged.clashes)
        raise Refused(f"{step.path} has changed since in the same place; nothing was changed.\n{both}")
    return merged.text.encode()


def _text(data: bytes | None) -> str | None:
    """Return a content as text: None for binary data, empty if it does not exist."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        return None


def describe(clashes: Sequence[Clash]) -> str:
    rows: list[str] = []
    for clash in clashes:
        rows += ["now:", *_rows(clash.ours), "wanted:", *_rows(clash.theirs)]
    return "\n".join(rows)


def _rows(pieces: Sequence[str]) -> list[str]:
    text = visible("".join(pieces)).rstrip("\n")
    return [f"  {row}" for row in text.split("\n")] if text else ["  (nothing)"]


async def load_after(
    ledger: Ledger, made: Sequence[Entry], recorded: Mapping[str, bytes]
) -> Mapping[Target, str]:
    """Return the texts of the targets in which changes took effect, as the last of them left each. What was
    just `recorded` need not be read."""
    active = [each.change for each in made if each.change.standing is ChangeState.ACTIVE]
    names = {change.target: delta.after or "" for change in active for delta in change.deltas}
    missing = {*names.values()} - recorded.keys() - {""}
    known = {"": b"", **recorded, **(await ledger.contents(missing) if missing else {})}
    return {target: known[name].decode() for target, name in names.items()}


async def is_standing(ledger: Ledger, entry: Entry) -> bool:
    """Return whether a change has effect, or still waits for an answer."""
    if not entry.settled:
        return bool(entry.change.deltas)
    if entry.change.standing is ChangeState.PENDING:
        return False
    return not await is_standing(ledger, await ledger.entry(entry.settled))


async def find_group(ledger: Ledger, entry: Entry) -> Sequence[Entry]:
    """Return the changes that are answered or undone with this one, including itself, oldest first."""
    if not entry.change.group:
        return [entry]
    group = await ledger.entries(ChangeQuery(group=entry.change.group))
    return [each for each in reversed(group) if await is_standing(ledger, each)]


async def describe_since(ledger: Ledger, entry: Entry) -> str:
    """Name the later effective changes of the same target; nothing if there are none."""
    later = await ledger.entries(ChangeQuery(target=entry.change.target, after=entry.id))
    active = [
        str(each.id) for each in later if each.change.standing is ChangeState.ACTIVE and each.change.deltas
    ]
    return f"\nChanges since: {', '.join(reversed(active))}." if active else ""
