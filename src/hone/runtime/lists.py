"""A short list of the owner's in a file of its own: whole or not at all, and for the owner only."""

import json
from collections.abc import Iterable
from pathlib import Path

from hone.core.errors import StoreError
from hone.files.atomic import write


class OwnersList:
    """What cannot be read was never written down: a list only ever allows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def items(self) -> list[str]:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []

    def add(self, item: str) -> None:
        self._write({*self.items(), item})

    def remove(self, item: str) -> None:
        self._write({*self.items()} - {item})

    def _write(self, items: Iterable[str]) -> None:
        try:
            write(self.path, json.dumps(sorted(items), indent=1, ensure_ascii=False).encode())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}.") from error
