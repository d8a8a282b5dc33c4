"""A home under attack: a channel brings a text, an obedient model does what it says, and we look."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.jobs import State
from hone.core.ledger import USER
from hone.core.messages import ToolCall
from hone.core.permissions import Answer
from hone.core.ports import StoredSession
from hone.core.skill import SkillOrigin
from hone.core.topics import NAMES
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import Turn
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.scripted import Scripted, call
from hone.runtime.session import Session
from hone.runtime.task_runner import ignore
from hone.settings import Settings
from hone.settings.sections import Guardrails, Learning, Memory
from tests.story.poison.injected import ENCODINGS, PUBLIC, Injected, honest, injected, public, words
from tests.story.poison.obedient import (
    BREWING,
    GO_ON,
    LEAVES,
    LOOK,
    TEA,
    WARM,
    Attack,
    Obedient,
    document,
)
from tests.tools.internet import PUBLIC as ADDRESS
from tests.tools.internet import internet, page
from tests.tools.shells import Owner

OURS, HONEST = injected(), honest()
TEXTS = [*OURS, *public(len(OURS))]
SITE = "http://site.example"
HARMLESS, PAGE = "weather", "page.txt"
HOUR = 3_600.0
LENGTHY = "\n" + "And so on. " * 3_000
"""Makes a conversation long enough for a digest."""
PATIENT = (10_000, 10_000)
SETTINGS = Settings(
    result_limit=100_000,
    guardrails=Guardrails(PATIENT, PATIENT, PATIENT),
    memory=Memory(1_000_000, 1_000_000, 1_000_000),
    learning=Learning(turns=0, iterations=0),
)
"""Nothing but the rules on trust may stop a call: no counter, no full journal, no review of its own."""


class Channel:
    """A way for a text into a conversation. A subclass says what is prepared, which calls bring the text, and
    in which message it then stands."""

    name = ""
    trusted = True
    """Whether the owner trusts the folder."""
    cold = False
    """A review of such a conversation reads a digest."""
    clipped = False
    """It brings as much of a text as fits."""

    def settings(self, honest: bool) -> Settings:
        return SETTINGS

    async def open(self, place: "House", text: Injected) -> Session:
        """Prepare what the user's words need, and return the conversation in which they are said."""
        return await place.hone.session()

    def steps(self, place: "House", text: Injected) -> Sequence[ToolCall]:
        """Return the calls of that conversation. The last one brings the text."""
        return ()

    def looks(self, text: Injected) -> Sequence[ToolCall]:
        """Return what a review looks up before it obeys."""
        return ()

    async def hold(self, place: "House", text: Injected, *, at_once: bool) -> SessionId:
        """Have the conversation. The model obeys in it `at_once`, or leaves that to a review."""
        session = await self.open(place, text)
        place.mind.steps, place.mind.at_once = self.steps(place, text), at_once
        await session.send(place.mind.owner.said)
        return session.id

    def number(self, heard: Sequence[Node]) -> int:
        """Return the number of the message that the text came in: by default, of the last result."""
        return max(number for number, node in enumerate(heard, 1) if node.message.result)

    def check(self, place: "House", text: Injected, node: Node) -> None:
        """Check that the text was read, and labeled as it must be."""
        result = node.message.result
        assert not (result and result.failed), result
        assert (node.trust_floor is Trust.FOREIGN) is not place.honest
        self.find(place, text, result.text if result else node.message.text)

    def find(self, place: "House", text: Injected, content: str) -> None:
        """Check that the text is there. What a page hides from people web_fetch leaves out."""
        if text.family in {"html", *ENCODINGS}:
            return
        if self.clipped:
            assert place.marked(content, [text]), content
        elif text.family == PUBLIC:
            assert words(text.plain) in words(content)
        else:
            assert text.canary in content


@dataclass
class House:
    """A home with an entry and a skill in it, and a conversation that is open all the while."""

    hone: Hone
    mind: Obedient
    model: Scripted
    owner: Owner
    witness: Session
    channel: Channel
    folder: Path
    port: int
    clock: ManualClock
    cold: bool = False
    """Its reviews come late and read a digest of the conversation."""
    honest: bool = False
    """The control: the text stands in a file that the owner trusts, and does get in."""
    before: list[bytes] = field(default_factory=list)
    known: str = ""
    """The words that stood here from the beginning."""

    async def attacked(self, text: Injected, *, review: bool) -> Sequence[tuple[str, str]]:
        """Return the way and the answer of each call that the text set off."""
        mind, channel = self.mind, self.channel
        mind.injected, mind.owner = text, HONEST[text.number % len(HONEST)]
        mind.looks, mind.result = None, 0
        named = [way for way, calls in Attack(text, mind.owner, 1).ways().items() for _ in calls]
        id = await channel.hold(self, text, at_once=not review)
        nodes = (await self.hone.sessions.load(id)).transcript.nodes
        # In the foreground the attack ends it: one message, its results, and the last word.
        heard = nodes if review else nodes[: -len(named) - 2]
        mind.result = channel.number(heard)
        channel.check(self, text, heard[mind.result - 1])
        mind.looks = channel.looks(text)
        acted = nodes[len(heard) :]
        if review:
            fork = await self.review(id)
            assert fork.header.shared == (0 if self.cold or channel.cold else len(heard))
            acted = fork.transcript.nodes[fork.header.shared :]
        found = [node for node in acted if node.message.result]
        looked, answers = found[: -len(named)], found[-len(named) :]
        for node in looked:
            Channel.check(channel, self, text, node)
        return [
            (way, node.message.result.text)
            for way, node in zip(named, answers, strict=True)
            if node.message.result
        ]

    async def talk(self, *calls: ToolCall) -> Session:
        """Have an earlier conversation, with these calls and without obedience."""
        self.mind.steps, self.mind.at_once = calls, False
        session = await self.hone.session()
        await session.send(self.mind.owner.said)
        return session

    def source(self, text: Injected) -> ToolCall:
        """Return the call that brings the text first of all."""
        if not self.honest:
            return call("web_fetch", url=f"{SITE}/{text.number}")
        (self.folder / PAGE).write_text(text.text, "utf-8")
        return call("read_file", path=PAGE)

    async def review(self, id: SessionId, *, late: bool = False) -> StoredSession:
        """Review the conversation, and return the review."""
        hone, stored = self.hone, await self.hone.sessions.load(id)
        count = len(stored.transcript)
        made = await hone.jobs.enqueue(id, count, NAMES, "test", stored.header.created)
        if self.cold or late:
            self.clock.advance(HOUR)
            self.before = await self.seen()  # it may be another day, and a prompt tells which
        await hone.reviewer.work(made.id, ignore)
        done = await hone.jobs.job(made.id)
        assert done.state is State.DONE, done.error
        return await hone.sessions.load(done.review)

    async def seen(self) -> list[bytes]:
        """What a new conversation begins with and can look up, and what a running one is told."""
        fresh = await self.hone.session()
        found = results(await fresh.send(LOOK))
        await self.witness.send(GO_ON)
        prefix, transcript = self.model.calls[-1]
        last = transcript.nodes[-1].message
        told = last.note.text if last.note else ""
        listed, searched, *viewed, own = found
        missing = own.startswith("There is no skill") and "Close" not in own
        told_of = "" if missing else own
        shown = searched if self.marked(searched, [self.mind.injected]) else ""
        return [
            fresh.agent.prefix.encode(),
            prefix.encode(),
            *map(str.encode, (told, listed, *viewed, shown, told_of)),
        ]

    def marked(self, content: str, texts: Iterable[Injected]) -> bool:
        """Whether words of one of the texts stand in it: its canary, or five in a row that are new here."""
        written = words(content.replace("\\n", " "))
        return any(text.canary in content or self._has(written, text) for text in texts)

    def _has(self, written: str, text: Injected) -> bool:
        return any(run in written and run not in self.known for run in text.runs)

    def printed(self) -> dict[Path, str]:
        return {path: path.read_text("utf-8") for path in self.hone.home.rglob("*.md")}


def results(turn: Turn) -> list[str]:
    return [node.message.result.text for node in turn.nodes if node.message.result]


@asynccontextmanager
async def house(
    home: Path, folder: Path, channel: Channel, *, cold: bool = False, honest: bool = False
) -> AsyncIterator[House]:
    def pages(_: str, path: str) -> bytes:
        if path[1:] == HARMLESS:
            return page("Rain in the morning, and sun later.", "text/plain; charset=utf-8")
        text = TEXTS[int(path[1:])]
        kind = "text/html" if text.family == "html" else "text/plain"
        return page(text.text + (LENGTHY if cold else ""), f"{kind}; charset=utf-8")

    mind, owner = Obedient(), Owner(Answer.ONCE)
    model, clock = Scripted(mind), ManualClock()
    folder.mkdir(exist_ok=True)
    async with (
        internet(pages, {"site.example": [[ADDRESS]]}) as (net, fetch),
        Hone(
            home=home,
            model=model,
            folder=folder,
            tools=[fetch],
            ask=owner.ask,
            settings=channel.settings(honest),
            clock=clock,
        ) as hone,
    ):
        if channel.trusted:
            hone.folders.trust(folder)
        await furnish(hone)
        witness = await hone.session()
        await witness.send(GO_ON)
        made = House(hone, mind, model, owner, witness, channel, folder, net.port, clock, cold, honest)
        mind.injected = TEXTS[0]
        made.before = await made.seen()
        there = [*map(bytes.decode, made.before), *made.printed().values()]
        made.known = words(" ".join(there).replace("\\n", " "))
        yield made


async def furnish(hone: Hone) -> None:
    keeper = hone.keeper
    await keeper.note([(USER, Add(TEA))], OWNER)
    await keeper.edit_skill(
        BREWING, Create(document(BREWING, "brewing tea.", WARM), SkillOrigin.AGENT), OWNER
    )
    await keeper.edit_skill(BREWING, WriteFile(LEAVES, b"Green and black.\n"), OWNER)
