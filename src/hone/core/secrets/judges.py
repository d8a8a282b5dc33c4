"""Decide whether a value in a secret's place is a secret."""

import re
from base64 import b64decode
from binascii import Error
from collections import Counter
from math import log2

from hone.core.regex import regex

_INSERTED = regex(r"\$[{(]|\{[\w.]*\}|%\(|\[redacted|EXAMPLE|&(?:quot|amp|apos|lt|gt|#\d)")
_WORD = r"[A-Z]*(?![A-Z])[a-z]*\d*(?:[A-Z][a-z]+\d*)*"
_WORDS = regex(rf"(?:{_WORD}[_.:/@+-])*{_WORD}={{0,2}}")
_TELLING = regex(
    r"(?:password|passwd|passphrase|pwd|secret|credential|(?<!page)(?<!page_)(?<!next)(?<!next_)(?<!tion_)(?<!tion)"
    r"(?<!request)(?<!request_)(?<!public)(?<!publickey)token"
    r"|(?:access|account|api|auth|encryption|private|secret|signing)[_-]?key)$",
    re.IGNORECASE,
)
_HARMLESS = regex(
    r"(?:arn|colou?r|count|digest|endpoint|field|file|hash|header|id|length|limit|name|path|policy|prefix|ref|sha\d*"
    r"|size|type|ur[il]|version)s?$",
    re.IGNORECASE,
)
_PASSWORD = regex(
    r"(?:password|passwd|passphrase|passcode|pwd|passwort|kennwort|wachtwoord|senha|(?:^|[^A-Za-z]|db)pass)$",
    re.IGNORECASE,
)
_FOLDER = regex(r"(?:^|\W)(?:OLD)?PWD$")
"""Shell variables for the working folder."""
_PLACEHOLDER = regex(
    r"(?:my|new|old|the|some|test)?[_-]?(?:pass(?:word|wd|phrase|code)?|pwd|pw|token|secret|key|value|val|arg|str"
    r"|string|text|user|username|input|data|tmp|var|param|field|foo|bar|baz|name|type)[_-]?\d*",
    re.IGNORECASE,
)
_TECHNICAL = regex(
    r"(?:utf|utf-|ucs|sha|sha-|md|base|latin|latin-|iso|iso-|cp|rot|aes|aes-|rsa|des|3des|argon|pbkdf|scrypt|bcrypt"
    r"|oauth|ipv?|http|https|win|x|int|uint|float|py|python|rfc|p|v|ed|hs|rs|es|ntlmv?|mysql|sqlite|postgres|mp|h"
    r"|id|s|i|n|pos|no|nr|step|page|line|version|tls|ssl|tlsv|sslv|ssh)[-_.]?\d[\d._x-]*\w?(?:[-_][a-z]+)*"
    r"|\d+(?:st|nd|rd|th|[-x]\w*|[a-z]{1,5})?",
    re.IGNORECASE,
)
_SESSION = regex(r"sess|sid$|auth|token|jwt|csrf|xsrf|remember|login|user|identity|^xs$|_at$", re.IGNORECASE)
_SIGNS = frozenset("!#$%&+*=?@^~")
SHORTEST, LONGEST, VARIED = 6, 128, 5
"""For a password that somebody chose: the fewest and most letters, and the fewest different ones."""


def anything(_: re.Match[str], value: str) -> bool:
    """Accept any value but an inserted variable or a word for a password."""
    return not _INSERTED.search(value) and not _is_password_word(value)


def filled(match: re.Match[str], value: str) -> bool:
    """Accept any value that is not a placeholder word."""
    return anything(match, value) and not _PLACEHOLDER.fullmatch(value)


def ending(match: re.Match[str], value: str) -> bool:
    """Accept a value that is filled in and ends its line or its quotes."""
    after = match.string[match.end() : match.end() + 1]
    return filled(match, value) and (after in {"", '"', "'"} or after.isspace())


def odd(match: re.Match[str], value: str) -> bool:
    """Accept a value that is neither a word nor a name."""
    return anything(match, value) and not _WORDS.fullmatch(value)


def random(match: re.Match[str], value: str) -> bool:
    if not odd(match, value) or "://" in value or not any(map(str.isalpha, value)):
        return False
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * log2(share) for share in shares) >= 3


def chosen(match: re.Match[str], value: str) -> bool:
    """Accept what people make up as a password. Reject a plain word, since it looks like any other."""
    if not SHORTEST <= len(value) <= LONGEST or len({*value}) < VARIED or not anything(match, value):
        return False
    if not any(map(str.isalpha, value)) or not any(map(_is_mixed_in, value.rstrip("?"))):
        return False
    if value.startswith(("/", "./", "~/", "--")) or "://" in value or "::" in value:
        return False
    return not (_PLACEHOLDER.fullmatch(value) or _TECHNICAL.fullmatch(value) or _is_name(value))


def basic(_: re.Match[str], value: str) -> bool:
    """Accept a user name and a password in base64, as in Docker's config.json."""
    try:
        user, colon, password = b64decode(value, validate=True).decode().partition(":")
    except (Error, ValueError):
        return False
    return bool(user and colon and password) and f"{user}{password}".isprintable()


def session(match: re.Match[str], _: str) -> bool:
    """Accept cookies if one of them comes from a login, judging by its name or value."""
    pairs = (each.strip().partition("=") for each in match[match.lastindex or 0][:2_000].split(";"))
    return any(
        len(given) >= (8 if _SESSION.search(name) else 16) and random(match, given[:256])
        for name, _, given in pairs
    )


def assigned(match: re.Match[str], value: str) -> bool:
    """Accept a random value under a telling name. In quotes, a space after it makes it the first word of
    many. Under the name of a password, one that somebody chose is enough."""
    name = match.string[max(0, match.pos - 20) : match.pos]
    after = match.string[match.end() : match.end() + 1]
    bare = match["bare"] is not None
    if _HARMLESS.search(match["suffix"]) or (value.startswith("/") and _FOLDER.search(name)):
        return False
    ends = _ends_line(name, after) if bare else after != " "
    if ends and not match["suffix"] and _PASSWORD.search(name) and chosen(match, value):
        return True
    if len(value) < 8 or not _TELLING.search(name) or not random(match, value):
        return False
    return _no_code(value, after) if bare else after != " "


def _is_mixed_in(letter: str) -> bool:
    return letter in _SIGNS or letter.isdigit()


def _is_password_word(value: str) -> bool:
    return value.lower() in {"pass", "passwd", "password", "pw", "pwd"}


def _is_name(value: str) -> bool:
    """Tell whether a value is words joined by signs: a host, a path, an option, an attribute."""
    return any(each in value for each in "_.:/@+-") and bool(_WORDS.fullmatch(value))


def _ends_line(name: str, after: str) -> bool:
    """Tell whether a value may end here. In a command's environment something may follow; a name in code is
    followed by signs."""
    return after in {"", "\n", "\r"} or (after == " " and name[-8:].isupper())


def _no_code(value: str, after: str) -> bool:
    """Tell whether an unquoted value is not code: a call, an index, or something that reads like a name."""
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", value):
        return False
    padded = len(value) >= 20 and value.endswith("=")
    mixed = re.search(r"\d.*[A-Za-z]", value) and sum(map(str.isdigit, value)) > 1
    return bool(padded or mixed) and after not in {"(", "[", "{"}
