"""Whether a review reads the conversation itself or a digest of it: a matter of what the provider still has.

A fork that begins with the bytes of its parent's last request is read from the provider's cache, at a tenth
of the price or less, as long as the cache is warm. Then the whole conversation costs `tokens * cached`, and a
digest of a fifth of it, which no cache has, costs `tokens / 5 * input`: the fork is cheaper, and it reads
everything. Once the cache is cold, or under another model, the fork costs `tokens * input`: five digests.
"""

from hone.core.value import dataclass

DIGEST_SHARE = 0.2
"""How long a digest is, as a share of the conversation."""
SMALL = 8_000
"""Tokens of a conversation that is not worth a digest: what that leaves out is worth more than it costs."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`age`: seconds since the conversation's last request. `lasts`: how long the provider keeps what it
    read. Prices are for a token, in any currency; None where no price is known."""

    age: float
    lasts: float
    tokens: int
    same_model: bool = True
    price: float | None = None
    cached_price: float | None = None


def is_warm(reading: Reading) -> bool:
    """True: read the conversation itself."""
    if not reading.same_model:
        return False
    if reading.tokens <= SMALL:
        return True
    if reading.age > reading.lasts:
        return False
    if reading.price is None or reading.cached_price is None:
        return True
    return reading.cached_price <= DIGEST_SHARE * reading.price
