"""Hone as a learner in the lab: the real loop, store, reviews, ledger and prompt, in a temporary home."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.app import Hone
from hone.core.clock import Clock, ManualClock
from hone.core.errors import HoneError, Refused
from hone.core.messages import ToolCall
from hone.core.permissions import Answer, Question
from hone.core.turn import Origin, Stop
from hone.features.lab.owner import CallCost, Talk
from hone.features.lab.provider import MODEL
from hone.features.lab.world import SITE, World
from hone.runtime.model_factory import ModelFactory
from hone.runtime.session import Session
from hone.runtime.toolbox_factory import Enclosure
from hone.sandbox.choice import Sandbox
from hone.settings import Settings
from hone.settings.sections import Learning, ProviderSettings
from hone.tools.web.fetch import web_tools

APART = 6 * 3600.0
"""Seconds between two visits."""
LEARNING_OFF = Learning(agent="off", review="off", curator="off")


def scripted_settings(url: str) -> Settings:
    """Return settings for a learner at this address, which stands for a remote provider."""
    return Settings(model=f"lab/{MODEL}", providers={"lab": ProviderSettings(url, "openai", local=False)})


def without_learning(settings: Settings) -> Settings:
    """Return settings that save nothing, neither in a review nor during a conversation."""
    return msgspec.structs.replace(settings, learning=LEARNING_OFF)


class HoneTalk:
    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def system(self) -> str:
        return self.session.agent.prefix.system

    async def send(self, words: str) -> Sequence[ToolCall]:
        turn = await self.session.send(words)
        if turn.stop is Stop.FAILED:
            raise HoneError(f"The lab broke off: {turn.error}")
        return [call for node in turn.nodes for call in node.message.calls]


class HonePupil:
    """Learns by its own triggers: each visit ends as when a person leaves a chat."""

    def __init__(self, hone: Hone, clock: Clock, model: str) -> None:
        self.hone = hone
        self._clock = clock
        self._model = model

    async def open(self) -> HoneTalk:
        return HoneTalk(await self.hone.session(self._model))

    async def leave(self, talk: Talk) -> None:
        assert isinstance(talk, HoneTalk)
        await self.hone.release(talk.session)
        await self.hone.lookback.leave(talk.session.id)
        await self.hone.background.drain()
        self.hone.lookback.forget(talk.session.id)
        if isinstance(self._clock, ManualClock):
            self._clock.advance(APART)

    async def spent(self) -> Sequence[CallCost]:
        found = await self.hone.sessions.spending()
        return [CallCost(each.origin is not Origin.USER, each.usage) for each in found]


@asynccontextmanager
async def open_pupil(
    root: Path, world: World, settings: Settings, clock: Clock, models: ModelFactory | None = None
) -> AsyncIterator[HonePupil]:
    """Open a Hone in a new home. Its owner trusts the folder and lets it read the world's pages, and do
    nothing else that needs a question. Its tools cannot leave the folder. `models` are another Hone's."""

    async def allow(question: Question) -> Answer:
        return Answer.ONCE if question.detail.startswith(f"{SITE}/") else Answer.NO

    folder = root / "work"
    folder.mkdir(exist_ok=True)
    pages = {visit.page.url: visit.page.text for visit in world.every if visit.page}
    async with Hone(
        home=root / "home",
        model=models or "",
        folder=Enclosure(folder, Sandbox(hidden=(root / "home",), clock=clock)),
        tools=web_tools(Pages(pages), clock=clock),
        ask=allow,
        settings=settings,
        clock=clock,
        learning="queue",
        platform="lab",
    ) as hone:
        hone.folders.trust(folder)
        yield HonePupil(hone, clock, settings.model)


class _Head(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]


class _Exchange(Struct, frozen=True):
    response: _Head
    body: bytes

    async def read(self, limit: int | None = None) -> bytes:
        return self.body[:limit]


class Pages:
    """The web of a world. It opens no socket."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages

    @asynccontextmanager
    async def get(self, url: str, _: Mapping[str, str]) -> AsyncIterator[_Exchange]:
        if url not in self._pages:
            raise Refused(f"There is no page at {url}.")
        body = f"<html><body><p>{self._pages[url]}</p></body></html>".encode()
        yield _Exchange(_Head(200, {"content-type": "text/html; charset=utf-8"}), body)
