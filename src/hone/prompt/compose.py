"""The only maker of a Prefix. The same inputs give the same bytes, in any process, on any start."""

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from hone.core.messages import canonical
from hone.core.prefix import Prefix
from hone.core.tool import Tool
from hone.core.visible import visible
from hone.prompt.sections import guidance

_TEXTS = Path(__file__).with_name("texts")


def compose(
    model: str, sections: Iterable[str], tools: Iterable[Tool], sampling: Mapping[str, Any] | None = None
) -> Prefix:
    """Sections in the order given, tools by name: a set or a dict's order must not reach the wire. Whoever
    wrote a section, nothing in it is hidden."""
    system = "\n\n".join(visible(section).strip() for section in sections if section.strip())
    schemas = sorted((tool.spec.name, tool.spec.schema) for tool in tools)
    return Prefix(model, system, tuple(schema for _, schema in schemas), canonical(dict(sampling or {})))


def order_sections(
    plugins: Iterable[str] = (), skills: str = "", instructions: str = "", journal: str = "", around: str = ""
) -> tuple[str, ...]:
    """All sections, what changes least first; empty ones are left out later."""
    return (identity(), guidance(), *plugins, skills, instructions, journal, around)


def identity() -> str:
    return (_TEXTS / "identity.md").read_text(encoding="utf-8")


def plain() -> str:
    """All that a small model is told, which gets no tools."""
    return (_TEXTS / "plain.md").read_text(encoding="utf-8")


def surroundings(folder: Path, day: date, system: str) -> str:
    """No clock finer than a date: the prefix must be the same all day."""
    place = visible(str(folder)).replace("\n", "\\n")
    return f"Working folder: {place}\nSystem: {system}\nDate: {day.isoformat()}"
