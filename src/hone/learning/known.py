"""Tell a review what is known now, so that it can write everything in one reply without look-ups."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from hone.core.jobs import Topics
from hone.core.secrets import redact
from hone.core.transcript import Node
from hone.core.visible import visible
from hone.knowledge import journal, places
from hone.knowledge.admission import ASKED
from hone.knowledge.folding import load_steps
from hone.knowledge.keeper import Keeper
from hone.knowledge.library import Library
from hone.knowledge.snapshots import journals
from hone.knowledge.tools import line
from hone.knowledge.withdrawn import for_review

SKILLS = 8
"""How many skills to list: those most like the conversation."""
QUERY = 2_000
"""The most characters of the owner's words to search skills with."""
WAITING = 10
"""The most pending lessons to list."""


async def describe_known(library: Library, folder: str, nodes: Sequence[Node], topics: Topics) -> str:
    """Return a text with the journal, the skills most like this conversation, what waits for the owner, and
    what the owner took back."""
    blocks: list[str] = []
    if "memory" in topics:
        blocks += await _describe_journal(library.keeper, Path(folder))
        blocks += await _describe_waiting(library.keeper)
        blocks += await _describe_withdrawn(library.keeper)
    if "skills" in topics:
        blocks += await _describe_skills(library, nodes)
    return redact("\n\n".join(["This is what you know now.", *blocks]))


async def _describe_journal(keeper: Keeper, folder: Path) -> list[str]:
    found = []
    for target in journals(folder):
        name = places.name_of(target)
        limit, text = keeper.rules.limits[name], await keeper.text(target)
        if limit:
            heading = f"`{name}` ({journal.size(text):,} of {limit:,} characters)"
            found.append(_list(heading, map(journal.format_entry, journal.entries(text))))
    return found


async def _describe_waiting(keeper: Keeper) -> list[str]:
    """Describe what waits only because the owner wants to be asked. Nothing that rests on foreign text is
    included."""
    asked = [each.change for each in await keeper.ledger.pending() if each.change.cause == ASKED]
    new: list[str] = []
    for change in asked:
        if places.is_journal(change.target):
            for step in await load_steps(keeper.ledger, change):
                before, after = (
                    journal.entries((each or b"").decode()) for each in (step.before, step.after)
                )
                new += [journal.format_entry(entry) for entry in after if entry not in before]
    return [_list("These already wait for the user; do not save them again", new[-WAITING:])] if new else []


async def _describe_withdrawn(keeper: Keeper) -> list[str]:
    rows = [journal.format_entry(text) for text in await for_review(keeper.withdrawals)]
    heading = "The user took these back; save one again only if the user has said it since"
    return [_list(heading, rows)] if rows else []


async def _describe_skills(library: Library, nodes: Sequence[Node]) -> list[str]:
    words = " ".join(node.message.text for node in nodes if node.is_owners)[-QUERY:]
    found = await library.search(words, SKILLS)
    return [_list("The skills closest to this conversation", (f"{line(each)}\n" for each in found))]


def _list(heading: str, rows: Iterable[str]) -> str:
    return f"{heading}:\n{visible(''.join(rows)).rstrip() or '(none)'}"
