"""Erase words of a conversation from servers' error output: a server may print its arguments."""

from collections.abc import Sequence

from hone.app import Hone
from hone.core.erasure import Erasure, Scrubber
from hone.core.holding import Occurrence
from hone.features.mcp.client.catalog import Catalog, CatalogEntry


class ErrorsEraser:
    """Removes a server's error output as a whole: nobody misses it."""

    def __init__(self, hone: Hone) -> None:
        self._catalog = Catalog(hone.home)

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        scrubber = Scrubber(what.words)
        entries = self._catalog.read().values()
        counts = [(entry.name, _count(entry, scrubber, what)) for entry in entries]
        return [Occurrence("mcp", f"what {name} printed", count, True) for name, count in counts if count]

    async def erase(self, what: Erasure) -> Sequence[str]:
        scrubber = Scrubber(what.words)
        self._catalog.forget_errors(lambda entry: bool(_count(entry, scrubber, what)))
        return ()


def _count(entry: CatalogEntry, scrubber: Scrubber, what: Erasure) -> int:
    """Count the words in it; once if a whole conversation is erased, which may have been in it."""
    return scrubber.count(entry.errors) or int(bool(what.sessions and entry.errors))
