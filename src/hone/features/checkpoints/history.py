"""Find the turns of a conversation that changed files, and rewind them with or without the conversation."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from hone.core.errors import Missing, Refused
from hone.core.ids import SessionId
from hone.core.ports import Sessions, StoredSession
from hone.core.transcript import Node
from hone.core.turn import Origin
from hone.features.checkpoints.decisions import anchor_of, find_turns
from hone.features.checkpoints.rewinding import Rewinder
from hone.features.checkpoints.store import CheckpointStore
from hone.features.checkpoints.values import FileChange, RewindPlan, TurnChanges
from hone.runtime.continuing import branch


class FileHistory:
    """What tools did to files, by conversation and turn."""

    def __init__(self, home: Path, store: CheckpointStore, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions
        self._rewinder = Rewinder(store, home)

    async def turns(self, session: SessionId) -> list[TurnChanges]:
        """Return the turns that changed files, oldest first, those before a branch included."""
        with suppress(Refused):  # another process is rewinding right now, and will resolve this
            await self._rewinder.settle()
        stored = await self._sessions.load(session)
        spoken = await self._spoken(stored)
        found = [*await self._store.changes(session)]
        for ancestor in (await self._lineage(stored))[1:]:
            shared = await self._store.changes(ancestor)
            found += [change for change in shared if change.anchor in spoken]
        found = await self._rewinder.complete(sorted(found, key=lambda change: change.id))
        return _group(found, {anchor: node.message.text for anchor, node in spoken.items()})

    async def plan(self, session: SessionId, turn: int) -> RewindPlan:
        """Return what a rewind to the state before this turn would do. Raises Refused if it is no turn."""
        if turn < 1:
            raise Refused(f"{turn} is not a turn. The first turn is 1.")
        changes = [
            change for each in await self.turns(session) if each.number >= turn for change in each.changes
        ]
        return await self._rewinder.plan(session, turn, sorted(changes, key=lambda change: change.id))

    async def plan_redo(self, session: SessionId) -> RewindPlan:
        """Return what undoing the last rewind would do. Raises Refused if there is none."""
        with suppress(Refused):
            await self._rewinder.settle()
        return await self._rewinder.plan_redo(await self._lineage(await self._sessions.load(session)))

    async def apply(self, plan: RewindPlan) -> RewindPlan:
        """Execute a plan; return what was done."""
        return await self._rewinder.apply(plan)

    async def message_of(self, session: SessionId, turn: int) -> tuple[int, Node]:
        """Return how many messages precede a turn, and the user's message that began it. Raises Refused if it
        is no longer part of the conversation."""
        stored = await self._sessions.load(session)
        anchors = {each.number: each.anchor for each in await self.turns(session)}
        nodes = find_turns(stored.transcript)
        wanted = anchors.get(turn)
        for number, node in enumerate(nodes, 1):
            if anchor_of(node) == wanted or (wanted is None and number == turn):
                return stored.transcript.nodes.index(node), node
        raise Refused(
            f"Turn {turn} is not in this conversation, or notes have taken its place. "
            "Rewind the files alone: leave the conversation out."
        )

    async def numbers(self, session: SessionId) -> dict[str, int]:
        """Return the numbers of the messages by anchor."""
        nodes = (await self._sessions.load(session)).transcript.nodes
        return {anchor_of(node): number for number, node in enumerate(nodes, 1)}

    async def branch(self, session: SessionId, turn: int, now: datetime) -> SessionId | None:
        """Start a conversation with everything before a turn. Return None if that is nothing."""
        before, _ = await self.message_of(session, turn)
        return await branch(self._sessions, session, before, now) if before else None

    async def _lineage(self, stored: StoredSession) -> list[SessionId]:
        """Return the session and those it branched from, nearest first."""
        found, header = [stored.header.id], stored.header
        while header.origin is Origin.USER and header.parent and header.parent not in found:
            found.append(header.parent)
            try:
                header = (await self._sessions.load(header.parent)).header
            except Missing:
                break
        return found

    async def _spoken(self, stored: StoredSession) -> dict[str, Node]:
        """Return the user's messages by anchor, including those that notes have replaced."""
        lines: Sequence[StoredSession] = [*await self._sessions.earlier(stored.header.id), stored]
        return {anchor_of(node): node for line in lines for node in find_turns(line.transcript)}


def _group(changes: Sequence[FileChange], words: dict[str, str]) -> list[TurnChanges]:
    turns: dict[tuple[int, SessionId, str], list[FileChange]] = defaultdict(list)
    for change in changes:
        turns[change.turn, change.session, change.anchor].append(change)
    return [
        TurnChanges(number, session, anchor, found[0].at, tuple(found), words.get(anchor, ""))
        for (number, session, anchor), found in sorted(turns.items())
    ]
