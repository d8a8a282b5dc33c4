"""Split a text into the stems that the word index of messages holds, wherever that index lies.

FTS5's own tokenizer does it for every store, so that the same words are found in each.
"""

from threading import local
from typing import Any

import apsw

TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
"""Named as in the migration of SQLite's index."""
_of_thread = local()


def split(text: str) -> list[str]:
    """Return the stems of all words of a text, in order."""
    tokenizer = getattr(_of_thread, "tokenizer", None)
    if tokenizer is None:
        tokenizer = _of_thread.tokenizer = apsw.Connection(":memory:").fts5_tokenizer(*TOKENIZER)
    data = text.encode("utf-8", "surrogatepass")
    found: Any = tokenizer(
        data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return list(found)


def stem(word: str) -> str:
    """Return the index's stem of a word, "" if it is not one word. The stem of a stem may differ."""
    found = split(word)
    return found[0] if len(found) == 1 else ""
