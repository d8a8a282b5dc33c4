"""What a review has learned, in one line; or with each change, where the owner wants to see more."""

from hone.cli.changes import account, describe, indented
from hone.core.events import Curated, Learned
from hone.knowledge.descriptions import CHAT, SHELL, summarize
from hone.knowledge.keeper import Keeper

NOTHING = "nothing to save"

__all__ = ["CHAT", "NOTHING", "SHELL", "lines"]


async def lines(keeper: Keeper, learned: Learned | Curated, show: str, way: str = SHELL) -> list[str]:
    """As `learning.show` wants it: nothing, one line if something was learned, or all of it."""
    if show == "off":
        return []
    changes = await describe(keeper, learned.entries)
    first = summarize(changes, way, "learned" if isinstance(learned, Learned) else "curator")
    if show != "verbose":
        return [first] if first else []
    return [first or f"✎ {NOTHING}", *indented(row for each in changes for row in account(each))]
