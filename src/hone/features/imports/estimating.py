"""Estimate what it takes to review imported conversations, before anything is stored."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.jobs import PendingLook, find_ripe
from hone.core.model import Usage
from hone.models.wrappers import Price

BYTES = 4
"""Bytes of a token."""
ANSWER = 600
"""Tokens that a review writes on average: most write little, some write a skill."""

Looks = Mapping[SessionId, tuple[PendingLook, int]]
"""What is new to look back over, each with the number of bytes that its review reads."""


class Estimate(Struct, frozen=True):
    """`reviews` can run now; `waiting` conversations are too short to be reviewed alone, or may still
    continue. `cost` is in US dollars; None if the model's price is unknown."""

    reviews: int
    waiting: int
    input: int
    output: int
    model: str = ""
    cost: float | None = None


class ReviewModel(Struct, frozen=True):
    """The model that reviews, its price, and the size of each request's head."""

    name: str = ""
    price: Price | None = None
    prefix: int = 0


def estimate(
    new: Looks, waiting: Sequence[PendingLook], model: ReviewModel, now: datetime, *, first: bool
) -> Estimate:
    """Estimate the reviews that become due with `new`, besides those that wait already. `first`: there was no
    review in this home yet."""
    sizes = {id: size for id, (_, size) in new.items()}
    together = [look for look in waiting if look.session not in new] + [look for look, _ in new.values()]
    due = [look for look in together if look.due <= now]
    groups = [group for group in find_ripe(due, first=first) if any(each.session in new for each in group)]
    read = {look.session for group in groups for look in group}
    tokens = sum(model.prefix + sum(sizes.get(each.session, 0) for each in group) for group in groups)
    usage = Usage(input=tokens // BYTES, output=ANSWER * len(groups))
    cost = model.price.of(usage) if model.price else None
    return Estimate(len(groups), len(new.keys() - read), usage.input, usage.output, model.name, cost)
