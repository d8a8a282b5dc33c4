"""What the curator is asked: which of these skills should be one."""

from collections.abc import Callable, Sequence

from hone.core.value import dataclass
from hone.core.visible import one_line, visible

WHOLE = 80_000
"""Characters of skills that are shown whole; of the others it gets a line each and can view them."""
WIDTH = 200


@dataclass(frozen=True, slots=True)
class SkillOffer:
    """A skill that may be changed. `text` is its document."""

    name: str
    description: str
    text: str
    uses: int


def question(offers: Sequence[SkillOffer], text: Callable[[str], str]) -> str:
    room, parts = WHOLE, [text("curate")]
    for offer in offers:
        head = f"# {offer.name} ({offer.uses:,} uses)"
        shown = visible(offer.text)
        room -= len(shown)
        if room >= 0:
            parts.append("\n".join((head, *(f"  {line}".rstrip() for line in shown.split("\n")))))
        else:
            parts.append(f"{head}: {one_line(offer.description, WIDTH)}")
    return "\n\n".join(parts)
