"""What is known, as text for the system prompt. Headings and frames are ours; no entry can forge one."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from hone.core.knowledge import Snapshot
from hone.core.messages import framed
from hone.core.visible import one_line, visible

TITLES = {"user": "About the user", "memory": "About the situation", "project": "About this project"}
"""In this order, by the names that a piece of news gives them."""


def guidance() -> str:
    return (Path(__file__).with_name("texts") / "guidance.md").read_text(encoding="utf-8")


def journal(snapshot: Snapshot) -> str:
    """Nothing for an empty one."""
    known = {"user": snapshot.user, "memory": snapshot.memory, "project": snapshot.project}
    chapters = [f"## {TITLES[name]}\n\n{_items(entries)}" for name, entries in known.items() if entries]
    return "\n\n".join(["# Journal", *chapters]) if chapters else ""


def _items(entries: Iterable[str]) -> str:
    return "\n".join(line for entry in entries for line in item(entry))


def item(text: str) -> Iterator[str]:
    """One entry of a list: a dash before its first line, every further line moved in."""
    first, *further = visible(text).strip().split("\n")
    yield f"- {first}".rstrip()
    yield from (f"  {line}".rstrip() for line in further)


def instructions(name: str, text: str) -> str:
    """A file of the working folder that the owner has seen and trusts."""
    opening = f"The user trusts this folder's {one_line(name, 100)}. Follow it where it applies:"
    return f"{opening}\n{framed('project-instructions', visible(text).strip())}"
