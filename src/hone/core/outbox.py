"""Changes to send to a memory backend. Each active change waits here, by its id, until it is delivered."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from hone.core.ledger import ChangeId


class OutboxItem(Struct, frozen=True):
    """A change that is not sent yet, and the number of tries."""

    change: ChangeId
    tries: int = 0


class OutboxStatus(Struct, frozen=True):
    """The number of waiting changes, the number that the backend refused for good, and the last error."""

    waiting: int = 0
    refused: int = 0
    error: str = ""


class Outbox(Protocol):
    """Writes are durable when a method returns. A letter is stored in the same transaction as its change."""

    async def home(self) -> str:
        """Return the name by which a service that keeps copies of several homes knows this one."""
        ...

    async def address(self, backend: str) -> None:
        """Send letters to this backend from now on. If it is a new one, it has heard of nothing yet, so every
        change waits again."""
        ...

    async def letters(self, limit: int = 100) -> Sequence[OutboxItem]:
        """Return waiting letters, oldest first."""
        ...

    async def delivered(self, change: ChangeId) -> None:
        """Mark a letter as delivered. Do nothing if it does not wait any more."""
        ...

    async def failed(self, change: ChangeId, error: str, *, final: bool = False) -> None:
        """Count a failed try. `final`: do not try again."""
        ...

    async def post(self) -> OutboxStatus: ...
