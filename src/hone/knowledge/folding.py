"""From contents to deltas and back: what a change did, what takes it back, what it would do now."""

from collections.abc import Mapping, Sequence

from hone.core.errors import Refused
from hone.core.ledger import Delta, Ledger, Target
from hone.core.messages import digest
from hone.core.value import dataclass
from hone.core.visible import visible
from hone.knowledge.journal import lines
from hone.knowledge.merge import Clash, by_entry, merge

Files = Mapping[str, bytes]
"""The contents of a target, by path; @facts included."""


async def held(ledger: Ledger, target: Target) -> Files:
    """What the ledger says."""
    holding = await ledger.holding(target)
    contents = await ledger.contents(set(holding.values()))
    return {path: contents[each] for path, each in holding.items()}


@dataclass(frozen=True, slots=True)
class Step:
    """One content before and after; None: it is not there."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def reverse(self) -> "Step":
        return Step(self.path, self.after, self.before)


def steps(before: Files, after: Files) -> tuple[Step, ...]:
    paths = sorted({*before, *after})
    return tuple(
        Step(path, before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)
    )


def picture(before: Files, after: Files) -> tuple[Step, ...]:
    """Like `steps`, with the contents that stay as they are."""
    return tuple(Step(path, before.get(path), after.get(path)) for path in sorted({*before, *after}))


def deltas(made: Sequence[Step]) -> tuple[tuple[Delta, ...], dict[str, bytes]]:
    """By digest, and the contents they name."""
    contents: dict[str, bytes] = {}

    def named(data: bytes | None) -> str | None:
        if data is None:
            return None
        contents[digest(data)] = data
        return digest(data)

    return tuple(Delta(step.path, named(step.before), named(step.after)) for step in made), contents


def replayed(files: Files, made: Sequence[Step], *, entries: bool) -> dict[str, bytes]:
    """The contents after steps that were made on other ones. Raises Refused where they meet a later change.
    `entries`: the text is a journal's."""
    after = dict(files)
    for step in made:
        content = _replayed(files.get(step.path), step, entries=entries)
        if content is None:
            after.pop(step.path, None)
        else:
            after[step.path] = content
    return after


def _replayed(now: bytes | None, step: Step, *, entries: bool) -> bytes | None:
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
        raise Refused(
            f"{step.path} has changed since in the same place; nothing was changed.\n{shown(merged.clashes)}"
        )
    return merged.text.encode()


def _text(data: bytes | None) -> str | None:
    """None for what is no text; what is not there is an empty one."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        return None


def shown(clashes: Sequence[Clash]) -> str:
    rows: list[str] = []
    for clash in clashes:
        rows += ["now:", *_rows(clash.ours), "wanted:", *_rows(clash.theirs)]
    return "\n".join(rows)


def _rows(pieces: Sequence[str]) -> list[str]:
    text = visible("".join(pieces)).rstrip("\n")
    return [f"  {row}" for row in text.split("\n")] if text else ["  (nothing)"]
