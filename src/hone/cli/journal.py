"""The journal on the screen: each entry with the change it came with."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from hone.app import Hone
from hone.cli.listing import moment
from hone.cli.paint import Paint
from hone.core.ledger import PROJECT, Entry
from hone.core.messages import digest
from hone.core.visible import one_line, visible
from hone.knowledge.journal import Block, blocks, entries, format_entry
from hone.knowledge.places import place_of
from hone.knowledge.sections import Section, data, section, sections, targets

Measured = Mapping[str, Sequence[str]]
NONE: Measured = MappingProxyType({})

__all__ = ["Section", "data", "measured", "place_of", "rows", "section", "sections", "targets"]


def rows(section: Section, paint: Paint, measured: Measured = NONE) -> Iterator[str]:
    """`measured` is what experiments say of an entry."""
    about = section.target.removeprefix(PROJECT)
    belongs = f" (for {one_line(about, 200)})" if about != section.target else ""
    room = section.room if section.limit else "switched off in the settings: in no prompt"
    yield f"{paint.bold(f'{section.name}: {section.place}')}{belongs}, {room}"
    found = [block for block in blocks(section.text) if block.entry is not None or block.raw.strip()]
    for block in found:
        yield from _block(block, section, paint)
        yield from (paint.dim(f"      {row}") for row in measured.get(block.entry or "", ()))
    if not found:
        yield paint.dim("  (empty)")
    if any(block.entry is None for block in found):
        yield paint.dim("  (What stands behind │ is your own prose: it is kept, and it is in no prompt.)")


def _block(block: Block, section: Section, paint: Paint) -> Iterator[str]:
    if block.entry is None:
        yield from (paint.dim(f"  │ {row}") for row in visible(block.raw).rstrip("\n").split("\n"))
        return
    yield from (f"  {row}" for row in format_entry(visible(block.entry)).rstrip("\n").split("\n"))
    yield paint.dim(f"      {_origin(section.brought.get(block.entry))}")


def _origin(entry: Entry | None) -> str:
    if entry is None:
        return "of unknown origin"
    change = entry.change
    about = f" of {change.about}" if change.about else ""
    doubt = "" if change.confirmed else ", unconfirmed"
    who = f"{one_line(change.kind, 20)}{about} by {change.author.actor}"
    return f"change {entry.id}: {who}, {moment(entry.at)}{doubt}"


async def measured(hone: Hone, found: Sequence[Section]) -> Measured:
    """Return what was measured about each entry, one line for each study."""
    return {
        entry: await hone.findings("entry", section.target, digest(entry.encode()))
        for section in found
        for entry in entries(section.text)
    }
