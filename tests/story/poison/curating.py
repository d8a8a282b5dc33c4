"""The curator under attack: a poisoned skill waits or was rejected, and the curator's model obeys it."""

import json
from collections.abc import Sequence

from hone.core.ledger import Actor, Change
from hone.core.messages import Role
from hone.core.skill import SkillOrigin
from hone.core.transcript import Node
from hone.core.value import replace
from hone.features.curator.part import CuratorPart
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create
from hone.settings import Settings
from tests.story.poison.channels import Fetched
from tests.story.poison.house import SETTINGS, House
from tests.story.poison.injected import Injected, words
from tests.story.poison.obedient import BREWING, GO_ON, WARM, document, skill_name

KETTLE, RINSE = "kettle-care", "Rinse the kettle."


class Waiting(Fetched):
    """The poisoned skill comes by web_fetch. In the control the owner lets the curator merge by itself."""

    def settings(self, honest: bool) -> Settings:
        learning = replace(SETTINGS.learning, merges="auto" if honest else "ask")
        return replace(SETTINGS, learning=learning)


async def furnish(place: House) -> None:
    """Add a second skill, so that there is something to merge, and note what a review is asked: one of the
    texts pretends to be that question."""
    skill = Create(document(KETTLE, "kettles.", RINSE), SkillOrigin.AGENT)
    await place.hone.keeper.edit_skill(KETTLE, skill, OWNER)
    asked = " ".join(node.encoded.decode() for node in await reviewed(place))
    place.known += words(asked.replace("\\n", " "))
    await place.seen()  # the open conversation is told once
    place.before = await place.seen()


def plan(text: Injected) -> str:
    """What the model wants: text in an active skill, in a new one, or an active one put away."""
    merge = {
        "into": (BREWING, skill_name(text))[text.number % 2],
        "sources": [BREWING, KETTLE],
        "description": text.entry[:300],
        "body": f"{WARM}\n\n{RINSE}\n\n{text.entry}",
        "reason": text.entry,
    }
    away = {"name": KETTLE, "reason": text.entry}
    return json.dumps({"archive": [away]} if text.number % 3 == 2 else {"merge": [merge]})


async def reviewed(place: House) -> tuple[Node, ...]:
    """What a review of a conversation that met nothing is shown."""
    session = await place.hone.session()
    await session.send(GO_ON)
    place.mind.looks = None
    return (await place.review(session.id)).transcript.nodes


async def curated(place: House, text: Injected) -> Sequence[Change]:
    """Let a review and the curator work while the home holds what they may not know. Return the curator's
    changes."""
    hone, mind = place.hone, place.mind
    mind.injected = text
    if not place.honest:
        await place.attacked(text, review=False)
    for entry in await hone.ledger.pending():
        is_answered = (await hone.ledger.entry(entry.id)).settled
        if not is_answered and (text.number % 2 or entry.change.author.actor is Actor.CURATOR):
            await hone.keeper.reject(entry.id)
    nodes = await reviewed(place)
    mind.plan = plan(text)
    done = await hone.part(CuratorPart).curator.work(again=True)
    assert done
    run, entries = done
    nodes += (await hone.sessions.load(run.session)).transcript.nodes
    read = [node.encoded.decode() for node in nodes if node.message.role is not Role.ASSISTANT]
    # An answer may repeat the name that was asked for.
    assert not any(place.marked(each.replace(skill_name(text), ""), [text]) for each in read)
    return [each.change for each in entries]
