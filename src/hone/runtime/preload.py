"""Skills that the user asks for by name: their text goes with the user's words, and counts as a use."""

from collections.abc import Sequence

from hone.core.errors import Refused
from hone.core.ids import SessionId
from hone.core.ledger import Actor
from hone.core.skill import DOCUMENT, SkillEvent
from hone.core.visible import visible
from hone.knowledge.library import Library
from hone.knowledge.skills.document import decoded, parse
from hone.knowledge.skills.facts import facts, parted


async def load(library: Library, names: Sequence[str]) -> str:
    """What to tell with the message. Raises Missing, with names that are close, or Refused."""
    return "\n".join([await _told(library, name) for name in dict.fromkeys(names)])


async def use(library: Library, names: Sequence[str], session: SessionId) -> str:
    """`load`, and each of them counts as used in this conversation."""
    text = await load(library, names)
    for name in dict.fromkeys(names):
        await library.count(name, SkillEvent.USE, Actor.OWNER, session)
    return text


async def _told(library: Library, name: str) -> str:
    files = await library.files(name)
    if facts(files).archived and not await library.keeper.wake(name):
        raise Refused(f"The skill {name} is archived. Take it out again with: hone skills restore {name}")
    body = visible(parse(decoded(DOCUMENT, files[DOCUMENT])).body)
    lines = [f"# The user asked for the skill {name}", *(f"  {line}".rstrip() for line in body.split("\n"))]
    if others := sorted(parted(files)[0].keys() - {DOCUMENT}):
        lines.append(f"# Files of {name}, for skill_view: {', '.join(others)}")
    return "\n".join(lines)
