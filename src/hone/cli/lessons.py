"""Run reviews beside a chat. Show their results above the prompt, and finish them when the chat ends."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from hone.app import Hone
from hone.cli.changes import failed_line, learned_lines
from hone.cli.context import Interrupts
from hone.cli.output import columns, wrap_words
from hone.core.clock import Clock, SystemClock
from hone.core.errors import HoneError
from hone.core.events import Curated, Event, Learned, ReviewFailed
from hone.core.jobs import Job
from hone.core.ledger import ChangeState
from hone.core.visible import visible
from hone.knowledge.wording import CHAT, SHELL

STILL = "Still learning from this conversation; Ctrl-C leaves it for later."
LATER = "It is left for later: the next conversation does it, or hone worker."
MOST = 60.0
"""Seconds that somebody who wants to leave is kept."""
GLANCE = 0.05
"""Seconds between two looks at what is at work."""


class Lessons:
    """`show` puts lines above the prompt, and says whether it could; what it could not, `untold` has. `say`
    is for when there is no prompt any more."""

    def __init__(
        self,
        hone: Hone,
        show: Callable[[str], bool],
        say: Callable[[str], object] = print,
        clock: Clock | None = None,
    ) -> None:
        self._hone = hone
        self._show = show
        self._say = say
        self._clock = clock or SystemClock()
        self._way, self._left = CHAT, False
        self._untold: list[str] = []
        self._telling: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._failures: set[str] = set()

    def begin(self) -> None:
        """From now on, reviews are done, those that earlier processes left included."""
        self._hone.background.attend(self._hear)

    def untold(self) -> list[str]:
        found, self._untold = self._untold, []
        return found

    def waiting(self) -> int:
        """How many changes waited for the owner when that was last told here; once."""
        told, self._waiting = self._waiting, 0
        return told

    async def finish(self, interrupts: Interrupts) -> None:
        """Does what is still to be done, unless it takes too long or Ctrl-C is pressed."""
        self._way, self._left = SHELL, True
        work = asyncio.ensure_future(self._rest())
        with interrupts.heed(work.cancel):
            await asyncio.wait([work])
        if work.cancelled() or not work.result():
            self._say(f"\n{LATER}" if work.cancelled() else LATER)

    async def _rest(self) -> bool:
        """False if something is left because it takes too long."""
        draining = asyncio.ensure_future(self._hone.background.drain())
        try:
            async with self._clock.timeout(MOST):
                await self._watch(draining)
                await asyncio.gather(*self._telling)
        except TimeoutError:
            return False
        except HoneError as error:
            self._say(visible(str(error)))
        finally:
            draining.cancel()
            await asyncio.wait([draining])
        return True

    async def _watch(self, draining: asyncio.Future[None]) -> None:
        """Whoever has to wait is told why."""
        said = False
        while not draining.done():
            await asyncio.wait([draining], timeout=GLANCE)
            if self._hone.background.working is not None and not said:
                self._say(STILL)
                said = True
        draining.result()

    def _hear(self, event: Event) -> None:
        if isinstance(event, Learned | Curated):
            task = asyncio.ensure_future(self._tell(event))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
        elif isinstance(event, ReviewFailed):
            self._tell_failure(event.job)

    async def _tell(self, learned: Learned | Curated) -> None:
        """A line that cannot be made is in `hone log` all the same."""
        with suppress(HoneError):
            show = self._hone.settings.learning.show
            text = "\n".join(await learned_lines(self._hone.keeper, learned, show, self._way, columns()))
            if text and any(each.change.standing is ChangeState.PENDING for each in learned.entries):
                self._waiting = len(await self._hone.ledger.pending())
            self._put(text)

    def _tell_failure(self, job: Job) -> None:
        """Say why once, however many reviews fail for the same reason."""
        if self._hone.settings.learning.show != "off" and job.error not in self._failures:
            self._failures.add(job.error)
            self._put("\n".join(wrap_words(failed_line(job, self._way))))

    def _put(self, text: str) -> None:
        if text and self._left:
            self._say(text)
        elif text and not self._show(text):
            self._untold.append(text)
