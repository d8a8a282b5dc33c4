"""Say why a lesson is not saved, in words for the model that wanted to save it."""

from collections.abc import Sequence

from hone.core.visible import visible
from hone.knowledge import journal
from hone.knowledge.withdrawn import Withdrawal


def describe_contradiction(entries: Sequence[str]) -> str:
    return (
        "Not saved: this contradicts what is known. If the user has changed their mind, replace the entry "
        f"and quote the user's words.\n{list_entries(entries)}"
    )


def describe_withdrawn(found: Withdrawal) -> str:
    """The lesson that was taken back is not repeated to the model."""
    return (
        f"Not saved: the user took back a lesson like this on {name_day(found)}. Save it again only if the "
        "user says it again, and quote those words."
    )


def describe_same_ground(found: Withdrawal | None) -> str:
    return f"it rests only on messages whose lesson was taken back (change {found.id})" if found else ""


def name_day(found: Withdrawal) -> str:
    return found.at.astimezone().date().isoformat()


def list_entries(entries: Sequence[str]) -> str:
    return "".join(journal.format_entry(visible(entry)) for entry in entries).rstrip()
