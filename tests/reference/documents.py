"""Documents in a dictionary, to compare the others with."""

from datetime import UTC, datetime

from hone.core.documents import NEW, DocumentKind
from hone.core.errors import Conflict
from hone.core.messages import digest


class InMemoryDocuments:
    shared = False

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], tuple[bytes, datetime]] = {}

    def read(self, kind: DocumentKind, name: str) -> bytes | None:
        found = self._held.get((kind.name, name))
        return found[0] if found else None

    def names(self, kind: DocumentKind) -> list[str]:
        return sorted(name for of, name in self._held if of == kind.name)

    def write(self, kind: DocumentKind, name: str, data: bytes, over: str | None = None) -> None:
        before = self.read(kind, name)
        if over is not None and over != (NEW if before is None else digest(before)):
            raise Conflict(f"{name} was changed meanwhile; nothing was written.")
        self._held[kind.name, name] = (data, datetime.now(UTC))

    def delete(self, kind: DocumentKind, name: str) -> bool:
        return self._held.pop((kind.name, name), None) is not None

    def expire(self, kind: DocumentKind, before: datetime) -> int:
        old = [key for key, (_, at) in self._held.items() if key[0] == kind.name and at < before]
        return sum(self._held.pop(key) is not None for key in old)

    def describe(self, kind: DocumentKind, name: str) -> str:
        return f"{kind.name}/{name}"
