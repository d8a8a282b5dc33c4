"""Honcho's text search, as the server does it in PostgreSQL, close enough to give the same messages.

A query with a sign in it is looked for letter by letter. Of any other query, all words must be in a message,
but for English stop words, or it must stand there as it is. What the server finds by meaning is left out:
that needs an embedding model, and a server without one answers like this.
"""

import re
from functools import cache
from typing import Any

import apsw

SIGNS = re.compile(r'[~`!@#$%^&*()_+=\[\]{};\':"\\|,.<>/?-]')
_STOPS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves what which who whom this that these those am is
are was were be been being have has had having do does did doing a an the and but if or because as until
while of at by for with about against between into through during before after above below to from up
down in out on off over under again further then once here there when where why how all any both each few
more most other some such no nor not only own same so than too very s t can will just don should now
"""
STOPS = frozenset(_STOPS.split())
_TOKENIZER = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "0"])


def score(query: str, content: str) -> float | None:
    """Return how well a message fits; None if it does not."""
    literal = query.lower() in content.lower()
    if SIGNS.search(query):
        return 0.0 if literal else None
    wanted, held = _lexemes(query), _lexemes(content)
    if wanted and set(wanted) <= set(held):
        return sum(held.count(each) for each in set(wanted)) / 100
    return 0.0 if literal else None


def _lexemes(text: str) -> list[str]:
    """Words without stop words, stemmed. What looks like a path or a host is one word as it is."""
    found: list[str] = []
    for piece in text.lower().split():
        bare = piece.strip(".,;:!?()\"'")
        if re.search(r"[/@]|\w\.\w", bare):
            found.append(bare)
        else:
            found += [_stem(word) for word in re.findall(r"-\d+|[^\W_]+", bare) if word not in STOPS]
    return found


@cache
def _stem(word: str) -> str:
    if not word.isalpha():
        return word
    tokens: Any = list(_TOKENIZER(word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None))
    return str(tokens[0][2])
