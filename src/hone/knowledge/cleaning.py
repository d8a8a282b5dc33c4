"""Edits with nothing hidden in them and no secret, and what is odd about their words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hone.core.errors import Refused
from hone.memory import journal
from hone.policy.screen import screen
from hone.skills import folder

Edit = TypeVar("Edit", bound=journal.Edit | folder.Edit)

_WORDS = ("text", "replace", "content")
"""The fields of an edit that hold new words."""


def cleaned(edit: Edit) -> tuple[Edit, Sequence[str]]:
    """Raises Refused for a secret. What is not text passes as it is."""
    for name in _WORDS:
        value = getattr(edit, name, None)
        if value is None:
            continue
        try:
            text = value.decode() if isinstance(value, bytes) else value
        except UnicodeDecodeError:
            return edit, ()
        found = screen(text)
        if found.secrets:
            raise Refused(
                f"This holds what looks like a secret ({', '.join(found.secrets)}); nothing was changed. "
                "Write down where it is kept instead."
            )
        words: dict[str, Any] = {name: found.text.encode() if isinstance(value, bytes) else found.text}
        return replace(edit, **words), found.flags
    return edit, ()
