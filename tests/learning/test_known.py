"""E5: what the question of a review says about lessons that the owner took back."""

from collections.abc import Sequence
from pathlib import Path

from hone import Hone
from hone.core.ledger import USER
from hone.core.messages import Message, assistant
from hone.core.topics import NAMES
from hone.models.scripted import Scripted, call, rounds, rules
from hone.runtime.session import Session

SAID = "Always answer in one sentence."
LESSON = call("memory", action="add", target="user", text=SAID, evidence=["#1"])


async def test_a_review_is_told_what_the_owner_took_back_and_what_it_saves_again_is_refused(
    home: Path,
) -> None:
    asked: list[str] = []

    def answer(messages: Sequence[Message]) -> Message:
        asked.append(messages[-1].text)
        return assistant("Nothing.") if messages[-1].result else assistant(LESSON)

    async def review(hone: Hone, session: Session) -> None:
        job = await hone.jobs.enqueue(
            session.id, len(session.transcript), NAMES, "asked", session.header.created
        )
        await hone.reviewer.work(job.id, lambda _: None)

    script = rules(("look back over", answer), otherwise=rounds("I will."))
    async with Hone(home=home, model=Scripted(script)) as hone:
        session = await hone.session()
        await session.send(SAID)
        await review(hone, session)
        [entry] = await hone.ledger.entries()
        assert "took these back" not in asked[0]
        await hone.keeper.undo(entry.id)
        await review(hone, session)
        told = next(text for text in asked[1:] if "took these back" in text)
        assert SAID in told.partition("took these back")[2]
        assert SAID not in await hone.keeper.text(USER)
