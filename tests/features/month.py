"""A month of scripted use: conversations with a priced model, reviews that save good and bad lessons, and an
owner who undoes some of them. Time passes by hand."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import chain, count
from pathlib import Path
from random import Random

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.events import Event
from hone.core.messages import Message, Role, assistant
from hone.core.model import Piece, Reply, Usage
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.value import replace
from hone.models.scripted import Script, Scripted, call, rounds, rules
from hone.models.wrappers import Price
from hone.settings import Settings
from hone.settings.sections import Learning, PriceSettings
from tests.given import NOON

ASKED = "look back over this conversation"
PRICE = Price(3.0, 15.0, 0.3, 3.75)
NAME = "custom/billed"
DAY = 86_400
NOTES = "---\nname: {name}\ndescription: Write the {name} of a version.\n---\n\nOne line per change.\n"


def settings(**learning: object) -> Settings:
    own = Learning(turns=1, **learning)  # type: ignore[arg-type]
    return Settings(learning=own, prices={NAME: PriceSettings(3.0, 15.0, 0.3, 3.75)})


class Billed:
    """A model that charges for what it reads: by its bytes, from its cache where the request begins as an
    earlier one did. `priced` decides whether a call has a price."""

    def __init__(self, script: Script, priced: Callable[[], bool] = lambda: True) -> None:
        self._model = Scripted(script)
        self._priced = priced
        self._seen: set[str] = set()

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        sizes = [len(prefix.encode()), *(len(node.encoded) for node in transcript.nodes)]
        marks = [prefix.digest, *(node.hash for node in transcript.nodes)]
        known = sum(size for size, mark in zip(sizes, marks, strict=True) if mark in self._seen)
        self._seen.update(marks)
        input, cached = sum(sizes) // 4, known // 4
        async with aclosing(self._model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    usage = Usage(input, cached, input - cached, 40)
                    cost = PRICE.of(usage) if self._priced() else None
                    yield replace(piece, usage=replace(usage, cost=cost))
                else:
                    yield piece


def looks_back(transcript: Transcript) -> bool:
    return any(ASKED in message.text for message in transcript if message.role is Role.USER)


NOUNS = [
    "harvest",
    "orchard",
    "bakery",
    "library",
    "harbor",
    "museum",
    "stable",
    "brewery",
    "theater",
    "garage",
    "clinic",
    "kitchen",
    "nursery",
    "quarry",
    "printer",
    "shipping",
    "archive",
    "payroll",
    "invoice",
    "catalog",
    "translation",
    "survey",
    "calendar",
    "inventory",
    "warranty",
    "laundry",
    "recipe",
    "seminar",
    "podcast",
    "festival",
    "insurance",
    "shuttle",
    "greenhouse",
    "workshop",
    "bulletin",
    "telescope",
]


def saves(random: Random) -> Script:
    """A review that saves what was said, what nobody said, a skill, several of these or nothing; some calls
    are broken."""

    def script(messages: Sequence[Message]) -> Message | Reply:
        said = next(each.text for each in messages if each.role is Role.USER)
        one, other = random.sample(NOUNS, 2)
        note = call("memory", evidence=["#1"], action="add_anyway", text=said)
        junk = call("memory", evidence=["#1"], action="add_anyway", text=f"The {one} is next to the {other}.")
        text = NOTES.format(name=f"{one}-notes")
        skill = call("skill_manage", evidence=["#1"], action="create", name=f"{one}-notes", text=text)
        chosen = random.choice([[note], [junk], [skill], [note, skill], [call("memory", action="add")], []])
        return rounds(assistant(*chosen) if chosen else "Nothing to save.", "Done.")(messages)

    return script


def say(random: Random) -> str:
    one, other = random.sample(NOUNS, 2)
    return random.choice([f"The {one} report goes to the {other} team.", f"Write the {one} notes.", "And?"])


def model(random: Random) -> Billed:
    talk = rounds("Well.")
    priced = chain((False,), (random.random() < 0.9 for _ in count()))  # one call at least has no price
    return Billed(rules((ASKED, saves(random)), otherwise=talk), priced.__next__)


async def live(home: Path, folder: Path, random: Random, days: int) -> tuple[Hone, ManualClock]:
    """Live through so many days, and leave the Hone open."""
    clock = ManualClock(NOON)
    hone = Hone(
        home=home, model=model(random), folder=folder, settings=settings(), clock=clock, learning="queue"
    )
    hone.folders.trust(folder)
    heard: list[Event] = []
    for _ in range(days):
        clock.advance(DAY)
        session = await hone.session()
        for _ in range(random.randrange(1, 4)):
            await session.send(say(random))
            clock.advance(60)
        for job in await hone.jobs.waiting():
            await hone.reviewer.work(job.id, heard.append)
        made = [each for each in await hone.ledger.entries() if each.change.deltas and not each.settled]
        if made and random.random() < 0.3:
            active = [each for each in made if each.change.standing == "active" and not each.change.about]
            if active:
                await hone.keeper.undo(random.choice(active).id)
    return hone, clock
