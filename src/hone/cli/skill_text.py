"""Find skills and format them as text: a table, the heading of one skill, an installation plan."""

from collections.abc import Iterator, Sequence

from hone.cli.output import lay_out
from hone.cli.render import Paint
from hone.core.screen import screen
from hone.core.skill import ListedSkill, SkillOrigin, UsageCounts
from hone.core.value import replace
from hone.core.visible import one_line
from hone.knowledge.library import Library
from hone.knowledge.skills.facts import Facts, is_copy, touches_scripts
from hone.knowledge.skills.install import InstallPlan
from hone.knowledge.skills.scan import oddities

FOUND = 50
"""How many results a search shows."""
TITLES = ("name", "origin", "uses", "last used", "about")


async def find_skills(library: Library, query: str, *, archived: bool = False) -> Sequence[ListedSkill]:
    """Return all skills by name, or those for a query, best first."""
    if not query.strip():
        every = await library.listed(archived=archived)
        return [each for each in every if each.archived is archived]
    if archived:
        words = query.lower().split()
        every = await find_skills(library, "", archived=True)
        return [
            each for each in every if any(word in f"{each.name} {each.description}".lower() for word in words)
        ]
    counts = await library.usage_counts()
    found = await library.search(query, FOUND)
    return [replace(each, counts=counts.get(each.name, each.counts)) for each in found]


def table(skills: Sequence[ListedSkill], width: int | None = None) -> str:
    rows = [
        (each.name, _origin(each), f"{each.counts.uses:,}", _last(each.counts), each.description)
        for each in skills
    ]
    return "\n".join(lay_out(TITLES, rows, width, right={"uses"}))


def _origin(skill: ListedSkill | Facts) -> str:
    marks = ("pinned" if skill.pinned else "", "archived" if skill.archived else "")
    return ", ".join(each for each in (str(skill.origin), *marks) if each)


def _last(counts: UsageCounts) -> str:
    return counts.last_use.isoformat() if counts.last_use else "never"


def to_object(skill: ListedSkill) -> dict[str, object]:
    counts = skill.counts
    return {
        "name": skill.name,
        "origin": skill.origin,
        "pinned": skill.pinned,
        "archived": skill.archived,
        "project": skill.project,
        "uses": counts.uses,
        "views": counts.views,
        "patches": counts.patches,
        "succeeded": counts.succeeded,
        "corrected": counts.corrected,
        "last_use": counts.last_use.isoformat() if counts.last_use else None,
        "description": skill.description,
    }


def heading(name: str, known: Facts, counts: UsageCounts, paint: Paint, now: str = "") -> Iterator[str]:
    """Yield the heading. `now` is the digest of its files."""
    uses = "1 use" if counts.uses == 1 else f"{counts.uses:,} uses"
    rated = f"{counts.succeeded:,} went well, {counts.corrected:,} were corrected"
    used = f"{uses} ({rated}), the last on {_last(counts)}" if counts.uses else "not used yet"
    yield f"{paint.bold(name)} {paint.dim(f'{_origin(known)} · {used}')}"
    if known.source:
        since = ", changed since you saw it" if known.approved and known.approved != now else ""
        source = one_line(known.source, 200)
        is_copied = any(is_copy(known, each) for each in SkillOrigin)
        yield paint.dim(source if is_copied else f"installed from {source}{since}")
    if known.project:
        yield paint.dim(f"made for {one_line(known.project, 200)}")


def report(plan: InstallPlan, source: str) -> Iterator[str]:
    """Yield everything that will be installed, and what to check first. Text filters are advice, not a
    boundary."""
    yield f"{plan.name}: {one_line(plan.description, 500)}"
    yield f"from {one_line(source, 200)}"
    scripts = touches_scripts({}, plan.files)
    width = max(map(len, plan.files))
    for path, data in sorted(plan.files.items()):
        yield f"  {path:<{width}}  {len(data):>9,} bytes{'  script' if path in scripts else ''}"
    if plan.left:
        yield f"Left out: {one_line(', '.join(plan.left), 300)}"
    odd = [
        f"  {path}: {one_line(each, 200)}"
        for path, data in sorted(plan.files.items())
        for each in oddities(path, data, runs=path in scripts)
    ]
    if odd:
        yield from ("Look at this before you say yes:", *odd)


def secrets(plan: InstallPlan) -> Iterator[str]:
    for path, data in sorted(plan.files.items()):
        text = readable(data)
        found = screen(text).secrets if text is not None else ()
        if found:
            yield f"{path} ({', '.join(found)})"


def readable(data: bytes) -> str | None:
    """Return a file as text; None for binary data."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
