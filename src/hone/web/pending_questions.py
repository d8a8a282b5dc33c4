"""Questions to the owner: show each one to the watching clients, and withdraw it once it is answered."""

import asyncio
import os
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from hone.core.clock import Clock
from hone.core.errors import Missing
from hone.core.permissions import Answer, Question
from hone.web.bus import Bus

PATIENCE = 600.0
"""Seconds before no answer means that nobody is there."""

watched: ContextVar[str] = ContextVar("watched", default="")
"""The session whose turn this is, if somebody watches it who can answer."""


class PendingQuestions:
    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._open: dict[tuple[str, str], asyncio.Future[Answer]] = {}

    async def ask(self, question: Question) -> Answer:
        session = watched.get()
        if not session:
            return Answer.NOBODY
        id = os.urandom(6).hex()
        future = self._open[session, id] = asyncio.get_running_loop().create_future()
        self._bus.publish(session, "question", {"id": id, **_shown(question)})
        answer = Answer.NOBODY
        try:
            with suppress(TimeoutError):
                async with self._clock.timeout(PATIENCE):
                    answer = await future
        finally:
            del self._open[session, id]
            said = "no" if answer == Answer.NOBODY else answer.choice
            self._bus.publish(session, "answer", {"id": id, "answer": said})
        return answer

    def answer(self, session: str, id: str, answer: Answer) -> None:
        """Raises Missing if nobody waits for it."""
        future = self._open.get((session, id))
        if future is None or future.done():
            raise Missing("Nobody waits for an answer to this question any more.")
        future.set_result(answer)


def _shown(question: Question) -> dict[str, Any]:
    return {
        "text": question.text,
        "detail": question.detail,
        "pattern": question.pattern,
        "choices": question.choices,
    }
