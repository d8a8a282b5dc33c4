"""Find words in a text for a shared file that reveal something about the owner or the machine. This is
advice."""

import getpass
import re
import socket
from collections.abc import Iterable, Iterator

from msgspec import Struct

from hone.core.regex import regex
from hone.core.screen import screen

_PATH = regex(r"(?<![\w:/.@-])(?:~|\$HOME|/[\w.@+-]+|[A-Z]:\\[\w .@+-]+)(?:[/\\][\w.@+-]+)+/?")
_MAIL = regex(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAME = regex(r"(?<=[\w,;:] )[A-Z][^\W\d_]{2,}(?:[- ][A-Z][^\W\d_]+)*")
"""Capitalized words that do not begin a sentence."""


class Leak(Struct, frozen=True):
    kind: str
    text: str


def find_leaks(text: str, known: Iterable[str], own: Iterable[str] | None = None) -> list[Leak]:
    """Return each leak once. `known` is what Hone knows about the owner; names in it are searched, and so are
    `own`, by default the names of this account and machine."""
    names = {name for each in known for name in _NAME.findall(each) if _has(text, name)}
    mine = _own_names() if own is None else own
    names |= {name for name in mine if _has(text.lower(), name.lower())}
    found = [Leak("secret", each) for each in screen(text).secrets]
    found += [Leak("path", each.rstrip(".")) for each in _PATH.findall(text)]
    found += [Leak("address", each) for each in _MAIL.findall(text)]
    found += [Leak("name", name) for name in sorted(names)]
    return list(dict.fromkeys(found))


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _own_names() -> Iterator[str]:
    """Yield the names of this account and this machine."""
    try:
        account = getpass.getuser()
    except (OSError, KeyError):
        account = ""
    for name in (account, socket.gethostname().partition(".")[0]):
        if len(name) >= 3 and name not in ("root", "user", "localhost"):
            yield name
