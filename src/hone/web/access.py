"""State that the servers on one database share: whoever may sign in at one may sign in at all.

Each home keeps its key in serve.key. The database has a digest of every home's key, and one secret that seals
the cookies of all servers.
"""

import hmac
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from hone.core.clock import Clock, SystemClock
from hone.core.loading import import_object
from hone.core.shared_values import SharedValues
from hone.files.atomic import open_file
from hone.web import api_keys
from hone.web.api_keys import ApiKeys, KeyFile, digest
from hone.web.logins import Logins
from hone.web.shared_file import LARGEST, share

SECRET, HOMES = "serve-secret", "serve-homes.json"
VALUES = "hone.stores.postgres.shared_values:open_values"
NAME_HOME = "hone.stores.postgres.home:name_checkout"
OWNER = "hone.stores.postgres.home:LOCAL"


class _Homes(Struct, frozen=True):
    """The digest of each home's own key."""

    keys: dict[str, str] = {}


class SharedAccess:
    """Read when a server starts; the keys of homes are looked up with each request."""

    def __init__(self, values: SharedValues) -> None:
        self.values = values
        self.seal = values.change(SECRET, lambda made: made or secrets.token_hex(32).encode()).decode()
        self.cookie_name = f"hone-{digest(f'cookie {self.seal}')[:12]}"
        self._homes = share(values, HOMES, _Homes())

    def join(self, home: Path, key: str, clock: Clock) -> None:
        """Make the key of a home valid at every server. If it replaces another one, every cookie ends, as in
        a home with its own database."""
        name, tag, before = str(import_object(NAME_HOME)(home)), digest(key), ""

        def put(known: _Homes) -> _Homes:
            nonlocal before
            before = known.keys.get(name, "")
            return _Homes({**known.keys, name: tag})

        if self._homes.read().keys.get(name) != tag:
            self._homes.change(put)
            if before:
                Logins(clock, self.values).clear()

    def is_owners(self, word: str) -> bool:
        """Tell whether this is the key of one of the homes."""
        wanted, found = digest(word), False
        for tag in self._homes.read().keys.values():
            found = hmac.compare_digest(wanted, tag) or found
        return found


def open_place(home: Path, database: str) -> Path | SharedValues:
    """Return where sign-ins and API keys are kept, for commands. Raises StoreError."""
    if not database:
        return home
    values: SharedValues = import_object(VALUES)(database, import_object(OWNER))
    adopt_keys(home, values)
    return values


def adopt_keys(home: Path, values: SharedValues) -> None:
    """Move API keys that a home stored in a file before it had a remote database. The file is deleted: a key
    that is removed later must not come back."""
    path = home / api_keys.FILE
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        with open_file(path) as file:
            mine = msgspec.json.decode(file.read(LARGEST), type=KeyFile).keys
        ApiKeys(values, SystemClock()).adopt(mine)
        path.unlink()
