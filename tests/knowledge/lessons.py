"""A home in which an owner talks and an agent learns, to test what becomes active and what stays away."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hone.core.clock import ManualClock
from hone.core.errors import Refused
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, Actor, Author, ChangeState, Entry, Target
from hone.core.messages import ToolCall, answer, assistant, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Source, Transcript
from hone.core.trust import Trust
from hone.knowledge.evidence import locate
from hone.knowledge.journal import Edit, entries
from hone.knowledge.keeper import Keeper
from hone.knowledge.verdicts import DEFAULTS
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.sqlite import SqliteSessions

HERE, NONE = SessionId("5e55"), SessionId("")
PREFIX = Prefix("scripted/one", "You help.")
CALL = ToolCall("1", "web_fetch", "{}")


@dataclass
class Lessons:
    """One conversation. Each thing that is said takes a minute."""

    keeper: Keeper
    clock: ManualClock
    ledger: SqliteLedger
    sessions: SqliteSessions
    session: SessionId = HERE
    talk: Transcript = field(default_factory=lambda: Transcript(PREFIX.digest))

    def say(self, text: str) -> str:
        self.clock.advance(60)
        self.talk = self.talk.then(user(text), Trust.OWNER, self.clock.now())
        return text

    def read(self, text: str) -> None:
        """Let the agent read something foreign."""
        self.clock.advance(60)
        asks = self.talk.then(assistant("I look it up.", CALL), self.talk.trust, self.clock.now())
        self.talk = asks.then(answer(CALL, text), Trust.FOREIGN, self.clock.now())

    def begin(self, session: str) -> None:
        self.session, self.talk = SessionId(session), Transcript(PREFIX.digest)

    async def keep(self) -> None:
        """Store the conversation."""
        await self.sessions.start(Header(self.session, self.clock.now()), PREFIX, self.talk.nodes)

    def author(self, *claims: str, actor: Actor = Actor.REVIEW) -> Author:
        located = locate(claims, Source(self.session, self.talk))
        self.clock.advance(60)
        floor = self.talk.trust
        found = (located.evidence, floor, located.quotes)
        return Author(actor, self.session, NONE, "memory", "1", "", *found, said=located.said)

    async def note(
        self, edit: Edit, *claims: str, target: Target = USER, actor: Actor = Actor.REVIEW
    ) -> Entry | str:
        """Return the change, or the refusal."""
        try:
            return (await self.keeper.note([(target, edit)], self.author(*claims, actor=actor)))[0]
        except Refused as error:
            return str(error)

    async def active(self) -> list[str]:
        return [entry for target in (MEMORY, USER) for entry in entries(await self.keeper.text(target))]


@asynccontextmanager
async def lessons(home: Path) -> AsyncIterator[Lessons]:
    home.mkdir(parents=True, exist_ok=True)
    database = Database.open(home / "hone.db")
    clock = ManualClock()
    ledger, sessions = SqliteLedger(database), SqliteSessions(database)
    keeper = Keeper(ledger, None, clock, lambda _: None, DEFAULTS, sessions=sessions)
    yield Lessons(keeper, clock, ledger, sessions)
    await database.close()


def is_active(made: Entry | str) -> bool:
    return isinstance(made, Entry) and made.change.standing is ChangeState.ACTIVE


def waits(made: Entry | str) -> bool:
    return isinstance(made, Entry) and made.change.standing is ChangeState.PENDING
