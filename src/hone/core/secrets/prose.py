"""Recognize a password that somebody wrote down in a sentence: "my password is …", "das Passwort lautet …".

A plain word is left alone: "the password is wrong" says nothing about it.
"""

import re
from collections.abc import Iterator
from functools import cache

from hone.core.regex import regex
from hone.core.secrets.judges import chosen
from hone.core.secrets.marks import Span
from hone.core.secrets.places import BLANK
from hone.core.secrets.scan import Anchors

_LATIN = (
    *("password", "passphrase", "passcode", "passwort", "kennwort", "mot de passe", "mdp", "contraseña"),
    *(
        "contrasenya",
        "clave",
        "senha",
        "palavra-passe",
        "parola",
        "wachtwoord",
        "hasło",
        "lösenord",
        "passord",
    ),
    *("adgangskode", "kodeord", "salasana", "heslo", "jelszó", "şifre", "lozinka", "kata sandi", "mật khẩu"),
)
_OTHER = (
    *("пароль", "пароля", "密码", "密碼", "口令", "パスワード", "비밀번호", "κωδικός", "סיסמה"),
    *("كلمة السر", "كلمة المرور"),
)
LABELS = (*_LATIN, *_OTHER)
"""What people call a password."""
_IS = (
    "is|was|ist|lautet|war|est|était|es|era|è|é|jest|to jest|är|er|var|je|este|ise|adalah|là|это|είναι|—|–|-"
)
_OPENING, _CLOSING = "\"'`«„“”「*", "\"'`«»“”」*"
_SAID = regex(
    rf"[a-zåäö]{{0,3}}[{_CLOSING})]?(?:[^\S\n]{{1,3}}[^\s.!?:=]{{1,20}}){{0,6}}?"
    rf"(?:[^\S\n]{{0,2}}:[^\S\n]{{1,3}}|[^\S\n]?：[^\S\n]?|[^\S\n]{{1,3}}(?:{_IS})[^\S\n]{{1,3}}|[^\S\n]?[是为為は는은][^\S\n]{{0,2}})"
    rf"[{_OPENING}]{{0,2}}([^\s,;{_OPENING}{_CLOSING}]{{6,128}})",
    re.IGNORECASE,
)
_CODE = frozenset("()[]{}<>\\|")


def find_in_prose(text: str) -> Iterator[Span]:
    for at in _labelled(text):
        said = _SAID.match(text, at)
        if said:
            value = said[1].rstrip(".,;:?)。，")
            if not _CODE & set(value) and not BLANK.match(value) and chosen(said, value):
                yield said.start(1), said.start(1) + len(value), "password"


def _labelled(text: str) -> Iterator[int]:
    """Yield where each label ends."""
    yield from (at for at, _ in _latin_labels().find(text))
    for label in () if text.isascii() else _other_labels():
        at = text.find(label)
        while at >= 0:
            at += len(label)
            yield at
            at = text.find(label, at)


@cache
def _latin_labels() -> Anchors[None]:
    """Return a pattern of labels in which each non-ASCII letter is a question mark, as in the searched
    text."""
    return Anchors((label, None) for label in _LATIN)


@cache
def _other_labels() -> tuple[str, ...]:
    return tuple(dict.fromkeys(form for each in _OTHER for form in (each, each.capitalize(), each.upper())))
