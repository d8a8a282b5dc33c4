"""Record which files of which skill were checked, when and with what result.

The records only save work and tell the time: without them, the checks run again.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.errors import StoreError
from hone.files.atomic import locked, write

FILE, LOCK = "checks.json", "checks.lock"


class CheckRecord(Struct, frozen=True):
    """`overridden`: they failed, and the owner uses the skill anyway. `unrun`: why they could not be run."""

    digest: str
    at: datetime
    passed: bool
    count: int = 0
    overridden: bool = False
    unrun: str = ""
    summary: str = ""


class CheckRecords:
    def __init__(self, home: Path) -> None:
        self._home = home

    def all(self) -> Mapping[str, CheckRecord]:
        """Return all records. An unreadable one counts as missing."""
        try:
            data = (self._home / FILE).read_bytes()
            return msgspec.json.decode(data, type=dict[str, CheckRecord])
        except (OSError, msgspec.DecodeError):
            return {}

    def get(self, name: str) -> CheckRecord | None:
        return self.all().get(name)

    def save(self, name: str, record: CheckRecord) -> None:
        """Save the records. Raises StoreError."""
        try:
            with locked(self._home, LOCK):
                known = {**self.all(), name: record}
                write(self._home / FILE, msgspec.json.format(msgspec.json.encode(known)), durable=False)
        except OSError as error:
            raise StoreError(f"{self._home / FILE} cannot be written: {error.strerror}.") from error
