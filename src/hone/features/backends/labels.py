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
"""Names in a memory's metadata: its label when it was stored, the origin of a copy, and the home that stored
it by key."""
_WORD = regex(r"[^\W_]+")


def stored(memory: MemoryItem) -> Trust:
    """Return the label that a memory claims it was stored with; foreign if there is none."""
    named = memory.metadata.get(TRUST, "")
    return next((each for each in Trust if each.name.lower() == named), Trust.FOREIGN)


def origin(memory: MemoryItem, kept: KeptMemory | None) -> Trust:
    """Return the label that a memory was stored with. `kept` is what the ledger holds under its key: the
    ledger knows the label of text that this home stored."""
    return kept.trust if kept is not None and kept.value == memory.value else stored(memory)


def label(memory: MemoryItem, kept: KeptMemory | None, *, cloud: bool) -> Trust:
    """Return how far a memory is trusted now, at most as far as the agent's words. What this home stored
    keeps its label, wherever it has been. Any other text from another machine is foreign, whatever it
    claims."""
    if cloud and (kept is None or kept.value != memory.value):
        return Trust.FOREIGN
    return min(Trust.AGENT, origin(memory, kept))


def is_withdrawn(memory: MemoryItem, kept: KeptMemory | None, home: str) -> bool:
    """Tell whether this home stored a memory and has replaced or undone it since, without the backend knowing
    yet."""
    ours = bool(home) and memory.metadata.get(STORED_BY) == home
    return ours and (kept is None or kept.value != memory.value)


def find_owners_words(key: str, value: str, source: Source) -> tuple[Evidence, ...]:
    """Return the message in which the owner said all of a value; nothing if there is none. The words of the
    key must be the owner's, too: they are shown with the value."""
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
