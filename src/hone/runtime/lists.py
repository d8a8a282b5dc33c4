"""A short list of the owner's in a file of its own: whole or not at all, and for the owner only."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from hone.core.errors import StoreError
from hone.files.atomic import draft


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
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with draft(self.path.parent, 0o600) as (file, path):
                file.write(json.dumps(sorted(items), indent=1, ensure_ascii=False).encode())
                file.flush()
                os.fsync(file.fileno())
                path.replace(self.path)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}.") from error
