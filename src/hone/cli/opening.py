"""From options to a session, and a turn in it that Ctrl-C stops."""

import asyncio

from hone.app import Hone
from hone.cli.interrupt import Interrupts
from hone.cli.main import Options
from hone.core.errors import Missing
from hone.core.events import Emit, TurnEnded
from hone.core.trust import Trust
from hone.core.turn import Stop, Turn
from hone.runtime.session import Session


async def open_session(hone: Hone, options: Options) -> Session:
    if options.resume:
        return await hone.resume(options.resume, options.model)
    if not options.last:
        return await hone.session(options.model, options.template)
    latest = await hone.sessions.list(limit=1, own=True)
    if not latest:
        raise Missing("There is no session of yours to go on with yet.")
    return await hone.resume(latest[0].header.id, options.model)


def news(hone: Hone) -> list[str]:
    """What Hone has to say besides the conversation, each sentence once."""
    sentences, hone.notices[:] = list(hone.notices), []
    return sentences


async def count_waiting(hone: Hone) -> int:
    """How many changes wait for the owner's answer."""
    return len(await hone.ledger.pending())


def waiting(count: int, command: str) -> str:
    """One line about what waits, and how to see it."""
    return f"{count:,} lessons wait for you: {command}" if count > 1 else f"1 lesson waits for you: {command}"


async def take_turn(
    session: Session,
    message: str,
    emit: Emit,
    interrupts: Interrupts,
    *,
    voice: Trust | None = None,
    aside: str = "",
) -> Turn:
    """Ctrl-C ends the turn in order. Pressed again, it does not wait for that order."""
    sending = asyncio.ensure_future(session.send(message, emit, voice=voice, aside=aside))
    try:
        with interrupts.heed(session.cancel, sending.cancel):
            return await sending
    except asyncio.CancelledError:
        if not sending.cancelled():
            raise
        turn = Turn(session.header.origin).ended(Stop.INTERRUPTED, "interrupted")
        emit(TurnEnded(turn))
        return turn
