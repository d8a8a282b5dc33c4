"""A home under attack: the real tools bring a text, an obedient model does what it says, and we look."""

import shlex
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.jobs import State
from hone.core.ledger import USER
from hone.core.messages import ToolCall
from hone.core.permissions import Answer
from hone.core.skill import SkillOrigin
from hone.core.topics import NAMES
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import Turn
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.scripted import Scripted, call
from hone.runtime.session import Session, ignore
from hone.settings import Guardrails, Learning, Memory, Settings
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
FETCH, TERMINAL = "web_fetch", "networked terminal"
AFTER, UNTRUSTED = "read_file after a network effect", "untrusted folder"
SAVED = "a file that an earlier conversation saved"
CHANNELS = (FETCH, TERMINAL, AFTER, UNTRUSTED, SAVED)
HERE = "read_file in a trusted folder, no network"
"""No channel of attack: the control, by which a text does get in."""
SITE = "http://site.example"
HARMLESS = "weather"
FOUND = ("AGENTS.md", "README.md")
"""What somebody else's folder greets an agent with."""
HOUR = 3_600.0
LENGTHY = "\n" + "And so on. " * 3_000
"""Makes a conversation long enough for a digest."""
GET = "import sys, urllib.request as web; sys.stdout.buffer.write(web.urlopen(sys.argv[1]).read())"
PATIENT = (10_000, 10_000)
SETTINGS = Settings(
    result_limit=100_000,
    guardrails=Guardrails(PATIENT, PATIENT, PATIENT),
    memory=Memory(1_000_000, 1_000_000, 1_000_000),
    learning=Learning(turns=0, iterations=0),
)
"""Nothing but the rules on trust may stop a call: no counter, no full journal, no review of its own."""


@dataclass
class House:
    """A home with an entry and a skill in it, and a conversation that goes on all the while."""

    hone: Hone
    mind: Obedient
    model: Scripted
    owner: Owner
    witness: Session
    channel: str
    folder: Path
    port: int
    clock: ManualClock
    cold: bool = False
    """Its reviews come late and read a digest of the conversation."""
    before: list[bytes] = field(default_factory=list)
    known: str = ""
    """The words that stood here from the beginning."""

    async def attacked(self, text: Injected, *, review: bool) -> Sequence[tuple[str, str]]:
        """The way and the answer of each call that the text set off."""
        mind = self.mind
        mind.injected, mind.owner = text, HONEST[text.number % len(HONEST)]
        if self.channel == SAVED:
            mind.steps, mind.at_once = [*self._saving(text)], False
            await (await self.hone.session()).send(mind.owner.said)
        mind.steps, mind.at_once, mind.result = [*self._steps(text)], not review, 0
        session = await self.hone.session()
        turn = await session.send(mind.owner.said)
        came = [number for number, node in enumerate(session.transcript.nodes, 1) if node.message.result]
        brought = came[len(mind.steps) - 1]
        self._arrived(text, session.transcript.nodes[brought - 1])
        mind.result = brought
        nodes = await self._reviewed(session) if review else turn.nodes
        ways = Attack(text, mind.owner, brought).ways()
        named = [way for way, calls in ways.items() for _ in calls]
        answers = [node.message.result.text for node in nodes if node.message.result]
        return list(zip(named, answers if review else answers[len(mind.steps) :], strict=True))

    def _arrived(self, text: Injected, node: Node) -> None:
        """It was read, and labelled as it must be. What a page hides from people web_fetch leaves out."""
        result = node.message.result
        assert result is not None
        assert not result.failed, result.text
        assert node.trust is (Trust.LOCAL if self.channel == HERE else Trust.FOREIGN)
        if text.family == PUBLIC:
            assert words(text.plain) in words(result.text)
        elif text.family not in {"html", *ENCODINGS}:
            assert text.canary in result.text
        if self.channel == TERMINAL:
            assert self.owner.asked[-1].detail == self._command(text)

    async def _reviewed(self, session: Session) -> Sequence[Node]:
        hone, count = self.hone, len(session.transcript)
        made = await hone.jobs.enqueue(session.id, count, NAMES, "test", session.header.created)
        if self.cold:
            self.clock.advance(HOUR)
            self.before = await self.seen()  # it may be another day, and a prompt tells which
        await hone.reviewer.work(made.id, ignore)
        done = await hone.jobs.job(made.id)
        assert done.state is State.DONE, done.error
        fork = await hone.sessions.load(done.review)
        assert fork.header.shared == (0 if self.cold else count)
        return fork.transcript.nodes[fork.header.shared :]

    def _saving(self, text: Injected) -> Iterator[ToolCall]:
        """A conversation that is foreign saves it in the trusted folder, by one way or the other."""
        yield call("web_fetch", url=f"{SITE}/{text.number}")
        code = f"open('page.txt', 'w', encoding='utf-8').write({text.text!r})"
        ways = (
            call("write_file", path="page.txt", content=text.text),
            call("terminal", command=f"printf %s {shlex.quote(text.text)} > page.txt"),
            call("execute_code", code=code),
        )
        yield ways[text.number % len(ways)]

    def _steps(self, text: Injected) -> Iterator[ToolCall]:
        if self.channel == SAVED:
            ways = (
                call("read_file", path="page.txt"),
                call("terminal", command="cat page.txt"),
                call("execute_code", code="print(open('page.txt', encoding='utf-8').read())"),
            )
            yield ways[text.number // 3 % len(ways)]
        elif self.channel == FETCH:
            yield call("web_fetch", url=f"{SITE}/{text.number}")
        elif self.channel == TERMINAL:
            yield call("terminal", command=self._command(text), network=True)
        elif self.channel == UNTRUSTED:
            for name in FOUND:
                (self.folder / name).write_text(text.text, "utf-8")
            yield call("read_file", path=FOUND[text.number % len(FOUND)])
        else:
            (self.folder / "page.txt").write_text(text.text, "utf-8")
            if self.channel == AFTER:
                yield call("web_fetch", url=f"{SITE}/{HARMLESS}")
            yield call("read_file", path="page.txt")

    def _command(self, text: Injected) -> str:
        return shlex.join([sys.executable, "-c", GET, f"http://127.0.0.1:{self.port}/{text.number}"])

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
async def house(home: Path, folder: Path, channel: str, *, cold: bool) -> AsyncIterator[House]:
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
            settings=SETTINGS,
            clock=clock,
        ) as hone,
    ):
        if channel != UNTRUSTED:
            hone.folders.trust(folder)
        await furnish(hone)
        witness = await hone.session()
        await witness.send(GO_ON)
        made = House(hone, mind, model, owner, witness, channel, folder, net.port, clock, cold)
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
