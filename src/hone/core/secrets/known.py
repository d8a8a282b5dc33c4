"""Remove values that are known to be secrets, whatever they look like: a client's key, a password."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote, urlsplit

from hone.core.regex import regex
from hone.core.secrets.marks import mark

SHORTEST = 8
"""The fewest letters of a value. A shorter one is a common word: many local servers accept any key."""
_BEGINNING = 12
"""The fewest letters to remove of a value whose rest was cut off."""
_PASSWORD = regex(r"password\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s&]+))")


def conceal(text: str, values: Iterable[str], kind: str = "key", shortest: int = SHORTEST) -> str:
    """Replace the values, even if they are escaped, encoded or cut short."""
    for value in sorted({*values}, key=len, reverse=True):
        if len(value) >= shortest:
            for form in _forms(value):
                text = text.replace(form, mark(kind))
            if len(value) > _BEGINNING:
                text = _without_beginning(text, value, kind)
    return text


def passwords(url: str) -> tuple[str, ...]:
    """Return the passwords in the address of a database or service."""
    found = [quoted.replace("\\'", "'") or bare for quoted, bare in _PASSWORD.findall(url)]
    if "://" in url:
        try:
            found.append(urlsplit(url).password or "")
        except ValueError:  # not an address after all
            found.append(url.partition("://")[2].rpartition("@")[0].partition(":")[2])
    return tuple({*filter(None, found), *map(unquote, filter(None, found))})


def mask_password(url: str) -> str:
    """Return the address of a database or service without the password in it."""
    bare = re.sub(r"(://[^:@/\s]*):[^/\s]*@", r"\1:…@", url)
    bare = re.sub(r"://[^:@/\s]{16,}@", "://…@", bare)
    return re.sub(r"(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^\s&]+)", r"\1…", bare)


def _forms(value: str) -> Iterator[str]:
    written = json.dumps(value)[1:-1]
    markup = value.translate({ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;"})
    plain = {value, _quoted(value, "/"), _quoted(value, ""), markup, written, written.replace("/", "\\/")}
    yield from sorted(plain, key=len, reverse=True)
    data = value.encode("utf-8", "replace")
    for offset in range(3):  # base64 packs three bytes, so the value can begin at any of them
        packed = b64encode(b"\0" * offset + data).decode().rstrip("=")
        inner = packed[-(-offset * 4 // 3) :][: -1 if (offset + len(data)) % 3 else None]
        if len(inner) >= SHORTEST:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


def _quoted(value: str, safe: str) -> str:
    return quote(value, safe=safe, errors="replace")


def _without_beginning(text: str, value: str, kind: str) -> str:
    """Return a text without truncated values. A service that shows part of a key shows its beginning."""
    kept, done = [], 0
    at = text.find(value[:_BEGINNING])
    while at >= 0:
        end = at + _BEGINNING
        while end < len(text) and end - at < len(value) and text[end] == value[end - at]:
            end += 1
        kept += [text[done:at], mark(kind)]
        done, at = end, text.find(value[:_BEGINNING], end)
    return "".join([*kept, text[done:]])
