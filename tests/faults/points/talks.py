"""Scenarios of conversations: a turn with tools, one that goes on after a kill, one over the server."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import httpx2

from hone import Hone
from hone.core.errors import HoneError
from hone.core.messages import Message, Role, assistant, digest, user
from hone.core.model import Reply
from hone.core.trust import Trust
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, Scripted, call, rounds
from hone.runtime.session import Session
from hone.settings import Settings
from hone.web.keys import stored
from hone.web.serving import Address, serve
from tests.faults.house import unsound as invalid
from tests.faults.points.scenario import NOTICE, REFUSED, Say, Told, debris, unsound
from tests.given import NOON
from tests.web.rig import PATIENCE

SCRIPT = rounds(
    assistant("I write.", call("write_file", path="notes.md", content="hello\n" * 50)),
    assistant("I change it.", call("patch", path="notes.md", find="hello", replace="bye", all=True)),
    assistant("I read.", call("read_file", path="notes.md"), call("todo")),
    "Done.",
)
WISHES = ("first wish", "second wish", "third wish")
OLD = "old wish"
ASKED, ANSWERED, NAMED = "asked: ", "answered: ", "session: "
PAGES = ("hello\n" * 50, "bye\n" * 50)


def telling(say: Say) -> Script:
    """Whoever is asked says so: by then the user's words have been stored."""

    def script(messages: Sequence[Message]) -> Message | Reply:
        said = [message.text for message in messages if message.role is Role.USER]
        if messages[-1].role is Role.USER:
            say(f"{ASKED}{said[-1]}")
        return SCRIPT(messages)

    return script


@asynccontextmanager
async def opened(root: Path, script: Script) -> AsyncIterator[Hone]:
    settings = Settings(tries=1)
    folder = root / "folder"
    async with Hone(
        home=root / "home", folder=folder, settings=settings, model=Scripted(script), learning="queue"
    ) as hone:
        yield hone


async def wish(session: Session, hone: Hone, say: Say) -> None:
    """Every wish is answered, or it is said in a sentence why not; then the next one has its turn."""
    say(f"{NAMED}{session.id}")
    for words in WISHES:
        for notice in hone.notices:
            say(f"{NOTICE}{notice}")
        hone.notices.clear()
        try:
            turn = await session.send(words)
            stopped = turn.stop is not Stop.ANSWERED
            say(f"{REFUSED}{turn.error}" if stopped else f"{ANSWERED}{words}")
        except HoneError as error:
            say(f"unheard: {words}")
            say(f"{REFUSED}{error}")


@dataclass(frozen=True)
class Talk:
    """On a home that is not there yet."""

    name: str = "turn"
    files: ClassVar[frozenset[str]] = frozenset({"home", "folder", "folder/notes.md"})

    async def prepare(self, root: Path) -> None:
        (root / "folder").mkdir()

    async def rehearse(self, root: Path) -> None:
        return None

    async def act(self, root: Path, say: Say) -> None:
        async with opened(root, telling(say)) as hone:
            await wish(await hone.session(), hone, say)

    async def inspect(self, root: Path, told: Told, expected: None) -> list[str]:
        async with opened(root, SCRIPT) as hone:
            known = [summary.header.id for summary in await hone.sessions.list()]
            for each in known:
                await hone.sessions.load(each)
            named = next(iter(told.all(NAMED)), "")
            session = await (hone.resume(named) if named in known else hone.session())
            wrong = missing(session, told) if told.is_kept else []
            turn = await session.send("go on")
            if (turn.stop, turn.text) != (Stop.ANSWERED, "Done."):
                wrong.append(f"half: no answer: {turn.error}")
            wrong += [f"unsound: {each}" for each in await invalid("openai", hone, session)]
        page = root / "folder" / "notes.md"
        if page.read_text() not in PAGES:
            wrong.append("half: a file that a tool wrote")
        return wrong + debris(root, self.files) + await unsound(root / "home")


def missing(session: Session, told: Told) -> list[str]:
    """Acknowledged is what the model was asked, and what was answered; refused is not there."""
    texts = [message.text for message in session.transcript if message.role is Role.USER]
    wrong = []
    unheard, asked, answered = told.all("unheard: "), set(told.all(ASKED)), told.all(ANSWERED)
    for words in WISHES:
        count = sum(words in text for text in texts)
        if not count and words in asked:
            wrong.append(f"lost: {words}")
        if count > (words not in unheard or told.may_be_there):
            wrong.append(f"doubled: {words} is there {count} times")
    dones = sum(message.text == "Done." for message in session.transcript)
    if dones < len(answered):
        wrong.append(f"lost: {len(answered)} answers were given, {dones} are there")
    if dones > len(answered) + told.may_be_there + (OLD in texts):
        wrong.append(f"doubled: {len(answered)} answers were given, {dones} are there")
    return wrong


@dataclass(frozen=True)
class Resumed(Talk):
    """On a home where a process was killed in the middle of a turn: its calls are open."""

    name: str = "resume"

    async def prepare(self, root: Path) -> None:
        (root / "folder").mkdir()
        async with opened(root, SCRIPT) as hone:
            session = await hone.session()
            await session.send(OLD)
            last = assistant(call("read_file", "open_1", path="notes.md"), call("todo", "open_2"))
            longer = session.transcript.then(user("broken off"), Trust.OWNER, NOON)
            longer = longer.then(last, Trust.AGENT, NOON)
            await hone.sessions.append(session.id, longer.nodes[-2:])

    async def act(self, root: Path, say: Say) -> None:
        async with opened(root, telling(say)) as hone:
            [known] = await hone.sessions.list()
            await wish(await hone.resume(known.header.id), hone, say)


@dataclass(frozen=True)
class Served(Talk):
    """Asked over the server's endpoint, and all of that over real HTTP."""

    name: str = "server"
    files: ClassVar[frozenset[str]] = frozenset(
        {
            *("home", "folder", "folder/notes.md", "home/serve.key", "home/serve.lock"),
            *("home/serve-tickets.json", "home/serve-address.json"),
        }
    )

    async def act(self, root: Path, say: Say) -> None:
        say(f"{NAMED}{digest(b'x-hone-session talk')[:16]}")
        os.chdir(root / "folder")
        async with FakeProvider(telling(say)) as stage:
            os.environ.update(
                OPENAI_API_KEY="k", OPENAI_BASE_URL=f"{stage.url}/v1", HONE_MODEL="openai/scripted"
            )
            ready = asyncio.get_running_loop().create_future()
            serving = asyncio.create_task(
                serve(root / "home", Address(port=0), lambda url, _: ready.set_result(url), grace=0.0)
            )
            await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                asking = asyncio.create_task(ask(ready.result().partition("/login")[0], root, say))
                await asyncio.wait([serving, asking], return_when=asyncio.FIRST_COMPLETED)
                os.kill(os.getpid(), signal.SIGTERM)
                await asking
            await serving

    async def inspect(self, root: Path, told: Told, expected: None) -> list[str]:
        stored(root / "home")  # as the next server does
        return await super().inspect(root, told, expected)


async def ask(url: str, root: Path, say: Say) -> None:
    try:
        key = (root / "home" / "serve.key").read_text().strip()
    except OSError:
        return  # a client that cannot read the key asks nothing
    headers = {"x-hone-session": "talk", "authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:
        for words in WISHES:
            body = {"messages": [{"role": "user", "content": words}]}
            answer = await client.post("/v1/chat/completions", json=body)
            failed = "" if answer.is_success else answer.json()["error"]["message"]
            say(f"{REFUSED}{failed}" if failed else f"{ANSWERED}{words}")
