"""Store a conversation that another agent hands over, such as an MCP client."""

import asyncio
import io
from collections.abc import Sequence
from datetime import datetime

from hone.app import Hone
from hone.core.errors import Conflict, Refused
from hone.core.ports import Sessions, StoredSession
from hone.features.imports.conversation import ImportReport
from hone.features.imports.plan import TRIES, ImportState, carry, fitted
from hone.features.imports.sources import LINES, rows

MOST = 20
"""The most conversations in one call."""


async def hand_over(hone: Hone, lines: bytes, form: str, label: str) -> Sequence[StoredSession]:
    """Store conversations as foreign text, under a label of their own. See Part.import_transcript."""
    found = await asyncio.to_thread(_read, lines, form, label, hone.clock.now())
    if not found:
        raise Refused("There is no conversation in it that can be read.")
    for each in found:
        await _store(hone.sessions, each)
    return [await hone.sessions.load(each.header.id) for each in found]


async def _store(store: Sessions, found: StoredSession) -> None:
    for _ in range(TRIES):
        try:
            state = await carry(store, found)
        except Conflict:
            continue  # another process hands over the same right now
        if state is ImportState.OTHER:
            break
        return
    raise Refused(f"The conversation {found.header.id} is here already and went on in another way.")


def _read(lines: bytes, form: str, label: str, now: datetime) -> list[StoredSession]:
    if form not in LINES:
        raise Refused(f"{form!r} is not a format that can be read; choose {', '.join(LINES)}.")
    report, found = ImportReport(), list[StoredSession]()
    read, *_ = LINES[form]
    for conversation in read(rows(io.BytesIO(lines), label, report), label, report):
        each = fitted(label, conversation, report, now, foreign=True)
        if each is not None:
            found.append(each)
        if len(found) > MOST:
            raise Refused(f"Hand over at most {MOST} conversations at once.")
    return found
