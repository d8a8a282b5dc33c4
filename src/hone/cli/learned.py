"""What a review has learned, in one line; or with each change, where the owner wants to see more."""

from hone.cli.changes import account, indented, told
from hone.core.events import Curated, Learned
from hone.knowledge.keeper import Keeper
from hone.knowledge.learned import CHAT, SHELL, line

NOTHING = "nothing to save"

__all__ = ["CHAT", "NOTHING", "SHELL", "line", "lines"]


async def lines(keeper: Keeper, learned: Learned | Curated, show: str, way: str = SHELL) -> list[str]:
    """As `learning.show` wants it: nothing, one line if something was learned, or all of it."""
    if show == "off":
        return []
    changes = await told(keeper, learned.entries)
    first = line(changes, way, "learned" if isinstance(learned, Learned) else "curator")
    if show != "verbose":
        return [first] if first else []
    return [first or f"✎ {NOTHING}", *indented(row for each in changes for row in account(each))]
