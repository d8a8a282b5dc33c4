"""Trust levels: where words come from. Only code sets them; a derived text gets the lowest level of its
sources."""

from collections.abc import Iterable
from enum import IntEnum


class Trust(IntEnum):
    """Ordered: the lower the number, the less may rest on it."""

    FOREIGN = 0
    LOCAL = 1
    AGENT = 2
    OWNER = 3


def lowest(labels: Iterable[Trust]) -> Trust:
    return min(labels, default=Trust.OWNER)
