"""Say how search works, and offer search by meaning in one line."""

from hone.registry import list_commands
from hone.settings import Settings

COMMAND = "recall"
OFFER = "to search by meaning, too: hone models add minilm, then hone recall use local/minilm"


def describe_search(settings: Settings) -> str:
    """Describe how search works; nothing if the feature is not installed."""
    if COMMAND not in list_commands():
        return ""
    if embedder := settings.recall.embedder:
        return f"search: by words and, with {embedder}, by meaning; see hone recall status"
    return f"search: by words; {OFFER}"


def offer_search(settings: Settings) -> str:
    """Offer search by meaning; nothing if there is nothing to offer."""
    return "" if settings.recall.embedder or COMMAND not in list_commands() else f"If you want {OFFER}"
