"""Which searches are measured: by words alone and, if an embedder is set, by words and meaning."""

from hone.app import Hone
from hone.features.recall.evaluation import WORDS, Searches


def own_searches(hone: Hone) -> Searches:
    """Return the searches of the owner's home."""
    searches = {WORDS: hone.stores.recall}
    if hone.recall is not hone.stores.recall:
        searches[hone.settings.recall.embedder] = hone.recall
    return searches
