"""Changes to send to a memory backend. Each active change waits here, by its id, until it is delivered."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from hone.core.ledger import ChangeId


class OutboxItem(Struct, frozen=True):
    """A change that waits to be told, and how often that was tried."""

    change: ChangeId
    tries: int = 0


class OutboxStatus(Struct, frozen=True):
    """How many wait, how many the backend will never take, and the last error."""

    waiting: int = 0
    refused: int = 0
    error: str = ""


class Outbox(Protocol):
    """Durable once a method has returned. A letter is there from the same transaction on as its change."""

    async def home(self) -> str:
        """By what this home is known to whoever keeps copies for several."""
        ...

    async def address(self, backend: str) -> None:
        """Where letters go from now on. If that is another place than before, it has heard of nothing yet:
        then every change waits again."""
        ...

    async def letters(self, limit: int = 100) -> Sequence[OutboxItem]:
        """Those that wait, oldest first."""
        ...

    async def delivered(self, change: ChangeId) -> None:
        """Nothing if it does not wait any more."""
        ...

    async def failed(self, change: ChangeId, error: str, *, final: bool = False) -> None:
        """One more try was in vain. `final`: it will not be tried again."""
        ...

    async def post(self) -> OutboxStatus: ...
