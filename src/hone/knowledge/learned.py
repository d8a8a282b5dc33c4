"""What a review has learned, in one line."""

from collections import Counter
from collections.abc import Iterator, Sequence

from hone.core.ledger import SKILL, ChangeKind, ChangeState, Target
from hone.core.visible import one_line
from hone.knowledge import journal, places
from hone.knowledge.descriptions import Told

DEEDS = {
    ChangeKind.CREATE: "created",
    ChangeKind.REWRITE: "rewritten",
    ChangeKind.PATCH: "patched",
    ChangeKind.ARCHIVE: "archived",
    ChangeKind.AGE: "archived",
    ChangeKind.MERGE: "merged",
}
SHELL, CHAT = "hone ", "/"
"""How a command is called where the line is read."""


def line(changes: Sequence[Told], way: str = SHELL, who: str = "learned") -> str:
    """Empty if there is nothing to say."""
    active = [each for each in changes if each.entry.change.standing is ChangeState.ACTIVE]
    parts = [f"{who}: {', '.join(_gains(active))} ({_back(active, way)})"] if active else []
    waiting = len(changes) - len(active)
    if waiting:
        parts.append(f"{'1 lesson waits' if waiting == 1 else f'{waiting} lessons wait'} ({way}pending)")
    return f"✎ {'; '.join(parts)}" if parts else ""


def _gains(changes: Sequence[Told]) -> Iterator[str]:
    """By target, in the order they came."""
    for target in dict.fromkeys(each.entry.change.target for each in changes):
        own = [each for each in changes if each.entry.change.target == target]
        yield _skill(target, own) if target.startswith(SKILL) else _journal(target, own)


def _skill(target: Target, changes: Sequence[Told]) -> str:
    deeds = dict.fromkeys(DEEDS.get(each.entry.change.kind, "changed") for each in changes)
    return f"skill {one_line(places.name_of(target), 70)} {' and '.join(deeds)}"


def _journal(target: Target, changes: Sequence[Told]) -> str:
    """Entries that came and entries that went."""
    came = gone = 0
    for step in (step for each in changes for step in each.steps):
        before, after = (
            Counter(journal.entries((data or b"").decode())) for data in (step.before, step.after)
        )
        came, gone = came + (after - before).total(), gone + (before - after).total()
    counts = [f"+{came}"] if came else []
    counts += [f"−{gone}"] if gone else []
    return " ".join([places.name_of(target), *(counts or ["changed"])])


def _back(changes: Sequence[Told], way: str) -> str:
    ids = [str(each.entry.id) for each in changes]
    groups = {each.entry.change.group for each in changes}
    if len(ids) == 1 or (len(groups) == 1 and "" not in groups):
        return f"{way}undo {ids[0]}"
    return f"{way}log: {', '.join(ids)}"
