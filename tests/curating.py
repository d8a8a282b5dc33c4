"""A curator with all its parts, in memory or in a home, and a library for it to tend."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from hone.core.agent import Agent
from hone.core.clock import ManualClock
from hone.core.curation import CuratorRuns
from hone.core.ids import SessionId
from hone.core.ledger import SKILL, Actor, Author, Evidence, Ledger
from hone.core.messages import assistant, user
from hone.core.model import Usage
from hone.core.permit import USER
from hone.core.ports import Header, Sessions, Spending
from hone.core.skill import SkillCatalog, SkillEvent, SkillOrigin
from hone.core.tool import NoGuard
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.features.curator.curator import Curator, CuratorDeps
from hone.files.documents import FileDocuments
from hone.knowledge.folding import Files
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.library import Library
from hone.knowledge.skills import folder
from hone.knowledge.skills.document import parse, write_document
from hone.knowledge.tools import knowledge_tools
from hone.knowledge.verdicts import DEFAULTS, KeeperRules, LearningMode
from hone.models.scripted import Script, Scripted
from hone.prompt.compose import compose
from hone.runtime.session import SessionDeps
from hone.stores.claims import FileClaims
from tests.reference.ledger import InMemoryCuratorRuns, InMemoryLedger, InMemorySkillCatalog
from tests.reference.sessions import InMemorySessions

AUTO = KeeperRules(DEFAULTS.limits, {}, merges=LearningMode.AUTO)
ASK = KeeperRules(DEFAULTS.limits, {})
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LEARNED = Author(
    Actor.REVIEW, SessionId("5e55"), evidence=(Evidence(SessionId("5e55"), 1, Trust.OWNER, "0" * 64),)
)


class EagerCatalog(InMemorySkillCatalog):
    """Summarizes what is new whenever it is asked, as a library does that looks at folders."""

    def __init__(self, ledger: InMemoryLedger) -> None:
        super().__init__(ledger)
        self._reading = ledger

    async def names(self) -> Mapping[str, bool]:
        contents = await self._reading.contents(await self.unsummarized())
        await self.save_summaries({name: parse(data.decode()).summary for name, data in contents.items()})
        return await super().names()


@dataclass(frozen=True)
class Care:
    """One home with its curator."""

    curator: Curator
    library: Library
    catalog: SkillCatalog
    sessions: Sessions
    clock: ManualClock
    model: Scripted

    @property
    def keeper(self) -> Keeper:
        return self.library.keeper

    async def learn(
        self, name: str, body: str, files: Mapping[str, bytes] | None = None, project: str = ""
    ) -> None:
        """A skill that was learned."""
        await self.keeper.edit_skill(
            name, folder.Create(document(name, body), SkillOrigin.AGENT, project), LEARNED
        )
        for path, data in (files or {}).items():
            await self.keeper.edit_skill(name, folder.WriteFile(path, data), OWNER)

    async def held(self) -> Mapping[str, Files]:
        """What every skill holds, by name."""
        ledger = self.keeper.ledger
        found = {}
        for target, holding in (await ledger.held_below(SKILL)).items():
            contents = await ledger.contents(set(holding.values()))
            found[target.removeprefix(SKILL)] = {path: contents[each] for path, each in holding.items()}
        return found

    async def live(self, days: Iterable[date], uses: Mapping[str, Iterable[int]] | None = None) -> None:
        """Hone is used on these days, one after the other, and skills are on those with these numbers."""
        header = Header(SessionId("life"), NOON)
        prefix = compose("test/model", (), (), {})
        chain = Transcript(prefix.digest).then(user("hello"), Trust.OWNER, NOON)
        await self.sessions.start(header, prefix, chain.nodes)
        for number, day in enumerate(days):
            at = datetime.combine(day, time(12), UTC)
            longer = chain.then(assistant(f"day {number}"), Trust.AGENT, at)
            spent = Spending(at, "test/model", Origin.USER, Usage(1, 0))
            await self.sessions.append(header.id, longer.nodes[-1:], spent)
            chain = longer
            for name, used in (uses or {}).items():
                if number in used:
                    session = SessionId(f"use-{number}")
                    await self.catalog.count(name, SkillEvent.USE, Actor.AGENT, session, day)


def document(name: str, body: str) -> str:
    return write_document(name, f"About {name.replace('-', ' ')}.", body)


def answering(plan: object) -> Script:
    """Says a plan, whatever it is asked."""
    said = plan if isinstance(plan, str) else json.dumps(plan)
    return lambda _: assistant(said)


def merge(into: str, sources: Sequence[str], body: str, **more: Any) -> dict[str, Any]:
    fields = {
        "into": into,
        "sources": list(sources),
        "description": "What they did.",
        "body": body,
        "reason": "one task",
    }
    return {"merge": [fields | more], "archive": []}


@asynccontextmanager
async def care(home: Path, script: Script, rules: KeeperRules = AUTO) -> AsyncIterator[Care]:
    """In memory, but for the lock and the reports."""
    ledger = InMemoryLedger()
    yield caring(
        home, script, rules, ledger, EagerCatalog(ledger), InMemorySessions(), InMemoryCuratorRuns(ledger)
    )


def caring(
    home: Path,
    script: Script,
    rules: KeeperRules,
    ledger: Ledger,
    catalog: SkillCatalog,
    sessions: Sessions,
    runs: CuratorRuns,
) -> Care:
    clock = ManualClock(NOON)
    keeper = Keeper(ledger, None, clock, lambda _: None, rules)
    library = Library(keeper, catalog, clock)
    model = Scripted(script)
    tools = knowledge_tools(library, "/work")

    async def agent() -> Agent:
        prefix = compose("test/model", ("You are a test.",), tools, {})
        return Agent(prefix, model, {tool.spec.name: tool for tool in tools}, USER)

    services = SessionDeps(sessions, clock, guard=NoGuard)
    room = CuratorDeps(
        home, FileClaims(home), sessions, runs, library, clock, agent, services, FileDocuments(home)
    )
    return Care(Curator(room), library, catalog, sessions, clock, model)
