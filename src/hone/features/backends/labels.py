"""Decide how far a memory item is trusted, from what the ledger knows of it."""

from hone.core.backend import MemoryItem
from hone.core.errors import Refused
from hone.core.ledger import Evidence
from hone.core.regex import regex
from hone.core.transcript import Source
from hone.core.trust import Trust
from hone.knowledge.evidence import locate
from hone.knowledge.items import KeptMemory
from hone.knowledge.quoting import quotes

TRUST, HOME, STORED_BY = "trust", "home", "stored_by"
"""Names in a memory's metadata: its label when it was stored, whose copy of the journal or of a skill it is,
and which home stored it by key."""
_WORD = regex(r"[^\W_]+")


def stored(memory: MemoryItem) -> Trust:
    """Return the label that a memory says it was stored with; without one it is foreign."""
    named = memory.metadata.get(TRUST, "")
    return next((each for each in Trust if each.name.lower() == named), Trust.FOREIGN)


def origin(memory: MemoryItem, kept: KeptMemory | None) -> Trust:
    """Return the label that a memory was stored with. `kept` is what the ledger holds under its key: of the
    very text that this home stored, the ledger knows the label."""
    return kept.trust if kept is not None and kept.value == memory.value else stored(memory)


def label(memory: MemoryItem, kept: KeptMemory | None, *, cloud: bool) -> Trust:
    """Return how far a memory is trusted now, at most as far as the agent's words. What this home stored
    keeps its label, wherever it was in between. Any other text from another machine is foreign, whatever it
    says of itself."""
    if cloud and (kept is None or kept.value != memory.value):
        return Trust.FOREIGN
    return min(Trust.AGENT, origin(memory, kept))


def is_withdrawn(memory: MemoryItem, kept: KeptMemory | None, home: str) -> bool:
    """Return whether this home stored a memory and has replaced or undone it since, and the backend has not
    heard of that yet."""
    ours = bool(home) and memory.metadata.get(STORED_BY) == home
    return ours and (kept is None or kept.value != memory.value)


def find_owners_words(key: str, value: str, source: Source) -> tuple[Evidence, ...]:
    """Return the message in which the owner said all of a value; nothing if nobody said it like that. The
    words of the key must be the owner's, too: they are shown with the value."""
    try:
        located = locate([value], source)
    except Refused:
        return ()
    said = {
        word
        for node in source.transcript.nodes
        if node.is_owners
        for word in _WORD.findall(node.message.text.casefold())
    }
    if not set(_WORD.findall(key.casefold())) <= said or not quotes(value, located.quotes):
        return ()
    return located.evidence
