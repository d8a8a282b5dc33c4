"""A library of 5,000 skills with near neighbours, and tasks as users write them, each with its right skill.

Each of ten families has twenty kinds of work in twenty-five settings: a skill has 24 neighbours that do the
same elsewhere and 19 that do something else in the same place. It is the same in every process.

Both sets of tasks were written after the first ranking, for skills drawn by lot. The limits of the note and
some weights were chosen later with both in sight, so their figures are not those of unseen tasks.
tasks.json avoids the words of the skill it means; requests.json says it as people do, and was written by
somebody who had not seen how skills are ranked. Seven of its skills had been among the tasks tried earlier.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from hone.knowledge.skills.document import write_document

FOLDER = Path(__file__).parent
HABITS = (
    "Ask before anything that cannot be undone.",
    "Say what was done and what is left open.",
    "If two of these contradict each other, the newer one counts.",
    "Keep the result where the last one is, under the same name.",
    "When in doubt, show a short example first and wait for a yes.",
    "Check the result once more with fresh eyes before handing it over.",
    "Note how long it took, for the next plan.",
)


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Task:
    text: str
    skill: str


@cache
def library() -> Sequence[Skill]:
    return tuple(
        _skill(activity, setting)
        for family in _read("families.json")
        for activity in family["activities"]
        for setting in [{"slug": "", "also": ""}, *family["contexts"]]
    )


@cache
def tasks(name: str = "tasks.json") -> Sequence[Task]:
    return tuple(Task(item["task"], _name(item["activity"], item["context"])) for item in _read(name))


def _read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def _skill(activity: dict[str, str], setting: dict[str, str]) -> Skill:
    name = _name(activity["slug"], setting["slug"])
    random = Random(name)
    return Skill(
        name, write_document(name, _description(activity, setting, random), _body(activity, setting, random))
    )


def _name(activity: str, setting: str) -> str:
    if not setting:
        return activity
    shapes = (f"{activity}-for-{setting}", f"{setting}-{activity}", f"{activity}-{setting}")
    return Random(f"{activity} {setting}").choice(shapes)


def _description(activity: dict[str, str], setting: dict[str, str], random: Random) -> str:
    what = activity["what"]
    lower = what[0].lower() + what[1:]
    if not setting["slug"]:
        return random.choice((f"{what}.", f"{what}. Use for any case without a skill of its own."))
    where = setting["slug"].replace("-", " ")
    shapes = (
        f"{what} for {where}.",
        f"{where.capitalize()}: {lower}.",
        f"{what}, made for {where} ({setting['also']}).",
        f"How to {lower} where it is about {where}. Use when that comes up.",
    )
    return random.choice(shapes)


def _body(activity: dict[str, str], setting: dict[str, str], random: Random) -> str:
    steps = [step.strip() for part in activity["steps"].split(". ") for step in part.rstrip(".").split("; ")]
    lines = [f"# {activity['slug'].replace('-', ' ').capitalize()}", "", f"Use when: {activity['when']}.", ""]
    lines += [f"{number}. {step[0].upper()}{step[1:]}." for number, step in enumerate(steps, 1)]
    if setting["slug"]:
        lines += ["", f"What is special with {setting['slug'].replace('-', ' ')}: {setting['also']}."]
    lines += ["", f"Requests like: {activity['say']}."]
    return "\n".join([*lines, "", *random.sample(HABITS, random.randint(1, 4))])
