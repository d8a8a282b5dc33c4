"""Hold a conversation exclusively for a turn, among all processes that share its store.

A turn costs money and ends with an append. Two at once would both pay, and one of them would get a conflict.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar

from hone.core.claims import Claims, claim_of
from hone.core.errors import Occupied
from hone.core.ids import SessionId
from hone.core.model import Model, Piece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript

BUSY = "Another process answers in this conversation. Wait until its turn has ended, or interrupt it."
LOST = "The connection to the database was lost, and another process answers in this conversation by now."


Held = tuple[Callable[[], Claims], str]
_inside: ContextVar[frozenset[Held]] = ContextVar("inside", default=frozenset())
"""The claims held by the current task, or by the one that started it."""


class ConversationClaim:
    """The claim on one conversation. A turn holds it, and so does anything that replaces its line of
    messages."""

    def __init__(self, open_claims: Callable[[], Claims], session: SessionId) -> None:
        self._open = open_claims
        self._name = claim_of(session)

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[None, None]:
        """Hold the claim. Inside another `hold` of the same conversation, do nothing. Raises Occupied."""
        if (self._open, self._name) in _inside.get():
            yield
            return
        async with self._open().hold(self._name) as taken:
            if not taken:
                raise Occupied(BUSY)
            before = _inside.set(_inside.get() | {(self._open, self._name)})
            try:
                yield
            finally:
                _inside.reset(before)

    async def confirm(self) -> None:
        """Raise Occupied if the claim was lost and another process has it."""
        held = (self._open, self._name) in _inside.get()
        if held and not await self._open().confirm(self._name):
            raise Occupied(LOST)

    def guard(self, model: Model) -> Model:
        return ClaimedModel(model, self)


class ClaimedModel:
    """Calls no model for a conversation that another process has taken: the answer could not be stored."""

    def __init__(self, model: Model, claim: ConversationClaim) -> None:
        self._model = model
        self._claim = claim

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        await self._claim.confirm()
        async with aclosing(self._model.stream(prefix, transcript)) as pieces:
            async for piece in pieces:
                yield piece
