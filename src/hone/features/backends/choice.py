"""Which memory backend is used, decided without asking anybody; and whether an address is this machine's."""

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from hone.core.errors import SettingsError
from hone.core.regex import regex

NULL, SQLITE, POSTGRES, HONCHO = "null", "sqlite", "postgres", "honcho"
NAMES = (NULL, SQLITE, POSTGRES, HONCHO)
KEY = "HONCHO_API_KEY"
_HERE = regex(r"localhost|127(?:\.\d{1,3}){3}|\[?::1\]?|", re.IGNORECASE)
_UNFIT = regex(r"[^A-Za-z0-9_-]+")


class BackendChoice(Struct, frozen=True):
    """`why` is what decided, in a few words."""

    name: str
    why: str


def choose(
    wanted: str, known: Collection[str], *, key: bool, installed: bool, answers: bool
) -> BackendChoice:
    """What is set wins over everything that lies about in the environment. Where nothing is set: Honcho if
    its key is there, its SDK is installed and it answers; else none. Raises SettingsError."""
    if wanted:
        if wanted not in known:
            raise SettingsError(f"memory.backend is {wanted!r}; there are {', '.join(sorted(known))}.")
        return BackendChoice(wanted, "it is set")
    if not key:
        return BackendChoice(NULL, "nothing is set")
    if not installed:
        return BackendChoice(NULL, f"nothing is set; {KEY} is there, but not the SDK")
    if not answers:
        return BackendChoice(NULL, f"nothing is set; {KEY} is there, but Honcho does not answer")
    return BackendChoice(HONCHO, f"nothing is set, and {KEY} is there")


def must_ask(wanted: str, *, key: bool, installed: bool) -> bool:
    """Whether the choice depends on if Honcho answers."""
    return not wanted and key and installed


def is_remote(url: str, environ: Mapping[str, str]) -> bool:
    """Whether a database or a service is on another machine. What cannot be told counts as one that is."""
    if "://" in url:
        try:
            address = urlsplit(url)
            asked = re.findall(r"(?:^|&)host(?:addr)?=([^&]*)", address.query)
            hosts = asked or [part.rpartition("@")[2] for part in address.netloc.split(",")]
            hosts = [re.sub(r":\d*$", "", host) for host in hosts]
        except ValueError:
            return True
    else:
        hosts = re.findall(r"\bhost(?:addr)?\s*=\s*'?([^\s']*)", url)
    named = [host.replace("%2F", "/") for host in hosts if host] or [environ.get("PGHOST", "")]
    return not all(
        host.startswith("/") or _HERE.fullmatch(host) for each in named for host in each.split(",")
    )


def user_id(name: str) -> str:
    """A name that every backend takes for a user."""
    return _UNFIT.sub("-", name).strip("-")[:64] or "owner"
