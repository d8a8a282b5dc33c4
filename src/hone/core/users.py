"""Users of a team's Hone: who may come in, what they may use, and what is written down about it.

A user is an owner of rows in a database. What is kept about users themselves is the operator's, and holds
nothing that they say.
"""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from hone.core.regex import regex
from hone.core.shared_values import SharedValues

NAME = regex(r"[a-z0-9][a-z0-9._-]{0,31}")
RESERVED = ("local", "team")
"""Owners that are no users: whose home the server runs in, and what a team shares."""
KEY_MARK = "hone-user-"
KEY = regex(rf"{KEY_MARK}[A-Za-z0-9_-]{{43}}")
"""How the key of a user looks: no API key of a server does."""


def is_name(text: str) -> bool:
    """Tell whether a user can have this name."""
    return bool(NAME.fullmatch(text)) and text not in RESERVED


class AuditEvent(StrEnum):
    """What is written down. The values are stored."""

    ADDED = "user added"
    DISABLED = "user disabled"
    ENABLED = "user enabled"
    ERASED = "user erased"
    LIMITS = "limits changed"
    KEY_MADE = "key made"
    KEY_REVOKED = "key revoked"
    SIGNED_IN = "signed in"
    KEY_REFUSED = "key refused"
    COOKIE_REFUSED = "cookie refused"
    TICKET_REFUSED = "link refused"
    PROXY_REFUSED = "proxy header refused"
    GUESSING = "guessing"
    LIMIT_REACHED = "limit reached"


class AuditNote(Struct, frozen=True):
    """`address` is where a request came from. `detail` is never something that a user said."""

    event: AuditEvent
    user: str = ""
    detail: str = ""
    address: str = ""


class Admission(Struct, frozen=True):
    """What the database says of somebody who wants to come in. `refusal` is why not, for the log alone;
    `wait` are the seconds after which the next request is answered, if there were too many."""

    user: str = ""
    key: str = ""
    kind: str = ""
    refusal: str = ""
    wait: float = 0.0


class UserLimits(Struct, frozen=True):
    """None: no limit."""

    requests_per_minute: int | None = None
    cost_per_day: float | None = None
    """US dollars, learning included."""
    storage_mb: int | None = None
    reviews: int | None = None
    """That wait to be done."""
    turns: int | None = None
    """Under way at a time in one server process."""


class UserUsage(Struct, frozen=True):
    """What a user has used: dollars since midnight (UTC), those for learning, bytes, and reviews that
    wait."""

    cost: float = 0.0
    learning: float = 0.0
    storage: int = 0
    reviews: int = 0


class UserDirectory(Protocol):
    """What a server asks about users. All methods wait for the database and raise StoreError."""

    def enter_by_key(self, digest: str, rate: int | None) -> Admission:
        """Find who has a key, and count the request. `rate` is for users without their own."""
        ...

    def enter_as(self, user: str, digest: str, rate: int | None) -> Admission:
        """Let in whom a cookie, a link or a proxy names, and count the request. `digest` is the key that the
        cookie came by, if any."""
        ...

    def is_current(self, user: str, digest: str) -> bool:
        """Tell whether a user who was let in may still be here."""
        ...

    def note(self, note: AuditNote) -> None:
        """Write down what happened. What is alike within a minute becomes one row with a count."""
        ...

    def refuse(self, note: AuditNote) -> int:
        """Write down that somebody was not let in. Return how often that was in this minute, by address."""
        ...

    def limits(self, user: str) -> UserLimits: ...

    def usage(self, user: str, *, storage: bool) -> UserUsage:
        """Return what counts toward the limits. To measure the storage takes longer."""
        ...

    def values(self, user: str) -> SharedValues:
        """Return the small documents of a user: links and sign-ins."""
        ...

    def prune(self, days: int) -> None:
        """Forget audit rows that are older."""
        ...
