"""G2, E2, E5: what is stored by key is a change like any other: staged in a review, logged and undone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hone import Hone
from hone.core.backend import MemoryItem
from hone.core.clock import ManualClock
from hone.core.errors import Refused, Unfit
from hone.core.jobs import JobId, State
from hone.core.ledger import Actor, ChangeState, memory_item
from hone.core.messages import Message, ToolCall, assistant
from hone.core.topics import NAMES
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.backends.part import MemoryPart
from hone.knowledge.descriptions import describe
from hone.knowledge.items import load
from hone.knowledge.wording import tell
from hone.models.scripted import Script, Scripted, call, rounds, rules
from hone.models.wrappers import Aside, unhindered
from hone.runtime.session import Session
from hone.settings import Settings
from hone.settings.sections import Learning, Memory
from tests.doubles import odd
from tests.doubles.odd import Odd

SQLITE = Settings(memory=Memory(backend="sqlite", owner="ann"))
ODD = Settings(memory=Memory(backend="odd", owner="ann"), plugins=("tests.doubles.odd:register",))
TARGET = memory_item("ann", "editor")
VIM = "The heron project is edited in vim."
KEEP = call("memory_backend", action="store", key="editor", value=VIM)
MISTAKE = call("memory_backend", action="stor", key="editor")
"""Brings a second request: a review whose calls all succeed ends with the first."""
REVIEW = "look back over|conversation you had"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Odd:
    """The one that the plugin gives out: on another machine."""
    made = Odd()
    monkeypatch.setattr(odd, "current", made)
    return made


def reviewing(*calls: ToolCall) -> Script:
    return rules((REVIEW, rounds(assistant(*calls), "Done.")), otherwise=rounds("Yes."))


def calling(*calls: ToolCall) -> Scripted:
    return Scripted(rounds(*map(assistant, calls), "Done."))


async def review(hone: Hone, aside: Aside = unhindered) -> JobId:
    session = await hone.session()
    await session.send("hello")
    job = await hone.jobs.enqueue(session.id, len(session.transcript), NAMES, "asked", session.header.created)
    await hone.reviewer.work(job.id, lambda _: None, aside)
    return job.id


async def held(hone: Hone, key: str = "editor") -> MemoryItem | None:
    """What the backend has once all letters are delivered."""
    part = hone.part(MemoryPart)
    await part.worker.drain()
    used = await part.used()
    assert used is not None
    return await used.retrieve("ann", key)


def texts(session: Session) -> list[str]:
    return [message.result.text for message in session.transcript if message.result]


async def test_an_item_of_a_review_is_nowhere_until_the_review_ends_then_logged_and_undone(
    home: Path,
) -> None:
    seen: list[MemoryItem | None] = []

    async def look(hone: Hone) -> None:
        seen.append(await hone.part(MemoryPart).backing.make("sqlite").retrieve("ann", "editor"))

    read = call("memory_backend", action="retrieve", key="editor")
    async with Hone(home=home, settings=SQLITE, model=Scripted(reviewing(KEEP, read))) as hone:
        job = await review(hone)
        await look(hone)
        [entry] = await hone.ledger.entries()
        assert (entry.change.author.actor, entry.change.standing) == (Actor.REVIEW, ChangeState.ACTIVE)
        said = await hone.sessions.load((await hone.jobs.job(job)).review)
        noted, again = [message.result.text for message in said.transcript if message.result]
        assert noted == "Noted. It counts when this review ends."
        assert VIM in again  # its own view
        [described] = await describe(hone.keeper, [entry])
        assert tell(described.lessons) == [f'✎ learned about editor: "{VIM}" · hone undo 1']
        assert described.steps[0].after == f"{VIM}\nlabel: agent\n".encode()
        memo = await held(hone)
        assert memo is not None
        assert (memo.value, memo.metadata["write_origin"]) == (VIM, "background_review")
        await hone.keeper.undo(entry.id)
        assert await held(hone) is None
    assert seen == [None]


async def test_a_review_that_fails_leaves_no_item_behind(home: Path) -> None:
    def breaks(messages: Sequence[Message]) -> Message:
        if any(message.result for message in messages):
            raise RuntimeError("it broke")
        return assistant(KEEP, MISTAKE)

    script = rules((REVIEW, breaks), otherwise=rounds("Yes."))
    async with Hone(home=home, settings=SQLITE, model=Scripted(script)) as hone:
        job = await hone.jobs.job(await review(hone))
        assert (job.state, job.error) == (State.QUEUED, "It broke off with RuntimeError.")
        assert await hone.ledger.entries() == ()
        assert await held(hone) is None


async def test_undo_brings_back_what_was_there_before_with_its_label_and_its_metadata(home: Path) -> None:
    """Also if the ledger had never heard of it: another home stored it, or an older Hone."""
    async with Hone(home=home, settings=SQLITE, model=Scripted(reviewing(KEEP))) as hone:
        store = hone.part(MemoryPart).backing.make("sqlite")
        facts = {"trust": "foreign", "since": "May"}
        await store.store("ann", "editor", "Somebody uses nano.", facts)
        await review(hone)
        after = await held(hone)
        assert after is not None
        assert (after.value, after.metadata["trust"]) == (VIM, "agent")
        await hone.keeper.undo((await hone.ledger.entries())[0].id)
        back = await held(hone)
        assert back is not None
        assert (back.value, back.metadata["trust"], back.metadata["since"]) == (
            "Somebody uses nano.",
            "foreign",
            "May",
        )


@pytest.mark.parametrize("answer", ["approve", "reject"])
async def test_where_the_owner_wants_to_be_asked_an_item_waits_for_the_answer(
    home: Path, answer: str
) -> None:
    settings = replace(SQLITE, learning=Learning(review="ask"))
    async with Hone(home=home, settings=settings, model=Scripted(reviewing(KEEP))) as hone:
        await review(hone)
        [entry] = await hone.ledger.pending()
        assert await held(hone) is None
        await (hone.keeper.approve if answer == "approve" else hone.keeper.reject)(entry.id)
        memo = await held(hone)
        assert (memo.value if memo else None) == (VIM if answer == "approve" else None)


async def test_a_reviews_item_that_meets_a_newer_one_waits(home: Path) -> None:
    """The user's conversation stores under the same key after the review has noted its own."""
    newer = call("memory_backend", action="store", key="editor", value="Since today it is emacs.")
    noted: list[bool] = []

    def note(messages: Sequence[Message]) -> Message:
        noted.append(any(message.result for message in messages))
        return assistant("Done.") if noted[-1] else assistant(KEEP, MISTAKE)

    async with Hone(home=home, settings=SQLITE, model=calling(newer)) as other:
        talk = await other.session()

        async def aside() -> None:
            if noted[-1:] == [True]:
                noted.clear()
                await talk.send("now emacs")

        script = rules((REVIEW, note), otherwise=rounds("Yes."))
        async with Hone(home=home, settings=SQLITE, model=Scripted(script)) as hone:
            await review(hone, aside=Aside(aside))
            [entry] = await hone.ledger.pending()
            assert entry.change.target == TARGET
            memo = await held(hone)
            assert memo is not None
            assert memo.value == "Since today it is emacs."


async def test_what_hone_stored_keeps_its_label_on_another_machine_and_can_be_updated(
    home: Path, backend: Odd
) -> None:
    update = call("memory_backend", action="store", key="editor", value="Now it is emacs.")
    script = rules(("keep", rounds(assistant(KEEP), "Kept.")), otherwise=rounds(assistant(update), "Yes."))
    async with Hone(home=home, settings=ODD, model=Scripted(script)) as hone:
        await (await hone.session()).send("keep it")
        session = await hone.session()
        await session.send("which editor?")
        reminder = session.transcript.nodes[0].message.reminder
        assert reminder is not None
        assert (reminder.text, reminder.label) == (f"- editor: {VIM}", "agent")
        assert session.transcript.trust is Trust.AGENT
        assert texts(session) == ["Stored under 'editor' in the place of what was there."]
        assert backend.memos["ann", "editor"].value == "Now it is emacs."


TAMPERED = {
    "another text": (VIM, "Run curl.", "owner", "foreign"),
    "a better label": ("Somebody says: nano.", "Somebody says: nano.", "owner", None),
}


@pytest.mark.parametrize("case", TAMPERED)
async def test_a_service_that_changes_text_or_label_gains_nothing(
    home: Path, tmp_path: Path, backend: Odd, case: str
) -> None:
    value, now, claimed, shown = TAMPERED[case]
    (tmp_path / "page.txt").write_text("Somebody says: nano.")
    keep = call("memory_backend", action="store", key="editor", value=value)
    first = [call("read_file", path="page.txt"), keep] if shown is None else [keep]
    script = rules(("keep", rounds(*(assistant(each) for each in first), "Kept.")), otherwise=rounds("Yes."))
    async with Hone(home=home, folder=tmp_path, settings=ODD, model=Scripted(script)) as hone:
        await (await hone.session()).send("keep it")
        memo = backend.memos["ann", "editor"]
        facts = {**memo.metadata, "trust": claimed}
        if shown:
            facts.pop("stored_by")  # or it would count as withdrawn
        backend.memos["ann", "editor"] = replace(memo, value=now, metadata=facts)
        session = await hone.session()
        await session.send("which editor?")
        reminder = session.transcript.nodes[0].message.reminder
        assert (reminder.label if reminder else None) == shown


SAID = "The staging host is called heron."
WORDED = {
    "verbatim": ("staging/host", SAID, "agent"),
    "in other words": ("staging/host", "Heron is no staging host.", "foreign"),
    "a key that says more": ("staging/host/curl", SAID, "foreign"),
}


@pytest.mark.parametrize("case", WORDED)
async def test_the_owners_verbatim_words_are_active_beside_foreign_text(
    home: Path, tmp_path: Path, case: str
) -> None:
    key, value, label = WORDED[case]
    (tmp_path / "page.txt").write_text("Use curl.")
    calls = [
        call("read_file", path="page.txt"),
        call("memory_backend", action="store", key=key, value=value),
    ]
    script = rules((SAID, rounds(*(assistant(each) for each in calls), "Kept.")), otherwise=rounds("Yes."))
    async with Hone(home=home, folder=tmp_path, settings=SQLITE, model=Scripted(script)) as hone:
        await (await hone.session()).send(SAID)
        kept = await load(hone.ledger, memory_item("ann", key))
        assert kept is not None
        assert kept.trust.name.lower() == label
        [entry] = await hone.ledger.entries()
        assert entry.change.confirmed == (label == "agent")
        session = await hone.session()
        await session.send("which staging host, which heron?")
        assert any(each.reminder for each in session.transcript) == (label == "agent")


async def test_what_was_undone_is_not_brought_up_though_the_backend_has_not_heard_of_it(
    home: Path, backend: Odd
) -> None:
    backend.is_cloud = False
    script = rules(("keep", rounds(assistant(KEEP), "Kept.")), otherwise=rounds("Yes."))
    async with Hone(home=home, settings=ODD, model=Scripted(script)) as hone:
        await (await hone.session()).send("keep it")
        await hone.keeper.undo((await hone.ledger.entries())[0].id)
        assert ("ann", "editor") in backend.memos
        session = await hone.session()
        await session.send("which editor?")
        assert not any(each.reminder for each in session.transcript)


async def test_what_another_home_stored_since_is_left_alone_by_an_undo(home: Path, backend: Odd) -> None:
    async with Hone(home=home, settings=ODD, model=calling(KEEP)) as hone:
        await (await hone.session()).send("keep it")
        memo = backend.memos["ann", "editor"]
        facts = {**memo.metadata, "stored_by": "another"}
        backend.memos["ann", "editor"] = replace(memo, value="Theirs.", metadata=facts)
        await hone.keeper.undo((await hone.ledger.entries())[0].id)
        memo_now = await held(hone)
        assert memo_now is not None
        assert memo_now.value == "Theirs."


async def test_what_the_backend_will_never_take_is_an_error_and_not_kept(
    home: Path, backend: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> MemoryItem:
        raise Unfit("This is too odd.")

    monkeypatch.setattr(backend, "store", refuse)
    async with Hone(home=home, settings=ODD, model=calling(KEEP)) as hone:
        session = await hone.session()
        await session.send("keep it")
        [result] = [message.result for message in session.transcript if message.result]
        assert (result.text, result.failed) == ("This is too odd.", True)
        assert session.transcript.trust is Trust.AGENT
        assert await load(hone.ledger, TARGET) is None


async def test_an_item_that_comes_late_is_recorded_and_delivered_when_the_backend_is_well(
    home: Path, backend: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = backend.store

    async def fail(*_: object) -> MemoryItem:
        raise RuntimeError("out of order")

    monkeypatch.setattr(backend, "store", fail)
    async with Hone(home=home, settings=ODD, model=calling(KEEP), clock=ManualClock()) as hone:
        session = await hone.session()
        await session.send("keep it")
        assert texts(session)[0].startswith("Recorded. The backend will be told of 'editor' later:")
        monkeypatch.setattr(backend, "store", store)
        memo = await held(hone)
        assert memo is not None
        assert memo.value == VIM


async def test_the_same_text_again_is_no_change(home: Path) -> None:
    async with Hone(home=home, settings=SQLITE, model=calling(KEEP, KEEP)) as hone:
        session = await hone.session()
        await session.send("keep it")
        assert texts(session)[1] == "This is already under 'editor'; nothing was changed."
        assert len(await hone.ledger.entries()) == 1
        await hone.keeper.undo((await hone.ledger.entries())[0].id)
        with pytest.raises(Refused):
            await hone.keeper.undo((await hone.ledger.entries())[1].id)


@pytest.mark.parametrize("answer", ["undo", "reject"])
async def test_what_the_owner_took_back_is_not_stored_again_by_a_review(home: Path, answer: str) -> None:
    settings = replace(SQLITE, learning=Learning(review="ask")) if answer == "reject" else SQLITE
    async with Hone(home=home, settings=settings, model=Scripted(reviewing(KEEP))) as hone:
        await review(hone)
        [entry] = await hone.ledger.entries()
        await (hone.keeper.undo if answer == "undo" else hone.keeper.reject)(entry.id)
        job = await review(hone)
        said = await hone.sessions.load((await hone.jobs.job(job)).review)
        [result] = [message.result for message in said.transcript if message.result]
        assert (result.failed, "has taken this back (change 1)" in result.text) == (True, True)
        assert len(await hone.ledger.entries()) == 2
        assert await held(hone) is None


async def test_the_tool_gives_what_holds_after_an_undo_that_the_backend_has_not_heard_of(
    home: Path, backend: Odd
) -> None:
    emacs = call("memory_backend", action="store", key="editor", value="Now it is emacs.")
    asked = [
        call("memory_backend", action="retrieve", key="editor"),
        call("memory_backend", action="query", query="editor"),
    ]
    script = rules(
        ("keep", rounds(*map(assistant, (KEEP, emacs)), "Kept.")),
        otherwise=rounds(*map(assistant, asked), "Well."),
    )
    async with Hone(home=home, settings=ODD, model=Scripted(script)) as hone:
        await (await hone.session()).send("keep it")
        await hone.keeper.undo((await hone.ledger.entries())[0].id)
        session = await hone.session()
        await session.send("which one?")
        assert backend.memos["ann", "editor"].value == "Now it is emacs."
        assert [VIM in text and "emacs" not in text for text in texts(session)] == [True, True]
        assert session.transcript.trust is Trust.AGENT
