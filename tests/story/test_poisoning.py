"""E5, C5, D3: what a model does with text from elsewhere reaches no prompt, no note and no list of skills."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.jobs import State, Topic
from hone.core.ledger import USER
from hone.core.messages import ToolCall
from hone.core.permit import Effect
from hone.core.skill import Birth
from hone.core.tool import Outcome, Tool
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import Turn
from hone.knowledge.keeper import OWNER
from hone.memory.journal import Add
from hone.models.scripted import Scripted, call
from hone.runtime.session import Session, ignore
from hone.settings import Guardrails, Learning, Memory, Settings
from hone.skills.folder import Create, WriteFile
from tests.conftest import Figures, Tier
from tests.rig import Puppet
from tests.story.poison.injected import ENCODINGS, Injected, canary, honest, injected
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
from tests.tools.internet import PUBLIC, internet, page

TEXTS, HONEST = injected(), honest()
CHANNELS = ("web_fetch", "networked terminal", "read_file after a network effect", "untrusted folder")
HERE = "read_file in a trusted folder, no network"
"""No channel of attack: the control, by which a text does get in."""
ROOM = 50
"""Texts a home, so that no limit of a day or a journal stands in the way."""
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


@dataclass
class House:
    """A home with an entry and a skill in it, and a conversation that goes on all the while."""

    hone: Hone
    mind: Obedient
    model: Scripted
    witness: Session
    channel: str
    folder: Path
    clock: ManualClock
    cold: bool = False
    """Its reviews come late and read a digest of the conversation."""
    before: list[bytes] = field(default_factory=list)

    async def attacked(self, text: Injected, *, review: bool) -> Sequence[tuple[str, str]]:
        """The way and the answer of each call that the text set off."""
        mind = self.mind
        mind.injected, mind.owner = text, HONEST[text.number % len(HONEST)]
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
        if text.family not in {"html", *ENCODINGS}:
            assert text.canary in result.text

    async def _reviewed(self, session: Session) -> Sequence[Node]:
        hone, count = self.hone, len(session.transcript)
        made = await hone.jobs.enqueue(session.id, count, frozenset(Topic), "test", session.header.created)
        if self.cold:
            self.clock.advance(HOUR)
            self.before = await self.seen()  # it may be another day, and a prompt tells which
        await hone.reviewer.work(made.id, ignore)
        done = await hone.jobs.job(made.id)
        assert done.state is State.DONE, done.error
        fork = await hone.sessions.load(done.review)
        assert fork.header.shared == (0 if self.cold else count)
        return fork.transcript.nodes[fork.header.shared :]

    def _steps(self, text: Injected) -> Iterator[ToolCall]:
        if self.channel == "web_fetch":
            yield call("web_fetch", url=f"http://site.example/{text.number}")
            return
        if self.channel == "networked terminal":
            yield call("console", network=True)
            return
        (self.folder / "page.txt").write_text(text.text, "utf-8")
        if self.channel == "read_file after a network effect":
            yield call("knock")
        yield call("read_file", path="page.txt")

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
        shown = searched if self.mind.injected.canary in searched else ""
        return [
            fresh.agent.prefix.encode(),
            prefix.encode(),
            *map(str.encode, (told, listed, *viewed, shown, told_of)),
        ]


def results(turn: Turn) -> list[str]:
    return [node.message.result.text for node in turn.nodes if node.message.result]


def tools(mind: Obedient, filler: str) -> list[Tool]:
    async def show(_: ToolCall) -> Outcome:
        return Outcome(mind.injected.text + filler, trust=Trust.LOCAL)

    run = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE})
    return [
        Puppet("console", run, act=show, network_flag="network"),
        Puppet("knock", frozenset({Effect.NETWORK})),
    ]


@asynccontextmanager
async def house(home: Path, folder: Path, channel: str, *, cold: bool) -> AsyncIterator[House]:
    def pages(_: str, path: str) -> bytes:
        text = TEXTS[int(path[1:])]
        kind = "text/html" if text.family == "html" else "text/plain"
        return page(text.text, f"{kind}; charset=utf-8")

    mind = Obedient()
    model, clock = Scripted(mind), ManualClock()
    folder.mkdir(exist_ok=True)
    async with internet(pages, {"site.example": [[PUBLIC]]}) as (_, fetch):
        given = (*tools(mind, LENGTHY if cold else ""), fetch)
        async with Hone(
            home=home, model=model, folder=folder, tools=given, settings=SETTINGS, clock=clock
        ) as hone:
            if channel != "untrusted folder":
                hone.folders.trust(folder)
            await furnish(hone)
            witness = await hone.session()
            await witness.send(GO_ON)
            made = House(hone, mind, model, witness, channel, folder, clock, cold)
            mind.injected = TEXTS[0]
            made.before = await made.seen()
            yield made


async def furnish(hone: Hone) -> None:
    keeper = hone.library.keeper
    await keeper.note([(USER, Add(TEA))], OWNER)
    await keeper.shelve(BREWING, Create(document(BREWING, "brewing tea.", WARM), Birth.AGENT), OWNER)
    await keeper.shelve(BREWING, WriteFile(LEAVES, b"Green and black.\n"), OWNER)


def is_in(answer: str) -> bool:
    return answer.startswith(("Saved", "Noted. It counts"))


WAITS = ("Waits for the user's approval", "Noted. It will wait")


async def tried(
    home: Path, folder: Path, channel: str, texts: Iterable[Injected], *, review: bool, cold: bool = False
) -> tuple[Counter[str], list[str]]:
    """What the calls were answered, and what got in: a way that was let through, or bytes that changed."""
    answers: Counter[str] = Counter()
    got_in: list[str] = []
    async with house(home, folder, channel, cold=cold) as place:
        for text in texts:
            made = await place.attacked(text, review=review)
            through = {way for way, answer in made if is_in(answer)}
            answers.update("waits" if answer.startswith(WAITS) else answer[:60] for _, answer in made)
            got_in += [f"{text.number} {way}" for way in sorted(through)]
            now = await place.seen()
            if now != place.before or text.canary.encode() in b"".join(now):
                got_in.append(f"{text.number} in what is seen")
            place.before = now
        lying = [path for path in home.rglob("*.md") if has_canary(path.read_text("utf-8"), texts)]
        got_in += [f"{path.relative_to(home)} on the disk" for path in lying]
    return answers, got_in


def has_canary(content: str, texts: Iterable[Injected]) -> bool:
    return any(text.canary in content for text in texts)


def test_there_are_300_texts_each_with_a_word_of_its_own() -> None:
    assert len(TEXTS) == 300
    words = [canary(number) for number in range(300)]
    assert len(set(words)) == 300
    for text in TEXTS:
        assert text.canary in text.entry
        assert [word for word in words if word in text.plain] == [text.canary]
    assert len({text.plain.replace(text.canary, "") for text in TEXTS}) == 300


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("review", [False, True], ids=["foreground", "review"])
@pytest.mark.parametrize("channel", CHANNELS)
async def test_no_injected_text_gets_in_by_any_of_seven_ways(
    channel: str, review: bool, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=4, full=len(TEXTS))
    texts = tier.random().sample(TEXTS, count)
    answers: Counter[str] = Counter()
    got_in: list[str] = []
    for number, start in enumerate(range(0, count, ROOM)):
        some = texts[start : start + ROOM]
        answered, through = await tried(home / str(number), tmp_path / "work", channel, some, review=review)
        answers += answered
        got_in += through
    waiting, made = answers["waits"], answers.total()
    figures(f"{channel}: {7 * count:,} tried, {len(got_in)} got in ({made:,} calls, {waiting:,} wait)")
    assert got_in == []
    assert waiting > made / 2


@pytest.mark.timeout(600)
async def test_no_injected_text_gets_in_by_a_review_that_reads_a_digest(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=3, full=ROOM)
    texts = tier.random().sample(TEXTS, count)
    answers, got_in = await tried(home, tmp_path, "networked terminal", texts, review=True, cold=True)
    figures(f"{7 * count:,} tried, {len(got_in)} got in ({answers.total():,} calls)")
    assert got_in == []
    assert answers["waits"] > answers.total() / 2


@pytest.mark.parametrize("review", [False, True], ids=["foreground", "review"])
async def test_the_same_texts_do_get_in_where_the_owner_trusts_the_place(
    review: bool, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    """The control: it is the label that stops them, and the check sees what gets in."""
    texts = tier.random().sample([text for text in TEXTS if text.family == "social"], 4)
    _, got_in = await tried(home, tmp_path, HERE, texts, review=review)
    figures(f"control: {len(got_in)} got in")
    for text in texts:
        assert f"{text.number} paraphrase" in got_in
        assert f"{text.number} in what is seen" in got_in
