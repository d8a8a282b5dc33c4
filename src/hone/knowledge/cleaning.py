"""Edits with nothing hidden in them and no secret, and what is odd about their words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hone.core.errors import Refused
from hone.core.screen import screen
from hone.knowledge import journal
from hone.knowledge.skills import folder

Edit = TypeVar("Edit", bound=journal.Edit | folder.Edit)

_WORDS = ("text", "replace", "content")
"""The fields of an edit that hold new words."""


def cleaned(edit: Edit) -> tuple[Edit, Sequence[str]]:
    """With its words in canonical form. What is not text passes as it is."""
    for name in _WORDS:
        value = getattr(edit, name, None)
        text = _text(value) if isinstance(value, bytes) else value
        if text is not None:
            found = screen(text)
            words: dict[str, Any] = {name: found.text.encode() if isinstance(value, bytes) else found.text}
            return replace(edit, **words), found.flags
    return edit, ()


def checked(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Sequence[str]:
    """What is odd about the contents that an edit makes, and was not before: words that say nothing alone may
    do so together. Raises Refused for a secret."""
    flags: list[str] = []
    for path, data in after.items():
        if path.startswith("@") or before.get(path) == data:
            continue
        was, now = (screen(_text(each) or "") for each in (before.get(path, b""), data))
        if secrets := set(now.secrets) - set(was.secrets):
            raise Refused(
                f"This holds what looks like a secret ({', '.join(sorted(secrets))}); nothing was changed. "
                "Write down where it is kept instead."
            )
        flags += [flag for flag in now.flags if flag not in was.flags]
    return flags


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
