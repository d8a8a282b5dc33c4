"""F1: a process killed when its request has reached the provider loses nothing of what it had sent."""

import signal
from asyncio.subprocess import Process
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hone.core.messages import assistant
from hone.core.turn import Stop
from hone.models.cacherules import MARKER
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import call, rounds
from tests.conftest import Figures, Tier
from tests.faults.beside import BESIDE, DATABASE, integrity, rest, start
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS, unsound

SCRIPT = rounds(
    assistant("I write.", call("write_file", path="notes.md", content="hello\n" * 50)),
    assistant("I change it.", call("patch", path="notes.md", find="hello", replace="bye", all=True)),
    assistant("I read.", call("read_file", path="notes.md"), call("todo")),
    "Done.",
)
WORDS = ("first wish", "second wish")
SHARED = 8
"""So many kills meet the same home."""


@dataclass
class Ledger:
    """What was tried, and what was lost."""

    kills: int = 0
    before: int = 0
    acknowledged: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lost, debris = (sum(f": {word}" in each for each in self.wrong) for word in ("lost", "debris"))
        return (
            f"kill -9: {self.kills} tried ({self.before} before the first model call), {self.acknowledged} "
            f"acknowledged messages, {lost} lost, {len(self.wrong) - lost - debris} invalid histories, "
            f"{debris} with debris"
        )


@dataclass
class Scene:
    format: Format
    home: Path
    folder: Path

    def __post_init__(self) -> None:
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()


def scenes(path: Path, kills: int) -> Iterator[Scene]:
    """A fresh home every so often; the kills between meet what those before have left."""
    for number in range(kills):
        if number % SHARED == 0:
            format = FORMATS[number // SHARED % 2]
            context = Scene(format, path / f"home{number}", path / f"folder{number}")
        yield context


async def aftermath(context: Scene, stage: FakeProvider, said: list[str], ledger: Ledger) -> None:
    """What the next process finds."""
    bodies = list(stage.bodies)
    ledger.kills += 1
    ledger.before += not bodies
    wrong = await go_on(context, stage, said, ledger)
    found = {each.name for folder in (context.home, context.folder) for each in folder.iterdir()}
    left = sorted(found - DATABASE - BESIDE - {"notes.md"})
    wrong += [f"debris: {left}"] if left else []
    sane = integrity(context.home)
    wrong += [] if sane == "ok" else [f"the database is damaged: {sane}"]
    ledger.wrong += [
        f"kill {ledger.kills}, {context.format}, {len(bodies)} requests: {each}" for each in wrong
    ]


async def go_on(context: Scene, stage: FakeProvider, said: list[str], ledger: Ledger) -> list[str]:
    bodies = list(stage.bodies)
    acknowledged = [words for words in WORDS if any(words.encode() in body for body in bodies)]
    ledger.acknowledged += len(acknowledged)
    async with furnish(context.home, context.folder, provider(context.format, stage.url)) as hone:
        known = [summary.header.id for summary in await hone.sessions.list()]
        for each in known:
            await hone.sessions.load(each)
        session = await (hone.resume(said[0]) if said and said[0] in known else hone.session())
        texts = [message.text for message in session.transcript]
        wrong = [f"lost: {words}" for words in acknowledged if words not in texts]
        if texts.count("Done.") < said.count("answered: Done."):
            wrong.append("lost: an answer")
        turn = await session.send("go on")
        if (turn.stop, turn.text) != (Stop.ANSWERED, "Done."):
            wrong.append(f"no answer: {turn.error}")
        if bodies and not plain(stage.bodies[len(bodies)]).startswith(plain(bodies[-1])):
            wrong.append("lost: something that the model had been shown")
        return wrong + stage.invalid + await unsound(context.format, hone, session)


def plain(body: bytes) -> bytes:
    """A request up to the end of its messages, without the marks that move on."""
    return body.removesuffix(b"]}").replace(MARKER, b"")


async def test_a_kill_when_a_request_arrives_loses_nothing_that_was_acknowledged(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    ledger, random = Ledger(), tier.random()
    for context in scenes(tmp_path, tier.size(short=5, full=50)):
        last = random.randint(0, 7)
        workers: list[Process] = []

        def kill(number: int, last: int = last, workers: list[Process] = workers) -> None:
            if number == last:
                workers[0].kill()

        async with FakeProvider(SCRIPT, fault=kill) as stage:
            workers.append(await start(context.home, context.folder, context.format, stage.url))
            said = await rest(workers[0], *WORDS)
            assert workers[0].returncode == -signal.SIGKILL, said
            await aftermath(context, stage, said, ledger)
    figures(f"when a request arrives: {ledger}")
    assert not ledger.wrong, "\n".join(ledger.wrong)
