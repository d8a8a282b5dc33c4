"""Databases of every shape that a healthy home can have: a random story of writes through the stores."""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from random import Random

import apsw

from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.ids import SessionId
from hone.core.jobs import Look, TopicCount
from hone.core.ledger import (
    MEMORY,
    Actor,
    Author,
    Change,
    ChangeKind,
    ChangeState,
    Delta,
    Evidence,
    Target,
    skill,
)
from hone.core.messages import Message, ToolCall, answer, assistant, canonical, digest, user
from hone.core.model import Usage
from hone.core.ports import IMPORTED, Header, Spending
from hone.core.prefix import Prefix
from hone.core.recall import Query
from hone.core.skill import DOCUMENT, SkillEvent, SkillSummary
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.stores.curator_runs import SqliteCuratorRuns
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.outbox import SqliteOutbox
from hone.stores.recall import SqliteRecall
from hone.stores.skill_catalog import SqliteSkillCatalog
from hone.stores.sqlite import SqliteSessions
from tests.stores.worker import NOW

SIZES = (0, 20, 200, 4_000, 30_000, 120_000)
MOST = 400_000
"""Characters of pastes in one home, so that thousands can be made."""
SCRIPTS = (
    "речной выдры ",
    "แม่น้ำและนาก",
    "河にはカワウソがいる",
    "강에는 수달이 산다 ",
    "نهر وثعلب ",
    "é̂ 👩‍🚀 naïve ",
)
# What is older than the index waits to be added, as after an update or a repair.
AGED = (
    "INSERT INTO passage_words (passage_words) VALUES ('delete-all')",
    "UPDATE backlog SET (upto, done) = (SELECT coalesce(max(id), 0), coalesce(max(id), 0) FROM contents)",
)


def log(random: Random, size: int) -> str:
    line = "2026-03-{:02} {:02}:{:02}:{:02}.{:03} {} worker[{}]: request {:x} took {} ms"
    levels, lines, length = ("INFO", "WARN", "ERROR"), list[str](), 0
    while length < size:
        clock = (random.randint(1, 28), random.randrange(24), random.randrange(60), random.randrange(60))
        about = (random.choice(levels), random.randrange(9), random.getrandbits(48), random.randrange(999))
        lines.append(line.format(*clock, random.randrange(1000), *about))
        length += len(lines[-1])
    return "\n".join(lines)


def source(random: Random, size: int) -> str:
    lines, length = list[str](), 0
    while length < size:
        name, other = (f"{random.choice('abxyz')}_{random.randrange(3000)}" for _ in range(2))
        lines.append(f"    {name} = [each.{other}() for each in {other}s if each != '{name}']")
        length += len(lines[-1])
    return "\n".join(lines)


def base64(random: Random, size: int) -> str:
    text = b64encode(random.randbytes(size * 3 // 4)).decode()
    width = random.choice((76, size + 1))
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def foreign(random: Random, size: int) -> str:
    return (random.choice(SCRIPTS) * (size // 8 + 1))[: min(size, 9_000)]


def long_word(random: Random, size: int) -> str:
    """One that FTS5 cuts in the middle of a character."""
    return "x" * random.randrange(4) + random.choice("фéя") * min(size, 30_000)


PASTES = (log, source, base64, foreign, long_word)


class Household:
    """One home. Each deed leaves it healthy."""

    def __init__(self, database: Database, random: Random) -> None:
        self._database = database
        self._random = random
        self._sessions, self._ledger = SqliteSessions(database), SqliteLedger(database)
        self._catalog, self._recall = SqliteSkillCatalog(database), SqliteRecall(database)
        self._names: list[SessionId] = []
        self._held: dict[Target, str] = {}
        self._made = self._pasted = 0
        self._now = NOW

    async def live(self, deeds: int) -> None:
        for _ in range(deeds):
            self._now += timedelta(seconds=self._random.randint(-5, 90_000))  # clocks jump
            await self._deed()()

    def _deed(self) -> Callable[[], Awaitable[None]]:
        if not self._names:
            return self._random.choice((self._start, self._start, self._import, self._learn))
        talk = (self._append, self._branch, self._move, self._compact, self._rename, self._search, self._age)
        know = (self._learn, self._wait, self._unlearn, self._use, self._curate, self._refuse)
        often = (self._append,) * 6 + (self._delete,) * 4 + (self._start, self._import)
        return self._random.choice((*often, *talk, *know))

    def _text(self) -> str:
        size = min(self._random.choice(SIZES), MOST - self._pasted)
        self._pasted += size
        return (
            self._random.choice(PASTES)(self._random, size) if size > 0 else self._random.choice(("", "ok"))
        )

    def _said(self, talk: Transcript, count: int) -> Transcript:
        for _ in range(count):
            for message, trust in self._messages():
                talk = talk.then(message, trust, self._now)
        return talk

    def _messages(self) -> list[tuple[Message, Trust]]:
        if self._random.random() < 0.7:
            return [(user(self._text()), Trust.OWNER), (assistant(self._text()), Trust.AGENT)]
        call = ToolCall(
            f"c{self._random.getrandbits(40)}", "terminal", canonical({"command": self._text()[:5000]})
        )
        asked, told = user("go on"), answer(call, self._text())
        return [(asked, Trust.OWNER), (assistant("", call), Trust.AGENT), (told, Trust.FOREIGN)]

    def _prefix(self, model: str = "") -> Prefix:
        model = model or f"scripted/{self._random.randrange(3)}"
        return Prefix(model, f"You help, {self._random.randrange(4)}.")

    def _name(self) -> SessionId:
        self._made += 1
        self._names.append(SessionId(f"s{self._made}"))
        return self._names[-1]

    async def _start(self) -> None:
        prefix, id = self._prefix(), self._name()
        talk = self._said(Transcript(prefix.digest), self._random.randint(1, 3))
        look = self._random.choice((None, Look(self._now, turns=1)))
        await self._sessions.start(Header(id, self._now, folder="/tmp/räum"), prefix, talk.nodes, look)

    async def _import(self) -> None:
        prefix, id, at = (
            self._prefix(f"{IMPORTED}/other"),
            self._name(),
            datetime.fromtimestamp(0, NOW.tzinfo),
        )
        talk = Transcript(prefix.digest)
        for number in range(self._random.randint(1, 30)):
            said = user(f"old {number}") if number % 2 else assistant(f"answer {number} " * 9)
            talk = talk.then(said, Trust.FOREIGN, at + timedelta(days=number))
        await self._sessions.start(Header(id, at, "brought in"), prefix, talk.nodes)

    async def _append(self) -> None:
        id = self._random.choice(self._names)
        before = (await self._sessions.load(id)).transcript
        after = self._said(before, self._random.randint(1, 2))
        spent = Spending(self._now, "m", Origin.USER, Usage(1, 2, 3, 4, 0.5))
        is_due = self._random.random() < 0.3
        counts = [TopicCount(name, 3, int(is_due)) for name in sorted(NAMES)]
        await self._sessions.append(id, after.nodes[len(before) :], spent, counts)

    async def _branch(self) -> None:
        parent = await self._sessions.load(self._random.choice(self._names))
        shared = self._random.randint(1, len(parent.transcript))
        origin = self._random.choice((Origin.USER, Origin.REVIEW))
        header = Header(self._name(), self._now, "", origin, parent=parent.header.id, shared=shared)
        await self._sessions.start(header, parent.prefix, ())

    async def _move(self) -> None:
        id, prefix = self._random.choice(self._names), self._prefix()
        talk = (await self._sessions.load(id)).transcript
        await self._sessions.move(id, prefix, talk.rooted(prefix.digest))

    async def _compact(self) -> None:
        id = self._random.choice(self._names)
        loaded = await self._sessions.load(id)
        shorter = Transcript(loaded.prefix.digest).then(user("Notes of before."), Trust.AGENT, self._now)
        await self._sessions.shorten(id, loaded.transcript.head, self._said(shorter, 1))

    async def _rename(self) -> None:
        await self._sessions.rename(self._random.choice(self._names), self._text()[:200])

    async def _delete(self) -> None:
        """One of them, or all of them, and with each what Hone made of it for itself."""
        everything = self._random.random() < 0.2
        for id in list(self._names) if everything else [self._random.choice(self._names)]:
            if id in self._names:
                await self._sessions.delete(id)
                self._names = [each.header.id for each in await self._sessions.list(None, None)]

    async def _search(self) -> None:
        await self._recall.search(Query("request worker otters"))

    async def _age(self) -> None:
        def age(connection: apsw.Connection) -> None:
            for statement in AGED:
                connection.execute(statement)

        await self._database.write(age)

    async def _learn(self) -> None:
        target = self._random.choice((MEMORY, skill("rivers"), skill("logs")))
        body = f"# {self._text()[:3000]}\n{self._random.getrandbits(60)}".encode()
        await self._record(target, body)
        if target is not MEMORY:
            summary = SkillSummary(target, self._text()[:300], self._text()[:3000])
            await self._catalog.save_summaries({digest(body): summary})

    async def _unlearn(self) -> None:
        if self._held:
            await self._record(self._random.choice(list(self._held)), None)

    async def _wait(self) -> None:
        await self._record(MEMORY, f"waits {self._random.getrandbits(60)}".encode(), ChangeState.PENDING)

    async def _record(
        self, target: Target, body: bytes | None, state: ChangeState = ChangeState.ACTIVE
    ) -> None:
        before, after = self._held.get(target), None if body is None else digest(body)
        author = Author(
            Actor.AGENT, SessionId("s1"), evidence=(Evidence(SessionId("s1"), 1, Trust.OWNER, "x"),)
        )
        kind = ChangeKind.REMOVE if body is None else ChangeKind.REPLACE if before else ChangeKind.ADD
        path = "MEMORY.md" if target is MEMORY else DOCUMENT
        change = Change(target, kind, (Delta(path, before, after),), author, standing=state)
        await self._ledger.record([change], {} if body is None else {digest(body): body}, self._now)
        if state is ChangeState.ACTIVE:
            self._held.pop(target) if after is None else self._held.update({target: after})

    async def _use(self) -> None:
        name, event = self._random.choice(("rivers", "logs")), self._random.choice(list(SkillEvent))
        await self._catalog.count(name, event, Actor.AGENT, self._names[0], self._now.date())

    async def _curate(self) -> None:
        runs = SqliteCuratorRuns(self._database)
        before = await runs.runs()
        last = max((each.id for each in before), default=CuratorRunId(0))
        await runs.complete(CuratorRun(self._now, "weekly", SessionId("s1"), "library"), last, [], {})

    async def _refuse(self) -> None:
        outbox = SqliteOutbox(self._database)
        for letter in await outbox.letters(2):
            if self._random.random() < 0.5:
                await outbox.delivered(letter.change)
            else:
                await outbox.failed(letter.change, "the service said no", final=self._random.random() < 0.5)
