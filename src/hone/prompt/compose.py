"""Build the Prefix from its sections. No other module builds one.

The same inputs give the same bytes in any process. Hone writes all headings and frames; no entry can forge
one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from hone.core.agent import Helper
from hone.core.knowledge import Snapshot
from hone.core.messages import canonical, framed
from hone.core.prefix import Prefix
from hone.core.secrets import redact
from hone.core.skill import ListedSkill
from hone.core.tool import Tool
from hone.core.visible import one_line, path_to_text, visible

TITLES = {"user": "About the user", "memory": "About the situation", "project": "About this project"}
"""In this order, by the names that news uses for them."""
BUDGET = 8_000
"""Bytes."""
WIDTH = 120

_HEAD = "# Skills\n\nEach skill says how to do a class of task. Read one with `skill_view`.\n"
_MORE = "\nThere are more. Search them with `skills_list`."
_ALL = "\nThese are all skills. Search them with `skills_list`."
_JOURNAL, _AROUND = "\n\n# Journal\n\n", "\n\nWorking folder: "
_TRUSTED = "The user trusts this folder's "
_TOLD = ("memory", "todo")
"""The tools that a part of our own texts presupposes."""
_TEXTS = Path(__file__).with_name("texts")


def compose(
    model: str, sections: Iterable[str], tools: Iterable[Tool], sampling: Mapping[str, Any] | None = None
) -> Prefix:
    """Compose a prefix: sections in the given order, tools by name, since the order of a set or a dict must
    not reach the wire. Nothing in a section is hidden, even in a plugin's."""
    system = "\n\n".join(visible(section).strip() for section in sections if section.strip())
    schemas = sorted((tool.spec.name, tool.spec.schema) for tool in tools if tool.spec.listed)
    return Prefix(model, system, tuple(schema for _, schema in schemas), canonical(dict(sampling or {})))


def order_sections(
    plugins: Iterable[str] = (),
    skills: str = "",
    instructions: str = "",
    journal: str = "",
    around: str = "",
    tools: Collection[str] = _TOLD,
) -> tuple[str, ...]:
    """Return all sections, the most stable ones first; empty ones are dropped later. Our own texts say
    nothing about built-in tools that are not among `tools`."""
    identity, guidance = read_text("identity"), read_text("guidance") if "memory" in tools else ""
    if "todo" not in tools:
        identity = "".join(line for line in identity.splitlines(keepends=True) if "`todo`" not in line)
    return (identity, guidance, *plugins, skills, instructions, journal, around)


def read_text(name: str) -> str:
    """Return one of our own texts: identity, guidance, or plain, the only one for a small model."""
    return (_TEXTS / f"{name}.md").read_text(encoding="utf-8")


def surroundings(folder: Path, day: date, system: str) -> str:
    """Describe the surroundings. The time is only a date: the prefix must be the same all day."""
    place = visible(path_to_text(folder)).replace("\n", "\\n")
    return f"Working folder: {place}\nSystem: {system}\nDate: {day.isoformat()}"


def journal(snapshot: Snapshot) -> str:
    """Return the section of the journal; empty if the journal is."""
    known = {"user": snapshot.user, "memory": snapshot.memory, "project": snapshot.project}
    chapters = [f"## {TITLES[name]}\n\n{_items(entries)}" for name, entries in known.items() if entries]
    return "\n\n".join(["# Journal", *chapters]) if chapters else ""


def _items(entries: Iterable[str]) -> str:
    return "\n".join(line for entry in entries for line in item(entry))


def item(text: str) -> Iterator[str]:
    """Yield one list item: a dash before its first line, every further line indented."""
    first, *further = visible(text).strip().split("\n")
    yield f"- {first}".rstrip()
    yield from (f"  {line}".rstrip() for line in further)


def instructions(name: str, text: str) -> str:
    """Return the section of a working folder's file that the owner has seen and trusts."""
    opening = f"{_TRUSTED}{one_line(name, 100)}. Follow it where it applies:"
    return f"{opening}\n{framed('project-instructions', visible(text).strip())}"


def brief(helper: Helper) -> str:
    """Return a named helper's instructions for its task. No line of them can imitate a heading of ours."""
    lines = (f"  {line}".rstrip() for line in visible(redact(helper.instructions)).strip().split("\n"))
    return "\n".join((f"You work as the helper {one_line(helper.name, 100)}. Its instructions:", *lines))


def index(ranked: Sequence[ListedSkill], total: int, budget: int = BUDGET) -> str:
    """Return the top-ranked skills that fit into the budget, sorted by name; empty if there are none or no
    room. The total is not mentioned: each new skill would change the bytes of every prompt."""
    room = budget - len(_HEAD.encode()) - len(max(_MORE, _ALL, key=len).encode()) - 1
    lines: dict[str, str] = {}
    for listed in ranked:
        line = skill_line(listed)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines[listed.name] = line
    if not lines:
        return ""
    ending = _MORE if max(total, len(ranked)) > len(lines) else _ALL
    return "\n".join([_HEAD, *(lines[name] for name in sorted(lines)), ending])


def has_more_skills(system: str) -> bool:
    """Tell whether some skills had no place in the index when this prompt was composed."""
    return _HEAD in system and _MORE in system


def find_listed(system: str) -> frozenset[str]:
    """Return the names in the index of a prompt."""
    section = system.partition(_HEAD)[2].partition(_MORE)[0].partition(_ALL)[0]
    return frozenset(line[2:].partition(":")[0] for line in section.split("\n") if line.startswith("- "))


def find_noted(system: str) -> dict[str, tuple[str, ...]]:
    """Return the journal's entries in a prompt, by the name of their part, each as `item` writes it. Only an
    entry's own lines begin with a dash or are indented, so none can imitate another part."""
    section = _split_journal(system)[1]
    names = {title: name for name, title in TITLES.items()}
    noted: dict[str, tuple[str, ...]] = {}
    for chapter in f"\n\n{section}".split("\n\n## ")[1:]:
        title, _, body = chapter.partition("\n\n")
        if title in names:
            noted[names[title]] = tuple(
                f"- {each}".rstrip() for each in f"\n{body}".split("\n- ")[1:] if each.strip()
            )
    return noted


def _split_journal(system: str) -> tuple[str, str, str]:
    """Split a prompt into three pieces: before the journal, the journal, and after it. A trusted file with
    such a heading ends with a line that no entry can have."""
    before, found, rest = system.rpartition(_JOURNAL)
    section, around, tail = rest.rpartition(_AROUND)
    if not found or not around or "\n</project-instructions>" in section:
        before, around, tail = system.rpartition(_AROUND)
        return before, "", around + tail
    return before, section, around + tail


def find_described(system: str) -> dict[str, str]:
    """Return the skills in the index of a prompt, each with its text there."""
    section = system.partition(_HEAD)[2].partition(_MORE)[0].partition(_ALL)[0]
    lines = (line[2:].partition(": ") for line in section.split("\n") if line.startswith("- "))
    return {name: about for name, _, about in lines}


def find_instructions(system: str) -> tuple[str, str]:
    """Return the name of the trusted file in a prompt, and its text; both empty if there is none."""
    _, found, rest = system.partition(_TRUSTED)
    name, _, rest = rest.partition(". Follow it where it applies:\n<project-instructions>\n")
    text, ends, _ = rest.partition("\n</project-instructions>")
    return (name, text) if found and ends else ("", "")


def find_folder(system: str) -> str:
    """Return the working folder that a prompt names; empty if it names none."""
    return system.rpartition(_AROUND)[2].partition("\n")[0] if _AROUND in system else ""


def leave_out_entry(prefix: Prefix, part: str, entry: str) -> Prefix:
    """Return the same prefix without one entry of the journal, for a separate run. Raises ValueError if it is
    not there."""
    noted = {name: [*map(to_plain, items)] for name, items in find_noted(prefix.system).items()}
    noted.get(part, []).remove(entry)
    before, _, behind = _split_journal(prefix.system)
    memory, user, project = (tuple(noted.get(name, ())) for name in ("memory", "user", "project"))
    kept = Snapshot(memory, user, project)
    again = "\n\n".join(filter(None, (before, journal(kept))))
    return _with_system(prefix, again + behind)


def leave_out_skill(prefix: Prefix, name: str) -> Prefix:
    """Return the same prefix without one skill in its index, as above."""
    head, found, rest = prefix.system.partition(_HEAD)
    ending = _MORE if _MORE in rest else _ALL
    listed, ends, behind = rest.partition(ending)
    lines = listed.split("\n")
    kept = [line for line in lines if not line.startswith(f"- {one_line(name, WIDTH)}: ")]
    if not found or len(kept) == len(lines):
        raise ValueError(name)
    if not any(line.startswith("- ") for line in kept):
        return _with_system(prefix, (head + behind.removeprefix("\n\n")).rstrip("\n"))
    return _with_system(prefix, head + found + "\n".join(kept) + ends + behind)


def leave_out_instructions(prefix: Prefix) -> Prefix:
    """Return the same prefix without the trusted file of its folder, as above."""
    name, text = find_instructions(prefix.system)
    opening = f"{_TRUSTED}{name}. Follow it where it applies:"
    section = f"\n\n{opening}\n<project-instructions>\n{text}\n</project-instructions>"
    if not name or section not in prefix.system:
        raise ValueError(name)
    return _with_system(prefix, prefix.system.replace(section, "", 1))


def change_folder(prefix: Prefix, folder: Path) -> Prefix:
    """Return the same prefix for a copy of the working folder."""
    old = find_folder(prefix.system)
    before, found, behind = prefix.system.rpartition(f"{_AROUND}{old}")
    place = visible(path_to_text(folder)).replace("\n", "\\n")
    return _with_system(prefix, f"{before}{_AROUND}{place}{behind}") if found else prefix


def _with_system(prefix: Prefix, system: str) -> Prefix:
    return Prefix(prefix.model, system, prefix.tools, prefix.sampling)


def to_plain(item: str) -> str:
    """Return the text of an item as `item` wrote it."""
    return "\n".join(line[2:] for line in item.split("\n"))


def measure_system(system: str) -> dict[str, int]:
    """Return how many bytes of a prompt its parts take, by name. This is for display: a text that resembles a
    heading is counted with it."""
    skills = _between(system, _HEAD, (_MORE, _ALL))
    instructed = _between(system, _TRUSTED, ("</project-instructions>",))
    noted = _between(system, "# Journal\n", (_AROUND,))
    return {
        "system prompt": len(system.encode()) - skills - instructed - noted,
        "skills": skills,
        "project instructions": instructed,
        "journal": noted,
    }


def _between(text: str, opening: str, endings: Iterable[str]) -> int:
    """Return the bytes from the opening to the first ending; 0 if there is no opening."""
    _, found, rest = text.partition(opening)
    cut = min((at for at in map(rest.find, endings) if at >= 0), default=len(rest))
    return len((found + rest[:cut]).encode()) if found else 0


def skill_line(listed: ListedSkill, width: int = WIDTH) -> str:
    """Return a skill as an item of a list, with as much of its description as fits into the width."""
    return f"- {one_line(listed.name, WIDTH)}: {_short(listed.description, width)}"


def _short(description: str, width: int) -> str:
    """Return one line, cut at a word. No description can start another line, nor hide anything in its own."""
    line = one_line(description, width)
    if len(line) < width or not line.endswith("…"):
        return line
    cut, space, _ = line.rpartition(" ")
    return f"{cut.rstrip(' ,;:.')}…" if space and len(cut) > width // 2 else line
