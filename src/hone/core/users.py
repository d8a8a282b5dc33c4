"""Users of a team's Hone: who may sign in, what they may use, and the audit log.

A user is an owner of rows in a database. What is stored about users themselves is the operator's, and holds
nothing that they say.
"""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from hone.core.regex import regex
from hone.core.shared_values import SharedValues

NAME = regex(r"[a-z0-9][a-z0-9._-]{0,31}")
RESERVED = ("local", "team")
"""Owners that are not users: the owner of the server's home, and what a team shares."""
KEY_MARK = "hone-user-"
KEY = regex(rf"{KEY_MARK}[A-Za-z0-9_-]{{43}}")
"""The form of a user's key. No API key of a server looks like this."""


def is_name(text: str) -> bool:
    """Tell whether a user can have this name."""
    return bool(NAME.fullmatch(text)) and text not in RESERVED


class AuditEvent(StrEnum):
    """What the audit log records. The values are stored."""

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
    """`address` is where a request came from. `detail` never holds something that a user said."""

    event: AuditEvent
    user: str = ""
    detail: str = ""
    address: str = ""


class Admission(Struct, frozen=True):
    """The database's decision about somebody who wants to sign in. `refusal` is the reason, for the log only;
    `wait` is the seconds until the next request is answered, if there were too many."""

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
    """The most reviews that may wait."""
    turns: int | None = None
    """The most turns running at a time in one server process."""


class UserUsage(Struct, frozen=True):
    """What a user has used: dollars since midnight (UTC), the part of them for learning, bytes, and waiting
    reviews."""

    cost: float = 0.0
    learning: float = 0.0
    storage: int = 0
    reviews: int = 0


class UserDirectory(Protocol):
    """What a server asks about users. All methods wait for the database and raise StoreError."""

    def enter_by_key(self, digest: str, rate: int | None) -> Admission:
        """Find the user who has a key, and count the request. `rate` is for users without their own."""
        ...

    def enter_as(self, user: str, digest: str, rate: int | None) -> Admission:
        """Sign in the user that a cookie, a link or a proxy names, and count the request. `digest` is the key
        that the cookie came from, if any."""
        ...

    def is_current(self, user: str, digest: str) -> bool:
        """Tell whether a signed-in user still has access."""
        ...

    def note(self, note: AuditNote) -> None:
        """Record an event. Equal events within a minute become one row with a count."""
        ...

    def refuse(self, note: AuditNote) -> int:
        """Record that somebody was refused. Return how often that happened this minute, by address."""
        ...

    def limits(self, user: str) -> UserLimits: ...

    def usage(self, user: str, *, storage: bool) -> UserUsage:
        """Return what counts toward the limits. Measuring the storage takes longer."""
        ...

    def values(self, user: str) -> SharedValues:
        """Return a user's small documents: links and sign-ins."""
        ...

    def prune(self, days: int) -> None:
        """Delete older audit rows."""
        ...
