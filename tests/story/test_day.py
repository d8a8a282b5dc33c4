"""J1: a recorded day of work is the same on SQLite and on PostgreSQL, byte for byte: every request on the
wire, every change of what is known, every conversation.

The day has tool calls, a picture, a helper, a compaction, another model, a branch, a resume in another
process, reviews, a look back, a run of the curator, an approval, an undo and skills in use.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.jobs import State
from hone.core.ledger import ChangeQuery, ChangeState
from hone.core.messages import assistant
from hone.core.topics import NAMES
from hone.features.curator.part import CuratorPart
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, rounds, rules
from hone.runtime.export import to_data
from hone.runtime.pictures import attach
from hone.settings import Settings
from hone.settings.sections import Learning
from tests import databases
from tests.core.test_images import FILES
from tests.given import NOON
from tests.tier import Figures
from tests.wire.test_fork import name_model, point

RULE = "Answer in one sentence, always."
PLAN = "Pack first, then book."
TRAINS = "For night trains, book early."
NAMED = (
    "hone.app", "hone.runtime.session", "hone.runtime.continuing", "hone.features.curator.curator",
    "hone.learning.review",
)  # fmt: skip
"""Modules that name new conversations."""


def skill(name: str, body: str) -> str:
    return f"---\nname: {name}\ndescription: How to do {name.replace('-', ' ')}.\n---\n\n{body}\n"


def script() -> Script:
    """The model of the whole day."""
    review = rounds(
        assistant(
            call("memory", action="add", target="user", text=RULE, evidence=[RULE]),
            call("skill_manage", action="create", name="trips", text=skill("trips", PLAN), evidence=[PLAN]),
            call(
                "skill_manage",
                action="create",
                name="night-trains",
                text=skill("night-trains", TRAINS),
                evidence=[TRAINS],
            ),
            call("memory", action="add", text="The notes have two lines.", evidence=["#5"]),
        ),
        "Kept a rule and two skills.",
    )
    merged = {
        "into": "trips",
        "sources": ["night-trains"],
        "description": "How to plan trips, also by night train.",
        "body": f"{PLAN}\n\n{TRAINS}",
        "reason": "one task",
    }
    return rules(
        ("look back over", review),
        ("Reply with one JSON object", rounds(json.dumps({"merge": [merged], "archive": []}))),
        ("about to be shortened", rounds("Notes: the file has two lines.")),
        (
            "Count the lines",
            rounds(
                assistant(call("read_file", path="notes.txt"), call("todo", items=[{"text": "count"}])),
                assistant(call("delegate", tasks=["Read notes.txt once more and report."])),
                "Two lines.",
            ),
        ),
        ("once more and report", rounds(assistant(call("read_file", path="notes.txt")), "It has two lines.")),
        ("use the skill", rounds(assistant(call("skill_view", name="trips")), "Packed.")),
        ("write a file", rounds(assistant(call("write_file", path="new.txt", content="new\n")), "Written.")),
        otherwise=rounds("Yes."),
    )


class Day:
    """One day in one home. `clock` and the names of conversations are the same whenever it is played."""

    def __init__(self, home: Path, folder: Path, wire: str, database: str) -> None:
        self._folder, self._home, self._wire = folder, home, wire
        self._clock = ManualClock(NOON)
        learning = Learning(turns=2, iterations=0)
        self._settings = Settings(model=name_model(wire), database=database, learning=learning, window=32_000)

    def _open(self) -> Hone:
        """A process of its own, as far as anybody can tell."""
        self._clock.advance(600)
        return Hone(
            home=self._home, folder=self._folder, settings=self._settings, clock=self._clock, learning="queue"
        )

    async def live(self) -> dict[str, Any]:
        async with self._open() as hone:
            hone.folders.trust(self._folder)
            first = await self._talk(hone)
        async with self._open() as hone:
            await self._review(hone)
            await hone.part(CuratorPart).curator.work(again=True)
        async with self._open() as hone:
            await self._decide(hone)
            await self._continue(hone, first)
        async with self._open() as hone:
            self._clock.advance(86_400)
            await hone.jobs.promote(self._clock.now(), NAMES)
            await self._review(hone)
            fresh = await hone.session()
            await self._say(fresh, "A new day. What do you know?")
            return await self._export(hone)

    async def _talk(self, hone: Hone) -> SessionId:
        session = await hone.session()
        await self._say(session, f"{RULE} {PLAN} {TRAINS}")
        await self._say(session, "Count the lines of notes.txt, please.")
        shown, trust = await attach(
            "What is this?", [self._folder / "drawing.png"], session.agent.prefix.model, hone
        )
        await session.send(shown, voice=trust)
        await self._say(session, "write a file, please")
        other = await hone.session()
        await self._say(other, "Good morning!")
        return session.id

    async def _review(self, hone: Hone) -> None:
        queued = [job for job in await hone.jobs.jobs() if job.state is State.QUEUED]
        for job in sorted(queued, key=lambda each: each.id):
            self._clock.advance(60)
            await hone.reviewer.work(job.id, lambda _: None)

    async def _decide(self, hone: Hone) -> None:
        """Approve the curator's plan, which waits as one, and undo the rule."""
        entries = sorted(await hone.ledger.entries(ChangeQuery()), key=lambda each: each.id)
        [plan, *_] = [each.id for each in entries if each.change.standing is ChangeState.PENDING]
        await hone.keeper.approve(plan)
        [rule, *_] = [each.id for each in entries if each.change.target == "user"]
        await hone.keeper.undo(rule)

    async def _continue(self, hone: Hone, first: SessionId) -> None:
        session = await hone.resume(first)
        await self._say(session, "What is new? And use the skill.")
        for _ in range(3):
            await self._say(session, "Go on. " * 200)
        await session.compact()
        await self._say(session, "And now?")
        moved = await hone.resume(first, f"{self._wire}/another")
        await self._say(moved, "Who are you?")
        branch = await hone.resume(await hone.branch(first, 3))
        await self._say(branch, "use the skill, from here on")

    async def _say(self, session: Any, words: str) -> None:
        self._clock.advance(30)
        turn = await session.send(words)
        assert not turn.error, turn.error

    async def _export(self, hone: Hone) -> dict[str, Any]:
        """Everything that is stored, as data."""
        sessions = hone.sessions
        listed = await sessions.list(None, None)
        stored = {each.header.id: await sessions.load(each.header.id) for each in listed}
        entries = await hone.ledger.entries(ChangeQuery())
        held = await hone.ledger.held_below("")
        return {
            "ledger": entries,
            "held": {target: dict(files) for target, files in sorted(held.items())},
            "conversations": [to_data(each, lambda text: text) for each in stored.values()],
            "hashes": {id: each.transcript.head for id, each in stored.items()},
            "summaries": listed,
            "reviews": await hone.jobs.jobs(),
            "looks": await hone.jobs.looks(),
            "curator": await hone.stores.curator_runs.runs(),
            "outbox": await hone.stores.outbox.letters(100),
            "usage": await hone.stores.catalog.usage_counts(),
            "skills": await hone.library.listed(archived=True),
            "spent": [await sessions.spending(id) for id in stored],
        }


async def play(home: Path, folder: Path, wire: str, database: str) -> tuple[list[bytes], Mapping[str, bytes]]:
    """Return the bodies of all requests, and what is stored at the end, encoded."""
    for path in (home, folder):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=0o700)
    (folder / "notes.txt").write_text("one\ntwo\n")
    (folder / "drawing.png").write_bytes(FILES["drawing.png"])
    with pytest.MonkeyPatch.context() as patch:
        names, groups = count(1), count(1)
        for module in NAMED:
            patch.setattr(f"{module}.new_id", lambda: SessionId(f"{next(names):010x}"))
        patch.setattr("hone.knowledge.folding.new_group", lambda: f"{next(groups):016x}")
        async with FakeProvider(script()) as stage:
            point(patch, wire, stage.url)
            told = await Day(home, folder, wire, database).live()
            assert stage.invalid == []
            bodies = list(stage.bodies)
    return bodies, {name: msgspec.json.encode(each, order="deterministic") for name, each in told.items()}


@pytest.fixture
def database() -> Iterator[str]:
    with databases.new_database() as url:
        yield url


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_a_day_sends_and_stores_the_same_bytes_on_sqlite_and_on_postgresql(
    home: Path, tmp_path: Path, database: str, wire: str, figures: Figures
) -> None:
    folder = tmp_path / "work"
    sent, stored = await play(home, folder, wire, "")
    assert (home / "hone.db").exists()
    sent_there, stored_there = await play(home, folder, wire, database)
    assert not (home / "hone.db").exists()
    for number, (one, other) in enumerate(zip(sent, sent_there, strict=False)):
        assert one == other, f"request {number}"
    assert len(sent) == len(sent_there)
    for name, each in stored.items():
        assert stored_there[name] == each, name
    changes, talks = (msgspec.json.decode(stored[name]) for name in ("ledger", "summaries"))
    assert {"add", "create", "merge", "archive", "approve", "undo"} <= {
        each["change"]["kind"] for each in changes
    }
    assert {each["header"]["origin"] for each in talks} == {
        "user",
        "review",
        "curator",
        "compact",
        "delegate",
    }
    assert any(b"image" in each for each in sent)
    size = sum(map(len, sent))
    figures(
        f"{len(sent)} requests ({size:,} bytes), {len(changes)} changes, {len(talks)} conversations: "
        "the same on both"
    )
