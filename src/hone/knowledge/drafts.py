"""Changes that are thought of and not yet recorded: one by one, or in a batch that is made as a whole."""

import os
from collections.abc import Sequence
from dataclasses import replace

from hone.core.errors import Refused
from hone.core.ledger import Author, Change, ChangeId, ChangeKind, Target
from hone.core.value import dataclass
from hone.knowledge import folding
from hone.knowledge.admission import Verdict
from hone.knowledge.folding import Files


@dataclass(frozen=True, slots=True)
class Draft:
    """A change that is not yet recorded."""

    target: Target
    kind: ChangeKind
    before: Files
    after: Files
    about: ChangeId | None = None
    reason: str = ""
    sources: tuple[ChangeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """A skill as it shall be, and as it was when that was decided."""

    name: str
    kind: ChangeKind
    before: Files
    after: Files
    reason: str
    sources: tuple[ChangeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """Moves that are made together or not at all, and so undone. `counted`: they follow from counting, and
    bring no new words."""

    moves: tuple[Move, ...]
    author: Author
    counted: bool = False


def changes(
    drafts: Sequence[Draft], author: Author, verdict: Verdict, group: str
) -> tuple[list[Change], dict[str, bytes]]:
    made: list[Change] = []
    contents: dict[str, bytes] = {}
    if all(draft.before == draft.after for draft in drafts):
        raise Refused("Nothing would change.")
    for draft in drafts:
        told = folding.picture if group else folding.steps
        deltas, bodies = folding.deltas(told(draft.before, draft.after))
        if not deltas:
            raise Refused("Nothing would change.")
        contents |= bodies
        # The owner's words stay in the conversation, where deleting it takes them along.
        by = replace(author, quotes=(), reason=draft.reason or author.reason)
        change = Change(draft.target, draft.kind, deltas, by, verdict.standing, verdict.confirmed)
        made.append(
            replace(change, cause=verdict.cause, about=draft.about, sources=draft.sources, group=group)
        )
    return made, contents


def named() -> str:
    """For a group that nobody else has."""
    return os.urandom(8).hex()
