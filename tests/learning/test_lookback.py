"""E1, E2: when a program's conversations are looked back over, and that `off` means off."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from hone import Hone
from hone.cli.detach import After, leave
from hone.core.clock import ManualClock
from hone.core.errors import Rejected, SettingsError
from hone.core.events import Learned
from hone.core.jobs import CUT_OFF, FOLLOWED, State
from hone.core.ledger import USER
from hone.core.messages import Message, Role, assistant
from hone.core.model import Piece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.turn import Origin, Stop
from hone.knowledge.journal import entries
from hone.knowledge.reasons import LABELS
from hone.models.scripted import Scripted, call, lines
from hone.settings import Settings
from hone.settings.sections import Learning
from tests.faults.left import ASKED, NOTE, WISH, learner
from tests.learning.test_review import Broken, hang


class PatientClock(ManualClock):
    """Writes down for how long somebody was ready to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float] = []

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        self.waited.append(seconds)
        async with super().timeout(seconds) as deadline:
            yield deadline


class StillClock(ManualClock):
    """Moves only when it is advanced: how often the background pauses depends on the machine."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def known(hone: Hone) -> tuple[str, ...]:
    return tuple(entries(await hone.keeper.text(USER)))


async def requests(hone: Hone, origin: Origin = Origin.REVIEW) -> int:
    return len([each for each in await hone.sessions.spending() if each.origin is origin])


async def test_what_a_program_hears_is_in_its_next_prompt(home: Path) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        await hone.run(WISH)
        (entry,) = await hone.learned()
        assert (entry.change.confirmed, [each.message for each in entry.change.author.evidence]) == (
            True,
            [1],
        )
        assert NOTE in (await hone.session()).agent.prefix.system
        assert await hone.learned() == []
        assert await requests(hone) == 1, "one request is enough where all calls succeed"


async def test_close_waits_for_what_was_left(home: Path) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        await hone.run(WISH)
    async with Hone(home=home, model=Scripted(learner)) as hone:
        assert await known(hone) == (NOTE,)


def test_run_sync_learns_like_any_other(home: Path) -> None:
    assert (
        Hone(home=home, model=Scripted(learner), learning="background").run_sync(WISH).stop is Stop.ANSWERED
    )
    assert (home / "USER.md").read_text() == f"- {NOTE}\n"


async def test_close_waits_no_longer_than_it_may_and_says_so_in_one_line(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, model = ManualClock(), Broken(hang)
    hone = Hone(home=home, model=model, clock=clock, learning="background", learning_wait=7.0)
    await hone.run(WISH)
    with caplog.at_level(logging.WARNING, "hone"):
        closing = asyncio.create_task(hone.close())
        await model.asked.wait()
        clock.advance(6.9)
        await asyncio.sleep(0)
        assert not closing.done()
        clock.advance(0.1)
        await closing
    assert [record.message.count("hone worker --once") for record in caplog.records] == [1]
    async with Hone(home=home, model=Scripted(learner)) as hone:
        assert [job.state for job in await hone.jobs.jobs()] == [State.QUEUED]
        await hone.background.drain()
        assert await known(hone) == (NOTE,)


async def test_an_error_in_the_program_is_not_held_up(home: Path) -> None:
    async def fail() -> None:
        async with Hone(home=home, model=Broken(hang), learning="background") as hone:
            await hone.run(WISH)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with Hone(home=home, model=Scripted(learner)) as hone:
        await hone.background.drain()
        assert await known(hone) == (NOTE,), "what it said is kept for later"


async def test_while_a_program_runs_silence_sets_it_off_and_each_turn_puts_it_off(home: Path) -> None:
    clock, done = ManualClock(), asyncio.Event()
    async with Hone(home=home, model=Scripted(learner), clock=clock) as hone:
        hone.background.attend(lambda event: done.set() if isinstance(event, Learned) else None)
        session = await hone.session()
        await session.send(WISH)
        (look,) = await hone.jobs.looks()
        assert (look.due - clock.now()).total_seconds() == 240.0, "80 % of the five minutes of the cache"
        clock.advance(200.0)
        await session.send("and on")
        (moved,) = await hone.jobs.looks()
        assert (moved.due - look.due).total_seconds() == 200.0
        assert await hone.jobs.jobs() == ()
        clock.advance(240.0)
        await done.wait()
        assert (await known(hone), await hone.jobs.looks()) == ((NOTE,), ())


async def test_what_a_program_left_is_in_the_first_prompt_of_the_next(home: Path) -> None:
    """It speaks at once: nobody types meanwhile."""
    async with Hone(home=home, model=Scripted(learner), learning="queue") as hone:
        await hone.run(WISH)
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        assert NOTE in (await hone.session()).agent.prefix.system


async def test_a_first_conversation_waits_no_longer_than_it_may_and_the_review_continues(home: Path) -> None:
    clock, model = StillClock(), Broken(hang)
    async with Hone(home=home, model=model, clock=clock, learning="queue") as hone:
        await hone.run(WISH)
    hone = Hone(home=home, model=model, clock=clock, learning="background", learning_wait=7.0)
    opening = asyncio.create_task(hone.session())
    await model.asked.wait()
    clock.advance(6)
    await asyncio.sleep(0)
    assert not opening.done()
    clock.advance(1)
    assert (await (await opening).send("on")).stop is Stop.ANSWERED
    assert (hone.background.working, model.looks) == (1, 1), "it was not begun anew"
    await hone.close(wait=False)


@pytest.mark.parametrize("how", ["may not wait", "local", "nothing left"])
async def test_otherwise_a_first_conversation_begins_at_once(home: Path, how: str) -> None:
    clock, model = PatientClock(), Broken(hang)
    async with Hone(home=home, model=model, clock=clock, learning="queue") as hone:
        await hone.run(WISH)
    if how == "nothing left":
        async with Hone(home=home, model=Scripted(learner), clock=clock) as hone:
            await hone.background.drain()
    wait = 0.0 if how == "may not wait" else 7.0
    hone = Hone(home=home, model=model, clock=clock, learning="background", learning_wait=wait)
    hone.models.is_local = how == "local"
    await hone.session()
    assert not {0.0, 7.0} & set(clock.waited)
    await hone.close(wait=False)


async def test_who_comes_back_soon_after_a_review_is_heard_once_it_is_silent(home: Path) -> None:
    """As with `hone run --continue`: each run is left at once, and its words are one conversation."""
    clock = ManualClock()

    async def say(words: str, session: str = "") -> tuple[str, After]:
        async with Hone(home=home, model=Scripted(learner), clock=clock, learning="queue") as hone:
            found = await hone.resume(session) if session else await hone.session()
            await found.send(words)
            clock.advance(1.0)
            after = await leave(hone)
            await hone.background.drain()
            clock.advance(59.0)
            return found.id, after

    id, after = await say(WISH)
    assert (after, await say("The oven is small.", id)) == (After.QUEUED, (id, After.QUEUED))
    assert (await say("Sort this list."))[1] is After.NONE, "it is only awaited by its own processes"
    await say("great", id)
    async with Hone(home=home, model=Scripted(learner), clock=clock) as hone:
        assert [(job.why, job.messages) for job in await hone.jobs.jobs()] == [(LABELS["statement"], 2)]
        clock.advance(180.0)
        await hone.background.drain()
        (last, *_) = await hone.jobs.jobs()
        assert (last.why, last.messages) == (FOLLOWED, 6)
    await say("thanks", id)
    clock.advance(240.0)
    assert (await say("Sort that list.", id))[1] is After.NONE, "after a silence it counts by itself"


@pytest.mark.parametrize("how", ["learning", "review", "variable", "intervals"])
async def test_off_means_no_call_no_cost_and_no_row(
    home: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "review": Settings(learning=Learning(review="off")),
        "intervals": Settings(learning=Learning(turns=0, iterations=0)),
    }.get(how, Settings())
    if how == "variable":
        monkeypatch.setenv("HONE_LEARNING", "off")
    chosen = "off" if how == "learning" else "background"
    async with Hone(home=home, model=Scripted(learner), settings=settings, learning=chosen) as hone:
        session = await hone.session()
        for _ in range(12):
            await session.send(WISH)
        assert await hone.learned() == []
    async with Hone(home=home, model=Scripted(learner), settings=settings) as hone:
        assert (await hone.jobs.looks(), await hone.jobs.jobs()) == ((), ())
        assert await hone.jobs.counters(session.id) == {} or how == "intervals"
        assert (await requests(hone), await requests(hone, Origin.USER)) == (0, 12)


@pytest.mark.parametrize("how", ["review", "variable"])
async def test_what_was_queued_before_it_was_switched_off_waits_and_nothing_is_sent(
    home: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="queue") as hone:
        await hone.run(WISH)
        await hone.lookback.leave()
        await hone.background.promote()
    if how == "variable":
        monkeypatch.setenv("HONE_LEARNING", "off")
    settings = Settings(learning=Learning(review="off" if how == "review" else "auto"))
    async with Hone(home=home, model=Scripted(learner), settings=settings, learning="background") as hone:
        await hone.run("And now?")
        await hone.background.drain()
        (job,) = await hone.jobs.jobs()
        assert (job.state, job.tries, await requests(hone)) == (State.QUEUED, 0, 0)
        assert job.error.startswith("Reviews are off")
        assert await leave(hone) is After.NONE
    monkeypatch.delenv("HONE_LEARNING", raising=False)
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        await hone.background.drain()
        assert await known(hone) == (NOTE,)


async def test_without_looks_only_the_intervals_are_left(home: Path) -> None:
    settings = Settings(learning=Learning(turns=3, after_exit="off"))
    async with Hone(home=home, model=Scripted(learner), settings=settings, learning="background") as hone:
        session = await hone.session()
        await session.send(WISH)
        assert await hone.jobs.looks() == ()
        await session.send("on")
        await session.send("on")
        await hone.learned()
        assert [job.why for job in await hone.jobs.jobs()] == ["3 turns"]
        assert await known(hone) == (NOTE,)


async def test_an_unknown_way_to_learn_is_refused(home: Path) -> None:
    with pytest.raises(SettingsError, match="background, queue, off"):
        Hone(home=home, learning="sometimes")


async def test_a_program_that_leaves_it_to_others_does_nothing_itself(home: Path) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="queue") as hone:
        await hone.run(WISH)
        assert await hone.learned() == []
        assert await requests(hone) == 0
    async with Hone(home=home, model=Scripted(learner)) as hone:
        assert [look.cue for look in await hone.jobs.looks()] == ["a statement about the user"]
        await hone.background.drain()
        assert await known(hone) == (NOTE,)


# What is reason enough


async def test_nine_turns_with_a_correction_in_each_are_one_review(home: Path) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        await hone.run("hello")
        await hone.learned()
        session = await hone.session()
        for number in range(9):
            await session.send(f"No, that's wrong, it is {number}. {WISH}")
        await hone.learned()
        assert await known(hone) == (NOTE,)
        assert len(await hone.jobs.jobs()) == 2


async def test_ten_one_shots_are_read_together_and_one_with_a_cue_by_itself(home: Path) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        for _ in range(10):
            await hone.run("sort this list")
            await hone.learned()
        jobs = list(reversed(await hone.jobs.jobs()))
        assert [1 + len(job.others) for job in jobs] == [1, 4, 4], "the first of a home, then by four"
        assert sum(look.turns for look in await hone.jobs.looks()) == 1
        await hone.run(WISH)
        await hone.learned()
        (last, *_) = await hone.jobs.jobs()
        assert (last.why, last.others) == ("a statement about the user", ())
        assert await known(hone) == (NOTE,)


async def test_a_lesson_from_several_conversations_names_the_one_it_was_said_in(home: Path) -> None:
    """Without a cue that the detector knows."""
    words, note = "the blue folder is for invoices", "The blue folder is for invoices."

    def reader(messages: Sequence[Message]) -> Message:
        asked = next(message for message in reversed(messages) if message.role is Role.USER).text
        if ASKED not in asked or words not in asked:
            return assistant("Yes.")
        return assistant(call("memory", action="add", text=note, evidence=[words]))

    async with Hone(home=home, model=Scripted(reader), learning="background") as hone:
        await hone.run("hello")
        await hone.learned()
        for said in ("sort this list", "sort that list", words):
            session = await hone.session()
            await session.send(said)
            await hone.learned()
        await hone.run("sort these lists")
        (entry,) = await hone.learned()
        (evidence,) = entry.change.author.evidence
        stored = await hone.sessions.load(session.id)
        assert (evidence.session, evidence.message) == (session.id, 1)
        assert evidence.digest == stored.transcript.nodes[0].digest


async def test_four_turns_are_reason_enough_and_three_are_not(home: Path) -> None:
    async with Hone(home=home, model=Scripted(learner), learning="background") as hone:
        await hone.run("hello")
        await hone.learned()
        session = await hone.session()
        for _ in range(3):
            await session.send("sort this list")
        await hone.learned()
        assert len(await hone.jobs.jobs()) == 1
        await session.send("sort that list")
        await hone.learned()
        assert (await hone.jobs.jobs())[0].why == "4 turns"


async def test_words_are_searched_with_their_answer_and_until_then_count_as_cut_off(home: Path) -> None:
    """A process that is killed before the answer leaves a reason to look back."""
    seen: list[str] = []

    async def look() -> str:
        return ", ".join(each.cue for each in await hone.jobs.looks())

    class Watched(Scripted):
        async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
            seen.append(await look())
            if transcript.nodes[-1].message.text == "fail":
                raise Rejected("no")
            async with aclosing(super().stream(prefix, transcript)) as pieces:
                async for piece in pieces:
                    yield piece

    async with Hone(home=home, model=Watched(lines("Well.", "Fine.", "Good."))) as hone:
        session = await hone.session()
        await session.send("hello")
        assert (seen, await look()) == ([CUT_OFF], "")
        await session.send("fail")
        assert (seen[-1], await look()) == (CUT_OFF, ""), "a refusal ends a turn as well"
        await session.send("Too long!")
        assert await look() == LABELS["correction"]
        await session.send("thanks")
        assert seen[-1] == await look() == LABELS["correction"], "a reason stays one"
