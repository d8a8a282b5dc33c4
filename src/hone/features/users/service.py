"""Make users and their keys. Only a digest of a key is stored."""

import secrets
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hone.core.errors import Refused
from hone.core.loading import import_object
from hone.core.regex import regex
from hone.core.users import KEY_MARK, is_name
from hone.core.visible import visible
from hone.settings import read
from hone.web.api_keys import digest

if TYPE_CHECKING:
    from hone.stores.postgres.user_admin import UserAdmin

ADMIN = "hone.stores.postgres.user_admin:UserAdmin"
KEY_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ALONE = (
    "One home is one person here: this home keeps its data in a file. Users need a PostgreSQL database. "
    "docs/deploy.md shows a team's set-up; this home moves there with: hone move --to postgresql://…"
)


def open_admin(home: Path) -> "UserAdmin":
    """Open the administration. Raises Refused where there can be no users, and StoreError."""
    database = read(home).database
    if not database:
        raise Refused(ALONE)
    admin: UserAdmin = import_object(ADMIN)(database)
    return admin


def check_name(name: str) -> str:
    """Check a name. Raises Refused."""
    if not is_name(name):
        raise Refused(
            f"{visible(name)!r} cannot be the name of a user. Use up to 32 lower-case letters, digits and "
            ". _ -, beginning with a letter or a digit; local and team are taken."
        )
    return name


def make_key(admin: "UserAdmin", user: str, name: str, kind: str, lasts: timedelta | None) -> str:
    """Make a key and return its text, which is stored nowhere. Raises Refused and Missing."""
    if not KEY_NAME.fullmatch(name):
        raise Refused(
            f"{visible(name)!r} cannot be the name of a key. Use up to 64 letters, digits and . _ -"
        )
    word = f"{KEY_MARK}{secrets.token_urlsafe(32)}"
    admin.add_key(user, digest(word), name, kind, lasts)
    return word
