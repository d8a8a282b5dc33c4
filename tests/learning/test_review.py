"""E1 to E3: what sets a review off, what it meets while it runs, and that the conversation never feels it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from hone import Hone
from hone.core.claims import Claims
from hone.core.clock import ManualClock
from hone.core.errors import Overflow, Rejected
from hone.core.events import Event, Learned, ReviewFailed
from hone.core.jobs import Counters, Job, State
from hone.core.ledger import MEMORY, Actor, Author, ChangeQuery, ChangeState, Evidence
from hone.core.messages import Message, Role, ToolCall, assistant
from hone.core.model import Piece, Reply, Usage
from hone.core.permit import Effect
from hone.core.prefix import Prefix
from hone.core.skill import DOCUMENT, SkillOrigin
from hone.core.topics import NAMES
from hone.core.transcript import Transcript
from hone.core.turn import Origin, Stop
from hone.core.value import replace
from hone.knowledge.journal import Add, entries
from hone.knowledge.keeper import MET, OWNER
from hone.knowledge.skills.folder import Create, Patch
from hone.learning.reports import queued as queue_by_hand
from hone.learning.review import Reviewer
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, Scripted, call, lines, rounds, rules, say
from hone.models.wrappers import Aside
from hone.runtime.session import Session
from hone.settings import Settings
from hone.settings.sections import Learning
from tests.cli.driving import environment
from tests.cli.driving import hone as command
from tests.given import NOON
from tests.rig import Puppet

BOTH = NAMES
ASKED = "look back over this conversation"
PLAN = "---\nname: trip-planning\ndescription: Plan a trip day by day.\n---\n\nRead the log.\nThen go.\n"
EVERY = Settings(learning=Learning(turns=1, iterations=0))


def looks_back(transcript: Transcript) -> bool:
    return any(ASKED in message.text for message in transcript if message.role is Role.USER)


class Held:
    """A model that waits when it has looked back and saved something, until it is let go."""

    def __init__(self, review: Script, talk: Script | None = None) -> None:
        self._model = Scripted(rules((ASKED, review), otherwise=talk or lines("Well.")))
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if looks_back(transcript) and transcript.nodes[-1].message.role is Role.TOOL:
            self.asked.set()
            await self.go.wait()
        async with aclosing(self._model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                yield piece


class Broken:
    """A model that talks, and breaks when it looks back."""

    def __init__(self, broken: Callable[[Transcript], Awaitable[Reply]]) -> None:
        self._broken = broken
        self.looks, self.asked = 0, asyncio.Event()

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if looks_back(transcript):
            self.looks += 1
            self.asked.set()
            yield await self._broken(transcript)
        else:
            yield Reply(assistant("Well."))


def answer_with(text: str) -> Callable[[Transcript], Awaitable[Reply]]:
    async def reply(_: Transcript) -> Reply:
        return Reply(assistant(text))

    return reply


LOOKS = call("skills_list", "look", query="trip")
"""A review that looks something up is asked once more."""


def saving(**change: Any) -> Script:
    return rounds(assistant(call("memory", evidence=["#1"], **change), LOOKS), "Saved.")


def shelving(**change: Any) -> Script:
    patch = call("skill_manage", evidence=["#1"], name="trip-planning", **change)
    return rounds(assistant(patch, LOOKS), "Saved.")


async def due(hone: Hone, words: str = "hello") -> tuple[Session, Job]:
    session = await hone.session()
    await session.send(words)
    (job,) = await hone.jobs.waiting()
    return session, job


async def meanwhile(hone: Hone, model: Held, deed: Callable[[], Awaitable[object]]) -> Job:
    """The review runs, the deed is done, the review ends."""
    (job,) = await hone.jobs.waiting()
    review = asyncio.create_task(hone.reviewer.work(job.id, lambda _: None))
    await model.asked.wait()
    await deed()
    model.go.set()
    await review
    return await hone.jobs.job(job.id)


async def made(hone: Hone, job: Job) -> list[tuple[ChangeState, str]]:
    found = [await hone.ledger.entry(id) for id in job.changes]
    return [(entry.change.standing, entry.change.cause) for entry in found]


ACTIVE, WAITS = (ChangeState.ACTIVE, ""), (ChangeState.PENDING, MET)


# What it meets


class Losing:
    """Claims that are lost while a review is at work, as with a connection that the server ended."""

    def __init__(self, claims: Claims) -> None:
        self.inner, self.lost = claims, False
        self.hold, self.find_held, self.sweep = claims.hold, claims.find_held, claims.sweep
        self.beat = claims.beat

    async def confirm(self, name: str) -> bool:
        return not self.lost and await self.inner.confirm(name)


async def test_a_review_that_lost_its_claim_calls_no_model_and_writes_nothing(home: Path) -> None:
    async def save(_: Transcript) -> Reply:
        claims.lost = True
        change = call("memory", action="add_anyway", text="Hello was said.", evidence=["#1"])
        return Reply(assistant(change, LOOKS))

    model = Broken(save)
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        _, job = await due(hone)
        claims = Losing(hone.stores.claims)
        events: list[Event] = []
        await Reviewer(replace(hone.reviewer.deps, claims=claims)).work(job.id, events.append)
        after = await hone.jobs.job(job.id)
        assert (model.looks, after.state, after.error, after.tries) == (1, State.QUEUED, "", 1)
        assert (events, await hone.ledger.latest()) == ([], 0)


async def test_the_conversation_goes_on_while_it_is_reviewed(home: Path) -> None:
    model = Held(saving(action="add_anyway", text="Hello was said."))
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        session, _ = await due(hone)
        job = await meanwhile(hone, model, lambda: session.send("and on"))
        assert (job.state, job.messages, await made(hone, job)) == (State.DONE, 2, [ACTIVE])
        assert len((await hone.sessions.load(session.id)).transcript) == 4
        assert [each.messages for each in await hone.jobs.waiting()] == [4]


async def test_a_review_asks_for_the_way_before_every_step_and_takes_none_until_it_is_free(
    home: Path,
) -> None:
    model = Held(saving(action="add_anyway", text="Hello was said."))
    model.go.set()
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        _, job = await due(hone)
        ways = [asyncio.Event() for _ in range(2)]
        steps: asyncio.Queue[int] = asyncio.Queue()

        async def aside() -> None:
            steps.put_nowait(1)
            if ways:
                await ways.pop(0).wait()

        first, second = ways
        review = asyncio.ensure_future(hone.reviewer.work(job.id, lambda _: None, Aside(aside)))
        await steps.get()
        assert (await hone.jobs.job(job.id)).tries == 0
        first.set()
        await steps.get()
        assert not model.asked.is_set()
        second.set()
        await review
        assert (await hone.jobs.job(job.id)).state is State.DONE
        assert steps.qsize() >= 4  # in the first reply, before and in the second one, and at the end


async def test_an_entry_that_the_owner_edits_by_hand_meanwhile_stays_and_the_reviews_word_waits(
    home: Path,
) -> None:
    model = Held(saving(action="replace", match="tea", text="Likes coffee."))
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        await hone.keeper.note([(MEMORY, Add("Likes tea.")), (MEMORY, Add("Lives here."))], OWNER)
        await due(hone)

        async def edit() -> None:
            (home / "MEMORY.md").write_text("- Likes rain.\n- Lives here.\n")

        job = await meanwhile(hone, model, edit)
        assert (job.state, await made(hone, job)) == (State.DONE, [WAITS])
        assert (home / "MEMORY.md").read_text() == "- Likes rain.\n- Lives here.\n"
        assert entries(await hone.keeper.text(MEMORY)) == ("Likes rain.", "Lives here.")


async def test_a_hand_edit_of_another_entry_and_the_reviews_word_are_both_there(home: Path) -> None:
    model = Held(saving(action="replace", match="tea", text="Likes coffee."))
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        await hone.keeper.note([(MEMORY, Add("Likes tea.")), (MEMORY, Add("Lives here."))], OWNER)
        await due(hone)

        async def edit() -> None:
            (home / "MEMORY.md").write_text("- Likes tea.\n- Lives there.\n")

        job = await meanwhile(hone, model, edit)
        assert await made(hone, job) == [ACTIVE]
        assert entries((home / "MEMORY.md").read_text()) == ("Likes coffee.", "Lives there.")


async def test_a_skill_that_the_foreground_changes_meanwhile_stays_and_the_reviews_patch_waits(
    home: Path,
) -> None:
    model = Held(shelving(action="patch", find="Read the log.", text="Read the map."))
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        keeper = hone.keeper
        session, job = await due(hone)
        rests = (Evidence(session.id, 1, session.transcript.trust, session.transcript.nodes[0].digest),)
        agent = Author(Actor.AGENT, session.id, evidence=rests)
        await keeper.edit_skill("trip-planning", Create(PLAN, SkillOrigin.AGENT), agent)
        patch = Patch("Read the log.", "Read the diary.")
        job = await meanwhile(hone, model, lambda: keeper.edit_skill("trip-planning", patch, agent))
        assert (job.state, await made(hone, job)) == (State.DONE, [WAITS])
        assert "Read the diary.\nThen go." in (home / "skills/trip-planning" / DOCUMENT).read_text()
        await keeper.undo((await keeper.ledger.entries(ChangeQuery(actor=Actor.AGENT, limit=1)))[0].id)
        await keeper.approve(job.changes[0])
        assert "Read the map.\nThen go." in (home / "skills/trip-planning" / DOCUMENT).read_text()


@pytest.mark.parametrize("undone", ["what it changes", "something else"])
async def test_an_undo_meanwhile_holds(home: Path, undone: str) -> None:
    model = Held(saving(action="replace", match="tea", text="Likes coffee."))
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        keeper = hone.keeper
        (tea,) = await keeper.note([(MEMORY, Add("Likes tea."))], OWNER)
        (here,) = await keeper.note([(MEMORY, Add("Lives here."))], OWNER)
        await due(hone)
        which = tea if undone == "what it changes" else here
        job = await meanwhile(hone, model, lambda: keeper.undo(which.id))
        left = entries(await keeper.text(MEMORY))
        if undone == "what it changes":
            assert (left, await made(hone, job)) == (("Lives here.",), [WAITS])
        else:
            assert (left, await made(hone, job)) == (("Likes coffee.",), [ACTIVE])
        assert (home / "MEMORY.md").read_text() == await keeper.text(MEMORY)


@pytest.mark.parametrize("end", ["deleted", "cancelled"])
@pytest.mark.parametrize("at_work", [False, True])
async def test_a_review_whose_session_is_deleted_or_that_is_cancelled_records_nothing(
    home: Path, end: str, at_work: bool
) -> None:
    model = Held(saving(action="add_anyway", text="Hello was said."))
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        session, job = await due(hone)

        async def finish() -> None:
            if end == "deleted":
                await hone.sessions.delete(session.id)
            else:
                await hone.jobs.cancel(job.id, NOON)

        if at_work:
            await meanwhile(hone, model, finish)
        else:
            await finish()
            model.go.set()
            assert await hone.reviewer.work(job.id, lambda _: None) is None
            assert not model.asked.is_set()
        assert (await hone.jobs.job(job.id)).state is State.CANCELLED
        assert await hone.ledger.entries() == ()
        assert not (home / "MEMORY.md").exists()
        assert not list((home / "locks").glob("*"))


async def test_of_two_on_one_queue_one_does_each_review(home: Path) -> None:
    model = Held(saving(action="add_anyway", text="Hello was said."))
    model.go.set()
    async with (
        Hone(home=home, model=model, settings=EVERY) as hone,
        Hone(home=home, model=model, settings=EVERY) as other,
    ):
        for _ in range(4):
            await (await hone.session()).send("hello")
        for each in (hone, other):
            each.background.attend(lambda _: None)
        await asyncio.gather(hone.background.drain(), other.background.drain())
        jobs = await hone.jobs.jobs()
        assert [job.state for job in jobs] == [State.DONE] * 4
        assert sum(job.tries for job in jobs) == 4


async def test_of_several_reviews_of_one_conversation_one_reads_all_and_asks_once(home: Path) -> None:
    """Every word is read by a review that was done, and the others say which one it was."""
    model = Broken(answer_with("Nothing to save."))
    async with Hone(home=home, model=model, settings=EVERY, learning="queue") as hone:
        session, other = await hone.session(), await hone.session()
        for words in ("one", "two", "three"):
            await session.send(words)
        await other.send("another one")
        await hone.background.drain()
        last, third, second, first = await hone.jobs.jobs()
        assert model.looks == 2
        assert {job.state for job in (first, second, third, last)} == {State.DONE}
        read = (await hone.sessions.load(first.review)).transcript
        said = [message.text for message in read if message.role is Role.USER]
        assert [text for text in said if ASKED not in text] == ["one", "two", "three"]
        assert [job.tries for job in (first, second, third, last)] == [1, 0, 0, 1]
        assert [job.why for job in (second, third)] == [f"1 turn, read in review {first.id}"] * 2


async def test_a_review_that_fails_leaves_the_later_ones_and_the_next_that_succeeds_covers_it(
    home: Path,
) -> None:
    """Also what was asked for by hand is done by itself."""

    async def fail_once(_: Transcript) -> Reply:
        if model.looks == 1:
            raise Rejected("Not today.")
        return Reply(assistant("Nothing to save."))

    model = Broken(fail_once)
    async with Hone(home=home, model=model, settings=EVERY, learning="queue") as hone:
        session = await hone.session()
        for words in ("one", "two"):
            await session.send(words)
        asked = await queue_by_hand(hone, session.id, NAMES, hone.clock.now())
        first, second, _ = await hone.jobs.waiting()
        await hone.reviewer.work(first.id, lambda _: None)
        assert [(job.state, job.tries) for job in await hone.jobs.waiting()] == [
            (State.QUEUED, 1),
            (State.QUEUED, 0),
            (State.QUEUED, 0),
        ]
        await hone.reviewer.work(second.id, lambda _: None)
        assert [job.id for job in await hone.jobs.waiting()] == [asked.id]
        assert (await hone.jobs.job(first.id)).why.endswith(f"read in review {second.id}")


async def test_what_was_said_before_notes_took_its_place_is_read_although_a_later_review_waits(
    home: Path,
) -> None:
    """The later one begins with the notes, so it does not cover the first one."""
    model = Broken(answer_with("Nothing to save."))
    async with Hone(home=home, model=model, settings=EVERY, learning="queue") as hone:
        session = await hone.session()
        for number in range(12):
            await session.send(f"fact {number}: " + "word " * 50)
        assert await session.compact()
        for number in range(12, 30):
            await session.send(f"fact {number}: so it is.")
        await hone.background.drain()
        jobs = await hone.jobs.jobs()
        assert {job.state for job in jobs} == {State.DONE}
        reviews = [(await hone.sessions.load(job.review)).transcript for job in jobs if job.review]
        assert len(reviews) == model.looks == 2
        read = "\n".join(message.text for each in reviews for message in each)
        assert [number for number in range(30) if f"fact {number}:" not in read] == []


# What it never does to the conversation


def rows(home: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Every row of every table but the queue, and but the index of words, which is rewritten as it grows."""
    with closing(apsw.Connection(str(home / "hone.db"))) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {
            name: set(connection.execute(f"SELECT * FROM {name}"))
            for name in names
            if not name.startswith(("jobs", "sqlite_", "passage_words"))
        }


async def hang(_: Transcript) -> Reply:
    await asyncio.Event().wait()
    raise AssertionError


async def crash(_: Transcript) -> Reply:
    raise RuntimeError("the model has a bug")


async def refuse(_: Transcript) -> Reply:
    raise Rejected("The provider says no.")


async def babble(transcript: Transcript) -> Reply:
    asked = call("memory", f"call{len(transcript)}", action="list", evidence=["#1"])
    return Reply(assistant(asked))


async def devour(transcript: Transcript) -> Reply:
    return replace(await babble(transcript), usage=Usage(input=70_000, output=10_000))


async def break_tool(transcript: Transcript) -> Reply:
    done = transcript.nodes[-1].message.role is Role.TOOL
    asked = ToolCall("broken", "breaks", "{}")
    return Reply(assistant("Nothing to save.") if done else assistant(asked))


TROUBLE: dict[str, tuple[Callable[[Transcript], Awaitable[Reply]], State, int, str]] = {
    "hangs": (hang, State.QUEUED, 1, "It took more than 600 seconds."),
    "crashes": (crash, State.QUEUED, 1, "It broke off with RuntimeError."),
    "is refused": (refuse, State.QUEUED, 1, "The provider says no."),
    "calls without end": (babble, State.DONE, 9, ""),
    "eats tokens": (devour, State.QUEUED, 4, "The limit of 300,000 tokens is reached."),
    "breaks a tool": (break_tool, State.DONE, 2, ""),
}


async def tear(_: ToolCall) -> Any:
    raise RuntimeError("the tool has a bug")


@pytest.mark.parametrize("trouble", TROUBLE)
async def test_a_review_in_trouble_is_a_line_in_the_list_and_nothing_else(home: Path, trouble: str) -> None:
    broken, state, looks, error = TROUBLE[trouble]
    model, clock, events = Broken(broken), ManualClock(), list[Event]()
    tool = Puppet("breaks", frozenset({Effect.NOTE}), act=tear)
    async with Hone(home=home, model=model, settings=EVERY, clock=clock, tools=[tool]) as hone:
        session, job = await due(hone)
        head, before = session.transcript.head, rows(home)
        hone.background.attend(events.append)
        done = asyncio.create_task(hone.background.drain())
        while trouble == "hangs" and not done.done():
            await asyncio.sleep(0)
            if model.looks:
                clock.advance(601)
        await done
        after = await hone.jobs.job(job.id)
        assert (after.state, after.error, after.tries) == (state, error, 1)
        assert model.looks == looks
        assert [type(event) for event in events] == [Learned if state is State.DONE else ReviewFailed]
        stored = (await hone.sessions.load(session.id)).transcript
        assert (session.transcript.head, stored.head) == (head, head)
        assert {name: lost for name, kept in rows(home).items() if (lost := before[name] - kept)} == {}
        assert hone.notices == []
        assert [each.header.id for each in await hone.sessions.list()] == [session.id]
        assert (await session.send("and on")).stop is Stop.ANSWERED


async def test_what_fails_is_tried_again_by_the_next_process_until_it_counts_as_failed(home: Path) -> None:
    for tries in (1, 2, 3):
        async with Hone(home=home, model=Broken(refuse), settings=EVERY) as hone:
            if tries == 1:
                await due(hone)
            hone.background.attend(lambda _: None)
            await hone.background.drain()
            hone.background.notify()
            await hone.background.drain()
            (job,) = await hone.jobs.jobs()
            assert (job.tries, job.state) == (tries, State.QUEUED if tries < 3 else State.FAILED)
    async with Hone(home=home, model=Broken(babble), settings=EVERY) as hone:
        await hone.jobs.retry(job.id)
        hone.background.attend(lambda _: None)
        await hone.background.drain()
        assert (await hone.jobs.job(job.id)).state is State.DONE


# What sets it off


def settings(turns: int = 0, iterations: int = 0) -> Settings:
    return Settings(learning=Learning(turns=turns, iterations=iterations))


async def test_children_start_no_reviews(home: Path) -> None:
    def script(messages: Sequence[Message]) -> Message:
        if messages[0].text != "go":
            return assistant(call("todo") if len(messages) < 6 else "Counted.")
        tasks = call("delegate", tasks=["count the stars", "count the stones"])
        return assistant(tasks if len(messages) == 1 else "All back.")

    async with Hone(home=home, model=Scripted(script), settings=settings(turns=2, iterations=2)) as hone:
        session = await hone.session()
        await session.send("go")
        assert len(await hone.sessions.list(origin=Origin.DELEGATE)) == 2
        assert await hone.jobs.jobs() == ()
        assert await hone.jobs.counters(session.id) == {"memory": 1, "skills": 1}


async def test_an_interrupted_turn_and_a_failed_one_keep_the_counters(home: Path) -> None:
    waiting = asyncio.Event()

    class Moody(Scripted):
        async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
            words = transcript.nodes[-1].message.text
            if words == "fail":
                raise Rejected("No.")
            if words == "wait":
                waiting.set()
                await asyncio.Event().wait()
            yield say(self._script, tuple(transcript))

    async with Hone(home=home, model=Moody(lines("Well.")), settings=settings(turns=3)) as hone:
        session = await hone.session()
        await session.send("one")
        before = await hone.jobs.counters(session.id)
        assert (await session.send("fail")).stop is Stop.FAILED
        turn = asyncio.create_task(session.send("wait"))
        await waiting.wait()
        session.cancel()
        assert (await turn).stop is Stop.INTERRUPTED
        assert await hone.jobs.counters(session.id) == before == {"memory": 1}
        await session.send("two")
        assert await hone.jobs.jobs() == ()
        await session.send("three")
        assert [job.why for job in await hone.jobs.jobs()] == ["3 turns"]
        assert await hone.jobs.counters(session.id) == {}


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (call("memory", action="add", text="Go on.", evidence=["save, go on"]), {"skills": 2}),
        (call("memory", action="list", evidence=[]), {"memory": 2, "skills": 2}),
        (
            call("memory", action="remove", match="nothing", evidence=["save, go on"]),
            {"memory": 2, "skills": 2},
        ),
        (
            call("skill_manage", action="create", name="a", text=PLAN, evidence=["save, go on"]),
            {"memory": 2, "skills": 2},
        ),
        (
            call("skill_manage", action="create", name="trip-planning", text=PLAN, evidence=["save, go on"]),
            {"memory": 2},
        ),
    ],
    ids=["noted", "looked", "note refused", "skill refused", "shelved"],
)
async def test_what_the_foreground_saves_itself_counts_anew(
    home: Path, made: ToolCall, after: Counters
) -> None:
    script = rules(
        ("save", rounds(assistant(made), "Well.")), otherwise=rounds(assistant(call("todo")), "Well.")
    )
    async with Hone(home=home, model=Scripted(script), settings=settings(9, 9)) as hone:
        session = await hone.session()
        await session.send("go on")
        await session.send("save, go on")
        assert await hone.jobs.counters(session.id) == after


async def test_both_due_is_one_review_of_both(home: Path) -> None:
    script = rounds(assistant(call("todo")), "Well.")
    async with Hone(home=home, model=Scripted(script), settings=settings(2, 2)) as hone:
        session = await hone.session()
        await session.send("one")
        await session.send("two")
        (job,) = await hone.jobs.jobs()
        assert (job.topics, job.why) == (BOTH, "2 turns and 2 tool iterations")
        assert await hone.jobs.counters(session.id) == {}


async def test_with_intervals_of_nothing_nothing_is_ever_due(home: Path) -> None:
    script = rounds(assistant(call("todo")), "Well.")
    async with Hone(home=home, model=Scripted(script), settings=settings()) as hone:
        session = await hone.session()
        for _ in range(12):
            await session.send("on")
        assert await hone.jobs.jobs() == ()


async def test_a_branch_goes_on_counting_where_its_parent_was(home: Path) -> None:
    async with Hone(home=home, model=Scripted(lines("Well.")), settings=settings(turns=3)) as hone:
        session = await hone.session()
        await session.send("one")
        branch = await hone.resume(await hone.branch(session.id))
        await branch.send("two")
        assert await hone.jobs.counters(session.id) == {"memory": 2}
        await session.send("three")
        (job,) = await hone.jobs.jobs()
        assert (job.session, job.tree) == (session.id, session.id)
        assert await hone.jobs.counters(branch.id) == {}


async def test_a_one_shot_run_leaves_its_review_to_the_next_start(home: Path) -> None:
    (home / "hone.toml").write_text("[learning]\nturns = 1\n")
    script = rules((ASKED, saving(action="add_anyway", text="Hello was said.")), otherwise=lines("Well."))
    async with FakeProvider(script) as stage:
        ended = await command("run", "hello", env=environment(home, stage))
        assert (ended.code, ended.out) == (0, "Well.\n")
        assert "learn" not in ended.err
        assert len(stage.bodies) == 1
        async with Hone(home=home, model=Scripted(script)) as hone:
            assert [job.why for job in await hone.jobs.waiting()] == ["1 turn"]
            hone.background.attend(lambda _: None)
            await hone.background.drain()
            assert [job.state for job in await hone.jobs.jobs()] == [State.DONE]
        assert (home / "MEMORY.md").read_text() == "- Hello was said.\n"


# What it may cost, and what fits


class Looking:
    """A model that notes how long each request to look back is; `act` says what it answers."""

    def __init__(self, act: Callable[[Transcript], Awaitable[Reply]]) -> None:
        self._act = act
        self.sizes: list[int] = []

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        if looks_back(transcript):
            self.sizes.append(sum(len(node.encoded) for node in transcript.nodes))
            yield await self._act(transcript)
        else:
            yield Reply(assistant("Well."))


async def test_the_days_budget_is_looked_at_before_each_call_of_a_review(home: Path) -> None:
    settings = Settings(learning=Learning(turns=1, iterations=0, daily=0.5))

    async def pay(transcript: Transcript) -> Reply:
        return replace(await babble(transcript), usage=Usage(input=10, output=10, cost=0.3))

    model = Looking(pay)
    async with Hone(home=home, model=model, settings=settings) as hone:
        _, job = await due(hone)
        await hone.background.drain()
        after = await hone.jobs.job(job.id)
        assert len(model.sizes) == 2, "0.30 is below the limit, 0.60 is not"
        assert (after.state, after.error) == (
            State.QUEUED,
            "The budget of 0.50 USD a day is spent; reviews continue tomorrow.",
        )


async def save(_: Transcript) -> Reply:
    return Reply(assistant(call("memory", action="add", text="Hello was said.", evidence=["hello"])))


async def test_a_conversation_that_does_not_fit_is_read_as_a_digest(home: Path) -> None:
    model = Looking(save)
    settings = Settings(window=16_000, learning=Learning(turns=2, iterations=0))
    async with Hone(home=home, model=model, settings=settings) as hone:
        session = await hone.session()
        room = 4 * int(settings.window * settings.compact_at) - len(session.agent.prefix.encode())
        await session.send("hello")
        await session.send("x" * (room - 1_000))  # the question makes it too long
        await hone.background.drain()
        (job,) = await hone.jobs.jobs()
        assert job.state is State.DONE, job.error
        review = await hone.sessions.load(job.review)
        assert review.header.shared == 0
        assert model.sizes[0] <= room


async def test_what_proves_too_long_is_read_again_in_less_and_then_counts_as_failed(home: Path) -> None:
    async def overflow(_: Transcript) -> Reply:
        raise Overflow("It is longer than the model's window.")

    model = Looking(overflow)
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        _, job = await due(hone, "x" * 200_000)
        await hone.background.drain()
        after = await hone.jobs.job(job.id)
        assert len(model.sizes) == 3
        assert (after.state, after.tries) == (State.FAILED, 3)


async def test_one_that_fits_at_the_second_try_is_done(home: Path) -> None:
    async def once(transcript: Transcript) -> Reply:
        if len(model.sizes) == 1:
            raise Overflow("It is longer than the model's window.")
        return await save(transcript)

    model = Looking(once)
    async with Hone(home=home, model=model, settings=EVERY) as hone:
        _, job = await due(hone)
        await hone.background.drain()
        assert (await hone.jobs.job(job.id)).state is State.DONE


async def test_iterations_of_a_turn_that_was_cut_off_count(home: Path) -> None:
    def script(messages: Sequence[Message]) -> Message:
        if sum(message.role is Role.TOOL for message in messages) < 3:
            return assistant(call("todo", f"c{len(messages)}"))
        raise Rejected("No more.")

    async with Hone(home=home, model=Scripted(script), settings=settings(turns=9, iterations=9)) as hone:
        session = await hone.session()
        assert (await session.send("go")).stop is Stop.FAILED
        assert await hone.jobs.counters(session.id) == {"skills": 3}
