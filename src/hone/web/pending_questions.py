"""Questions to the owner: show each to the watching clients, and withdraw it once it is answered."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from hone.core.clock import Clock
from hone.core.errors import Missing, StoreError
from hone.core.permissions import Answer, Question
from hone.core.switchboard import Switchboard
from hone.web.bus import Bus

PATIENCE = 600.0
"""Seconds without an answer before nobody counts as present."""

watched: ContextVar[str] = ContextVar("watched", default="")
"""The session whose turn this is, if somebody who can answer is watching."""


class PendingQuestions:
    """The questions of this server's turns. Any server on its store can answer them; `board` connects the
    servers."""

    def __init__(self, bus: Bus, clock: Clock, board: Callable[[], Switchboard]) -> None:
        self._bus = bus
        self._clock = clock
        self._find_board = board
        self._open: dict[tuple[str, str], asyncio.Future[Answer]] = {}

    @property
    def _board(self) -> Switchboard:
        return self._find_board()

    async def ask(self, question: Question) -> Answer:
        session = watched.get()
        if not session:
            return Answer.NOBODY
        id = os.urandom(6).hex()
        future = self._open[session, id] = asyncio.get_running_loop().create_future()
        answer = Answer.NOBODY
        try:
            await self._board.ask(session, id)
            self._bus.publish(session, "question", {"id": id, **_shown(question)})
            with suppress(TimeoutError):
                async with self._clock.timeout(PATIENCE):
                    answer = await future
        except StoreError:
            return Answer.NOBODY  # nobody could answer
        finally:
            del self._open[session, id]
            said = "no" if answer == Answer.NOBODY else answer.choice
            self._bus.publish(session, "answer", {"id": id, "answer": said})
            with suppress(StoreError):
                await self._board.withdraw(session, id)
        return answer

    async def answer(self, session: str, id: str, answer: Answer) -> None:
        """Answer a question. Raises Missing if nobody waits for it."""
        if not await self._board.answer(session, id, answer):
            raise Missing("Nobody waits for an answer to this question any more.")
        self.hear([(session, id, answer)])

    def hear(self, answers: Sequence[tuple[str, str, Answer]]) -> None:
        """Accept answers from any server. Each one counts once."""
        for session, id, answer in answers:
            future = self._open.get((session, id))
            if future and not future.done():
                future.set_result(answer)

    async def renew(self) -> None:
        """Announce again which questions wait."""
        for session, id in list(self._open):
            await self._board.ask(session, id)


def _shown(question: Question) -> dict[str, Any]:
    return {
        "text": question.text,
        "detail": question.detail,
        "pattern": question.pattern,
        "choices": question.choices,
    }
