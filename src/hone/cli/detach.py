"""Leave a background process that looks back over the conversations that were just left."""

import os
import subprocess
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from hone.app import Hone
from hone.core.errors import HoneError
from hone.learning.budget import spent
from hone.learning.lookback import Schedule
from hone.runtime.claims import find_worker
from hone.settings import Settings

NO = ("", "0", "false", "no", "off")
"""Values that count as unset."""


class After(StrEnum):
    """Who looks back over the conversations that were just left."""

    BACKGROUND = "background"
    QUEUED = "queued"
    NONE = "none"
    """Nobody: nothing is due."""
    QUIET = "quiet"
    """Nobody, but a background process does other work, such as vectors for search."""


SAID: Mapping[After, str] = {
    After.BACKGROUND: "Reviewing this conversation in the background. To watch it: hone worker status",
    After.QUEUED: "The next chat reviews this conversation. To review it now: hone worker --once",
}


def is_detached(settings: Settings, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether a background process is allowed. On build servers it is not."""
    waits = environ.get("CI", "").lower() not in NO or environ.get("HONE_LEARNING") == Schedule.QUEUE
    return settings.learning.after_exit == "detach" and not waits


async def leave(hone: Hone) -> After:
    """Return who looks back over the conversations of this process, which are left now."""
    after = await _look_back(hone)
    if after is After.NONE and is_detached(hone.settings) and await has_work(hone):
        return After.QUIET
    return after


async def has_work(hone: Hone) -> bool:
    """Tell whether a part has something left to do."""
    return any([await part.has_work() for part in hone.parts("has_work")])


async def _look_back(hone: Hone) -> After:
    if hone.learning_off:
        return After.NONE
    try:
        await hone.lookback.leave()
        due, now = await hone.background.next_look(), hone.clock.now()
        if (due is None or due > now) and not await hone.lookback.is_awaited():
            return After.NONE
        over_budget = await spent(hone.sessions, hone.bounds, now)
    except HoneError:
        return After.NONE  # the next process handles what cannot be read now
    return After.BACKGROUND if is_detached(hone.settings) and not over_budget else After.QUEUED


def spawn(home: Path, after: After) -> After:
    """Start the background work, unless it runs already. The process inherits only the environment: no
    terminal, no descriptor, no folder."""
    if after not in (After.BACKGROUND, After.QUIET) or find_worker(home) is not None:
        return after
    command = [sys.executable, "-P", "-m", "hone", "--home", str(home.absolute()), "worker", "--behind"]
    try:
        process = subprocess.Popen(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return After.QUEUED if after is After.BACKGROUND else After.NONE
    process.returncode = 0  # it outlives us: nobody waits for it
    return after
