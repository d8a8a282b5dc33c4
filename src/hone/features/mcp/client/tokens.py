"""Store the tokens of a sign-in to a server: in a file of the home that only its owner can read, and no tool
sees."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hone.core.errors import StoreError
from hone.files.atomic import locked, open_file, write

FILE, LOCK = "mcp-tokens.json", "mcp-tokens.lock"


class Challenge(Struct, frozen=True):
    """A server's refusal of an unknown client: the status, and what it said about signing in."""

    status: int
    said: str = ""


class TokenFile:
    """Tokens by the key of their server. Only the official SDK knows their content."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def get(self, key: str) -> Mapping[str, Any]:
        """Return what is stored for a server; nothing if there is none, or if it cannot be read."""
        return self._read().get(key, {})

    def get_header(self, key: str) -> str:
        """Return the value for Authorization; empty if nobody signed in."""
        tokens = self.get(key).get("tokens")
        access = tokens.get("access_token") if isinstance(tokens, dict) else None
        return f"Bearer {access}" if isinstance(access, str) else ""

    def put(self, key: str, name: str, value: Mapping[str, Any]) -> None:
        """Store one part. Raises StoreError."""
        with locked(self._home, LOCK):
            known = self._read()
            self._write({**known, key: {**known.get(key, {}), name: value}})

    def remove(self, key: str) -> None:
        if key in self._read():
            with locked(self._home, LOCK):
                self._write({name: each for name, each in self._read().items() if name != key})

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            with open_file(self._home / FILE) as file:
                return msgspec.json.decode(file.read(), type=dict[str, dict[str, Any]])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def _write(self, entries: Mapping[str, Any]) -> None:
        try:
            write(self._home / FILE, msgspec.json.encode(entries))
        except OSError as error:
            raise StoreError(f"The sign-in cannot be stored: {error.strerror}.") from error
