"""Run reviews beside a chat, and show their results above the prompt."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from hone.app import Hone
from hone.cli.changes import failed_line, learned_lines
from hone.cli.output import columns, wrap_words
from hone.core.errors import HoneError
from hone.core.events import Curated, Event, Learned, ReviewFailed
from hone.core.jobs import Job
from hone.core.ledger import ChangeState
from hone.knowledge.wording import CHAT, SHELL

GRACE = 3.0
"""Seconds that a leaving user is kept for a running review."""


class Lessons:
    """`show` prints lines above the prompt, and tells whether it could; `untold` holds the others. `say` is
    for when there is no prompt any more."""

    def __init__(self, hone: Hone, show: Callable[[str], bool], say: Callable[[str], object] = print) -> None:
        self._hone = hone
        self._show = show
        self._say = say
        self._way, self._left = CHAT, False
        self._untold: list[str] = []
        self._telling: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._failures: set[str] = set()

    def begin(self) -> None:
        """Do reviews from now on, including those that earlier processes left."""
        self._hone.background.attend(self._hear)

    def untold(self) -> list[str]:
        found, self._untold = self._untold, []
        return found

    def waiting(self) -> int:
        """Return how many changes waited for the owner when that was last reported here; once."""
        told, self._waiting = self._waiting, 0
        return told

    async def finish(self) -> None:
        """Report what a review that is about to end learned. Others are left to the next process."""
        self._way, self._left = SHELL, True
        await self._hone.background.finish_current(GRACE)
        await asyncio.gather(*self._telling)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Learned | Curated):
            task = asyncio.ensure_future(self._tell(event))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
        elif isinstance(event, ReviewFailed):
            self._tell_failure(event.job)

    async def _tell(self, learned: Learned | Curated) -> None:
        """Report lessons. A line that cannot be made is still in `hone log`."""
        with suppress(HoneError):
            show = self._hone.settings.learning.show
            text = "\n".join(await learned_lines(self._hone.keeper, learned, show, self._way, columns()))
            if text and any(each.change.standing is ChangeState.PENDING for each in learned.entries):
                self._waiting = len(await self._hone.ledger.pending())
            self._put(text)

    def _tell_failure(self, job: Job) -> None:
        """Report a failure once, however many reviews fail for the same reason."""
        if self._hone.settings.learning.show != "off" and job.error not in self._failures:
            self._failures.add(job.error)
            self._put("\n".join(wrap_words(failed_line(job, self._way))))

    def _put(self, text: str) -> None:
        if text and self._left:
            self._say(text)
        elif text and not self._show(text):
            self._untold.append(text)
