"""Count money without loss: whole picodollars, divided by the largest remainder."""

from collections.abc import Sequence
from decimal import Decimal

PICO = 10**12
"""Picodollars in a US dollar. The smallest price of a token is 10,000 of them."""


def to_pico(dollars: float) -> int:
    """Return the cost of a call. The store holds the shortest decimal that is this float."""
    return round(Decimal(repr(dollars)) * PICO)


def to_dollars(pico: int) -> Decimal:
    """Return the exact amount."""
    return (Decimal(pico) / PICO).normalize() + 0


def divide(amount: int, weights: Sequence[int]) -> list[int]:
    """Divide an amount by weights. The parts add up to it: the rounding remainder goes to the largest
    remainders, the first of equal ones. Without any weight, all parts are equal."""
    if not weights:
        return []
    shares = list(weights) if any(weights) else [1] * len(weights)
    whole = sum(shares)
    parts = [amount * each // whole for each in shares]
    rest = amount - sum(parts)
    order = sorted(range(len(shares)), key=lambda at: (-(amount * shares[at] % whole), at))
    for at in order[:rest]:
        parts[at] += 1
    return parts


def round_together(amounts: Sequence[int], unit: int) -> list[int]:
    """Round the amounts to whole units. They add up to their rounded sum, and none is off by more than a
    unit."""
    down = [each // unit for each in amounts]
    left = (sum(amounts) + unit // 2) // unit - sum(down)
    order = sorted(range(len(amounts)), key=lambda at: (-(amounts[at] % unit), at))
    for at in order[:left]:
        down[at] += 1
    return down
