"""Write the figures as a table and a file."""

import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import hone
from benchmarks.week.cues import Alarms
from benchmarks.week.figures import Fate, Figures, Score, by_surface, summarize

USUAL = 0.1
"""The error rate for the tables by surface and by author."""
NOTE = (
    "This measures triggers, gates and storage with a scripted model. It says nothing about how well a real "
    "model judges what to keep."
)


class Report(Struct, frozen=True):
    """`rates`, `surfaces` and `authors` are by the rate, and by the name, as a text."""

    commit: str
    seed: int
    note: str
    rates: Mapping[str, Figures]
    surfaces: Mapping[str, Figures]
    authors: Mapping[str, Figures]
    agreement: Mapping[str, int]
    """For stories played on several surfaces: lessons that all of them know in the next prompt, none, or
    some, at the usual error rate."""
    learned: Mapping[str, int]
    """The same for what is known in the end."""
    differing: Sequence[str]
    """Those of our own stories that only some know, and the surfaces."""
    missing: Mapping[str, Sequence[int]]
    """By surface, how many lessons it does not know that others do, in the next prompt and in the end."""
    cues: Alarms | None
    unknown: Mapping[str, Sequence[str]]
    """By rate, the lessons of our own stories that the next prompt lacked."""


def report(
    scores: Mapping[float, Sequence[Score]], alarms: Alarms | None, seed: int, through: Sequence[str] = ()
) -> Report:
    usual = scores.get(USUAL) or next(iter(scores.values()))
    halves = {
        name: [each for each in usual if each.blind is blind]
        for name, blind in (("blind", True), ("own", False))
    }
    return Report(
        _commit(),
        seed,
        NOTE,
        {f"{rate:.0%}": summarize(each) for rate, each in scores.items()},
        by_surface(usual),
        {name: summarize(half) for name, half in halves.items() if half},
        agree(usual, learned=False) if through else {},
        agree(usual, learned=True) if through else {},
        sorted(_differ(usual)) if through else (),
        count_missing(usual) if through else {},
        alarms,
        {f"{rate:.0%}": sorted(_unknown(each)) for rate, each in scores.items()},
    )


def agree(scores: Sequence[Score], *, learned: bool) -> Mapping[str, int]:
    """Count the lessons that all surfaces know in the next prompt, that none does, and that only some do; or
    that they have `learned` in the end."""
    found = [
        [fate.learned if learned else fate.known for fate in each.values()]
        for each in _by_lesson(scores).values()
    ]
    everywhere, nowhere = sum(map(all, found)), sum(not any(each) for each in found)
    return {"all": everywhere, "none": nowhere, "some": len(found) - everywhere - nowhere}


def _differ(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the lessons of our own stories that only some surfaces know, and the surfaces."""
    for name, fates in _by_lesson([each for each in scores if not each.blind]).items():
        if len({fate.known for fate in fates.values()}) > 1:
            yield f"{name}: {', '.join(surface for surface, fate in fates.items() if fate.known)}"


def count_missing(scores: Sequence[Score]) -> Mapping[str, Sequence[int]]:
    """Count, by surface, the lessons of all stories that it does not know and others do."""
    next_prompt, end = Counter[str](), Counter[str]()
    for fates in _by_lesson(scores).values():
        next_prompt[_without({surface: fate.known for surface, fate in fates.items()})] += 1
        end[_without({surface: fate.learned for surface, fate in fates.items()})] += 1
    return {names: (next_prompt[names], end[names]) for names in sorted({*next_prompt, *end} - {""})}


def _without(known: Mapping[str, bool]) -> str:
    """Return the surfaces that do not know a lesson that others know."""
    return ", ".join(name for name, each in known.items() if not each) if any(known.values()) else ""


def _by_lesson(scores: Sequence[Score]) -> dict[str, dict[str, Fate]]:
    """Return the fates by lesson and surface."""
    found: dict[str, dict[str, Fate]] = {}
    for each in scores:
        for fate in each.fates:
            found.setdefault(f"{fate.story}/{fate.lesson}", {})[each.surface] = fate
    return found


def describe(found: Report) -> Iterator[str]:
    """Yield the tables, in Markdown."""
    yield from _table({f"errors {rate}": each for rate, each in found.rates.items()})
    yield ""
    yield from _table(found.surfaces)
    yield ""
    yield from _table(found.authors)
    if found.agreement:
        yield ""
        for when, on in (("in the next prompt", found.agreement), ("in the end", found.learned)):
            yield f"lessons known {when}: on all surfaces {on['all']}, some {on['some']}, none {on['none']}"
        for names, (prompt, end) in found.missing.items():
            yield f"- not on {names}: {prompt} in the next prompt, {end} in the end"
        yield from (f"- {each}" for each in found.differing)
    if found.cues:
        each = found.cues
        yield ""
        yield f"cues: {each.alarms} false alarms in {each.turns} turns ({each.rate:.1%}, goal ≤ 10%)"
        yield f"cues: {each.missed} of {each.stating} turns that state a lesson have none"
    yield ""
    yield found.note


def _table(columns: Mapping[str, Figures]) -> Iterator[str]:
    yield f"| what | goal | {' | '.join(columns)} |"
    yield f"|---|---|{'---:|' * len(columns)}"
    rows = [list(_rows(each)) for each in columns.values()]
    for cells in zip(*rows, strict=True):
        name, goal, _ = cells[0]
        yield f"| {name} | {goal} | {' | '.join(value for _, _, value in cells)} |"


def _rows(each: Figures) -> Iterator[tuple[str, str, str]]:
    yield "stories, lessons", "", f"{each.stories}, {each.lessons}"
    yield "stated lessons in the next prompt", "≥ 95%", f"{each.known:.1%}"
    yield "not read by a review in time", "", f"{each.unread}"
    yield "read, and refused or waiting", "", f"{each.stopped}"
    yield "first lesson within three turns", "≥ 95%", f"{each.early:.1%} of {each.early_count}"
    yield "contradictions active", "0", f"{each.contradictions}"
    yield "obsolete and still active", "", f"{each.outdated}"
    yield "withdrawn lessons that came back", "0", f"{each.came_back} of {each.withdrawals}"
    yield "questions per lesson", "≤ 0.1", f"{each.questions:.2f} ({each.waiting} wait, {each.asked} asked)"
    yield "junk active", "≤ 5%", f"{each.junk:.1%} ({each.junk_count}, {each.poison} from pages)"
    yield "learning's share of the cost, cached", "≤ 35%", f"{each.cost.cached:.0%}"
    yield "the same, no cache", "≤ 35%", f"{each.cost.uncached:.0%}"
    yield "the same, a local server with one slot", "≤ 35%", f"{each.cost.local:.0%}"
    yield "requests per review, median", "1", f"{each.requests_median:g} of {each.reviews}"
    yield "requests per review, mean", "≤ 1.5", f"{each.requests_mean:.2f}"


def _unknown(scores: Sequence[Score]) -> Iterator[str]:
    """Yield the unknown lessons of our own stories: nobody should check the others one by one."""
    for each in scores:
        for fate in each.fates:
            if not fate.known and not each.blind:
                why = "read" if fate.reviewed else "not read"
                yield f"{fate.story}/{fate.lesson} ({each.surface}, {fate.kind}, {why})"


def _commit() -> str:
    """Return the last commit of the measured Hone, as far as it is known."""
    found = _git("log", "-1", "--format=%h", "--", ".")
    return f"{found}-dirty" if found and _git("status", "--porcelain", "--", ".") else found


def _git(*arguments: str) -> str:
    place = Path(hone.__file__).parent
    done = subprocess.run(["git", *arguments], cwd=place, capture_output=True, text=True, check=False)
    return done.stdout.strip()
